package schedule

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"wf/files"
)

// Seen remembers in a file since when jobs are known. It is derived: where it is lost, jobs are
// known from now on, and nothing that was missed before is started.
type Seen struct {
	Path string

	mu    sync.Mutex
	since map[string]time.Time
}

// seenFile is the file.
type seenFile struct {
	Schema string               `json:"schema"` // wf.schedule/v1
	Since  map[string]time.Time `json:"since"`
}

// Since is when a job was first seen: now, if that is the first time. It returns when that is
// on disk.
func (s *Seen) Since(key string, now time.Time) (time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since == nil {
		if err := s.load(); err != nil {
			return now, err
		}
	}
	if at, ok := s.since[key]; ok {
		return at, nil
	}
	s.since[key] = now.UTC()
	if err := s.save(); err != nil {
		delete(s.since, key)
		return now, err
	}
	return now, nil
}

// mostSeen bounds the file, in bytes.
const mostSeen = 16 << 20

func (s *Seen) load() error {
	var f seenFile
	b, err := files.Read(s.Path, mostSeen)
	if err == nil {
		err = json.Unmarshal(b, &f)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w; remove it to begin anew", s.Path, err)
	}
	if s.since = f.Since; s.since == nil {
		s.since = map[string]time.Time{}
	}
	return nil
}

// save replaces the file.
func (s *Seen) save() error {
	b, err := json.MarshalIndent(seenFile{"wf.schedule/v1", s.since}, "", "  ")
	if err != nil {
		return err
	}
	if err := files.MakeDir(filepath.Dir(s.Path)); err != nil {
		return fmt.Errorf("schedule: %w", err)
	}
	if err := files.Replace(s.Path, append(b, '\n')); err != nil {
		return fmt.Errorf("schedule: %w", err)
	}
	return nil
}
