package pgstore_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
)

// What processes write to one note at once is all there, as in a file.
func TestProcessesChangeOneNote(t *testing.T) {
	dsn := fresh(t, running(t))
	const processes, changes = 4, 10
	var work sync.WaitGroup
	add := func(key string) func([]byte) ([]byte, error) {
		return func(old []byte) ([]byte, error) {
			all := map[string]bool{}
			if old != nil {
				if err := json.Unmarshal(old, &all); err != nil {
					return nil, err
				}
			}
			all[key] = true
			return json.Marshal(all)
		}
	}
	for p := range processes {
		s := open(t, dsn)
		work.Go(func() {
			for i := range changes {
				if err := s.Note("schedule").Change(add(fmt.Sprint(p, "/", i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	s := open(t, dsn)
	var all map[string]bool
	err := s.Note("schedule").Change(func(old []byte) ([]byte, error) { return nil, json.Unmarshal(old, &all) })
	if err != nil || len(all) != processes*changes {
		t.Errorf("%d of %d changes are there: %v", len(all), processes*changes, err)
	}
	bad := errors.New("bad")
	if err := s.Note("schedule").Change(func([]byte) ([]byte, error) { return nil, bad }); !errors.Is(err, bad) {
		t.Errorf("what the caller refuses: %v", err)
	}
	if n := ask(t, dsn, "select n from wf.notes"); n != processes*changes {
		t.Errorf("the note was changed %d times, want %d", n, processes*changes)
	}
	if err := s.Note("other").Change(func(old []byte) ([]byte, error) {
		if old != nil {
			t.Errorf("another note has %q", old)
		}
		return nil, nil
	}); err != nil {
		t.Error(err)
	}
}
