package schedule

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"wf/files"
	"wf/protocol"
)

// Seen remembers in a file what was dealt with. It is derived: where it is lost, jobs are known from now on, and nothing
// that was missed before is started. Several processes may share the file.
type Seen struct{ Path string }

// seenFile is the file.
type seenFile struct {
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
	err = s.change(func(f *seenFile) bool {
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
	return s.change(func(f *seenFile) bool {
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
	err = s.change(func(f *seenFile) bool {
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
	return s.change(func(f *seenFile) bool {
		f.Runs[job] = slices.DeleteFunc(f.Runs[job], func(r protocol.RunID) bool { return slices.Contains(runs, r) })
		if len(f.Runs[job]) == 0 {
			delete(f.Runs, job)
		}
		return true
	})
}

// change has f read the file, and change it where that is true, while no other process does.
func (s *Seen) change(do func(*seenFile) bool) (err error) {
	if err := files.MakeDir(filepath.Dir(s.Path)); err != nil {
		return fmt.Errorf("schedule: %w", err)
	}
	lock, err := files.OpenFile(s.Path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("schedule: %w", err)
	}
	defer func() { err = errors.Join(err, files.FreeLock(lock)) }()
	if err := files.WaitLock(lock, false); err != nil {
		return fmt.Errorf("schedule: lock %s: %w", lock.Name(), err)
	}
	f, err := s.load()
	if err != nil || !do(&f) {
		return err
	}
	return s.save(f)
}

// mostSeen bounds the file, in bytes.
const mostSeen = 16 << 20

func (s *Seen) load() (f seenFile, err error) {
	b, err := files.Read(s.Path, mostSeen)
	if err == nil {
		err = json.Unmarshal(b, &f)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return f, fmt.Errorf("%s: %w; remove it to begin anew", s.Path, err)
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
	return f, nil
}

// save replaces the file.
func (s *Seen) save(f seenFile) error {
	f.Schema = "wf.schedule/v1"
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	if err := files.Replace(s.Path, append(b, '\n')); err != nil {
		return fmt.Errorf("schedule: %w", err)
	}
	return nil
}
