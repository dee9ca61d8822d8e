package schedule

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"wf/protocol"
)

// Seen remembers in a note what was dealt with. It is derived: where it is lost, jobs are known from now on, and nothing
// that was missed before is started. Several processes may share the note.
type Seen struct{ In Note }

// A Note is a text that several processes change: a File, or a row of a database.
type Note interface {
	// Change has do make another text of the one that is there, nil for none, while no other process changes it; nil leaves it. It returns when that is
	// durable. do may be called again, with what another process wrote.
	Change(do func(old []byte) (text []byte, err error)) error
}

// seenNote is what is in it.
type seenNote struct {
	Schema string                      `json:"schema"`          // wf.schedule/v1
	Since  map[string]time.Time        `json:"since"`           // by key: when a job was first seen
	Until  map[string]time.Time        `json:"until,omitempty"` // by key: the newest firing that was dealt with
	Runs   map[string][]protocol.RunID `json:"runs,omitempty"`  // by job: the runs of its firings that had not ended
}

// putBack is how far a clock may be put back without making anything due.
const putBack = 24 * time.Hour

// Until is up to when the firings of a job are dealt with: now, if it is seen for the first time. It returns when that is
// on disk.
func (s *Seen) Until(key string, now time.Time) (until time.Time, err error) {
	err = s.change(func(f *seenNote) bool {
		if until = latest(f.Since[key], f.Until[key]); !until.IsZero() && until.Sub(now) <= putBack {
			return false
		}
		until = now.UTC()
		f.Since[key] = until
		delete(f.Until, key)
		return true
	})
	return until, err
}

// Dealt is a firing that was dealt with.
type Dealt struct {
	Key, Job string
	Due      time.Time
	Run      protocol.RunID // that is to be remembered until it has ended; "" is none
}

// Dealt notes a firing, and returns when that is on disk.
func (s *Seen) Dealt(x Dealt) error {
	return s.change(func(f *seenNote) bool {
		changed := f.Until[x.Key].Before(x.Due)
		if changed {
			f.Until[x.Key] = x.Due.UTC()
		}
		if x.Run != "" && !slices.Contains(f.Runs[x.Job], x.Run) {
			f.Runs[x.Job] = append(f.Runs[x.Job], x.Run)
			changed = true
		}
		return changed
	})
}

// Runs are the runs of a job that had not ended.
func (s *Seen) Runs(job string) (runs []protocol.RunID, err error) {
	err = s.change(func(f *seenNote) bool {
		runs = slices.Clone(f.Runs[job])
		return false
	})
	return runs, err
}

// Over forgets runs of a job: they have ended.
func (s *Seen) Over(job string, runs []protocol.RunID) error {
	if len(runs) == 0 {
		return nil
	}
	return s.change(func(f *seenNote) bool {
		f.Runs[job] = slices.DeleteFunc(f.Runs[job], func(r protocol.RunID) bool { return slices.Contains(runs, r) })
		if len(f.Runs[job]) == 0 {
			delete(f.Runs, job)
		}
		return true
	})
}

// change has do read the note, and change it where that is true, while no other process does.
func (s *Seen) change(do func(*seenNote) bool) error {
	err := s.In.Change(func(old []byte) ([]byte, error) {
		var f seenNote
		if old != nil {
			if err := json.Unmarshal(old, &f); err != nil {
				return nil, err
			}
		}
		if f.Since == nil {
			f.Since = map[string]time.Time{}
		}
		if f.Until == nil {
			f.Until = map[string]time.Time{}
		}
		if f.Runs == nil {
			f.Runs = map[string][]protocol.RunID{}
		}
		if !do(&f) {
			return nil, nil
		}
		f.Schema = "wf.schedule/v1"
		return json.MarshalIndent(f, "", "  ")
	})
	if err != nil {
		return fmt.Errorf("schedule: %w", err)
	}
	return nil
}
