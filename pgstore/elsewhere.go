package pgstore

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"wf/cas"
	"wf/protocol"
)

// A run that came from elsewhere has a mark, a note by its name, for all machines of the database: those who may write it are one user, and what that user
// imported or copied is not yet what the user wants to run. The mark is there before the head of the run moves, so that no process sees the one without the other,
// and goes when the run is adopted.
const (
	elsewhere     = "elsewhere/"
	markElsewhere = `insert into wf.notes(name, n, body) select '` + elsewhere + `' || t.run, 1, '' from unnest($1::text[]) t(run) order by 1 on conflict do nothing`
	dropElsewhere = `delete from wf.notes where name = any($1::text[])`
	// dropMarks removes the marks of runs that were deleted.
	dropMarks = `delete from wf.notes n using wf.heads h where h.gone and starts_with(h.name, $1) and n.name = $2 || substr(h.name, length($1) + 1)`
)

var _ cas.Marks = (*Store)(nil)

// marks are the runs that have one, as they were a moment ago.
type marks struct {
	mu   sync.Mutex
	runs map[protocol.RunID]bool
	read time.Time
}

// marksLast is for how long lists show marks as they were read.
const marksLast = time.Second

// Mark marks runs as from elsewhere; see cas.Marks.
func (s *Store) Mark(ctx context.Context, runs []protocol.RunID) error {
	names := make([]string, len(runs))
	for i, run := range runs {
		names[i] = string(run)
	}
	return s.changeMarks(ctx, markElsewhere, names)
}

// Unmark takes marks away.
func (s *Store) Unmark(ctx context.Context, runs []protocol.RunID) error {
	names := make([]string, len(runs))
	for i, run := range runs {
		names[i] = elsewhere + string(run)
	}
	return s.changeMarks(ctx, dropElsewhere, names)
}

func (s *Store) changeMarks(ctx context.Context, sql string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	_, err := s.query(ctx, sql, texts(names))
	s.marks.mu.Lock()
	s.marks.runs = nil
	s.marks.mu.Unlock()
	if err != nil {
		return fmt.Errorf("note which runs came from elsewhere: %w", err)
	}
	return nil
}

// Marked reports whether a run has a mark now.
func (s *Store) Marked(ctx context.Context, run protocol.RunID) (bool, error) {
	got, err := s.query(ctx, `select 1 from wf.notes where name = $1`, text(elsewhere+string(run)))
	if err != nil {
		return false, fmt.Errorf("whether run %s came from elsewhere: %w", run, err)
	}
	return len(got) > 0, nil
}

// AllMarked are the runs that have a mark, as they were a moment ago.
func (s *Store) AllMarked(ctx context.Context) (map[protocol.RunID]bool, error) {
	s.marks.mu.Lock()
	defer s.marks.mu.Unlock()
	if s.marks.runs != nil && time.Since(s.marks.read) < marksLast {
		return maps.Clone(s.marks.runs), nil
	}
	began := time.Now()
	got, err := s.query(ctx, `select name from wf.notes where `+under("name"), prefixed(elsewhere)...)
	if err != nil {
		return nil, fmt.Errorf("which runs came from elsewhere: %w", err)
	}
	all := map[protocol.RunID]bool{}
	for _, r := range got {
		all[protocol.RunID(r[0][len(elsewhere):])] = true
	}
	s.marks.runs, s.marks.read = all, began
	return maps.Clone(all), nil
}
