// Package session keeps who is signed in.
package session

import (
	"sync"
	"time"
)

// lifetime is how long a session lives without being used.
const lifetime = 30 * time.Minute

// Session is one signed in user.
type Session struct {
	Token string
	User  string
	Used  time.Time
}

// Store keeps sessions in memory, by token. They are gone when the server ends.
type Store struct {
	mu       sync.Mutex
	sessions map[string]Session
}

// Find gives the session of a token and counts it as used.
func (s *Store) Find(token string, now time.Time) (Session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.sessions[token]
	if !ok || expired(found, now) {
		delete(s.sessions, token)
		return Session{}, false
	}
	found.Used = now
	s.sessions[token] = found
	return found, true
}

// expired reports whether a session has been left alone for too long. It is
// asked with the time of the request, and not with the clock, so that all that
// a request does sees the same.
//
// A session that was never used counts from when it was made.
func expired(s Session, now time.Time) bool {
	return now.Sub(s.Used) > lifetime
}
