package pgstore

import (
	"context"
	"time"
)

// TakeFree is the statement of a look for runs that are due.
var TakeFree = takeFree

// Elsewhere has the store take for granted that it followed another history of the database until now.
func (s *Store) Elsewhere() { s.follows.history = "another" }

// Deallocate has the session of the committer, which is at rest, forget what was prepared, as a pooler does that gives its clients other sessions.
func (s *Store) Deallocate(ctx context.Context) (n int, err error) {
	return s.write.Prepared(), s.write.do(ctx, "deallocate all")
}

// MostMoved is how many heads a look at what moved names at most.
const MostMoved = mostMoved

// Slept has days pass for a process: what was acknowledged to it is as much older.
func Slept(s *Store, days int) {
	s.seen.mu.Lock()
	defer s.seen.mu.Unlock()
	s.seen.at = s.seen.at.Add(-time.Duration(days) * 24 * time.Hour)
}
