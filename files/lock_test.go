package files_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"wf/files"
)

// A lock is free when FreeLock returns, also while another goroutine starts programs.
func TestALockIsFreeAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	var over atomic.Bool
	var starting sync.WaitGroup
	for range 2 {
		starting.Go(func() {
			for !over.Load() {
				if err := exec.Command("true").Run(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	defer starting.Wait()
	defer over.Store(true)
	for i := range 20_000 {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		free, err := files.TryLock(f, false)
		if err != nil || !free {
			t.Fatalf("lock %d: free %v, %v", i, free, err)
		}
		if err := files.FreeLock(f); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSharedLocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	a, b, c := open(), open(), open()
	for _, step := range []struct {
		f            *os.File
		shared, free bool
	}{{a, true, true}, {b, true, true}, {c, false, false}, {c, true, true}} {
		if free, err := files.TryLock(step.f, step.shared); err != nil || free != step.free {
			t.Errorf("%+v: %v, %v", step, free, err)
		}
	}
	for _, f := range []*os.File{a, b} {
		if err := files.FreeLock(f); err != nil {
			t.Error(err)
		}
	}
	if free, err := files.TryLock(c, false); err != nil || !free {
		t.Errorf("the last one does not get it for itself: %v, %v", free, err)
	}
	if err := files.Unlock(c); err != nil {
		t.Error(err)
	}
	if err := files.WaitLock(c, false); err != nil {
		t.Error(err)
	}
	if err := files.FreeLock(c); err != nil {
		t.Error(err)
	}
}
