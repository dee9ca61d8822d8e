// Package filestest waits for what other processes, or other goroutines, write to files.
package filestest

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Await returns nil as soon as so is true, which it asks at once and again whenever something changes in a directory,
// not below it, that may be still to be made. An error is that of ctx, or why it cannot watch.
func Await(ctx context.Context, dir string, so func() bool) error {
	w, err := newWatch(ctx)
	if err != nil { // the system does not tell, or tells too many others already
		w = ticks{ctx, time.NewTicker(10 * time.Millisecond)}
	}
	defer w.close()
	for {
		for at := ""; at != nearest(dir); {
			at = nearest(dir)
			if err := w.add(at); err != nil {
				return err
			}
		}
		if so() {
			return nil
		}
		if err := w.next(); err != nil {
			return err
		}
	}
}

// Until returns when so is true, which it asks again and again: for what no file tells. The test fails where that does not come to be
// within a minute, or ended gives a reason before; it may be nil.
func Until(t testing.TB, what string, so func() bool, ended <-chan error) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case err := <-ended:
			t.Fatalf("it ended before this came to be: %s: %v", what, err)
		case <-ctx.Done():
			t.Fatalf("this never came to be: %s", what)
		}
	}
}

// A watch hears of changes in the directories that were added.
type watch interface {
	add(dir string) error
	next() error // waits for a change
	close()
}

// ticks look again and again.
type ticks struct {
	ctx  context.Context
	tick *time.Ticker
}

func (t ticks) add(string) error { return nil }
func (t ticks) close()           { t.tick.Stop() }

func (t ticks) next() error {
	select {
	case <-t.tick.C:
		return nil
	case <-t.ctx.Done():
		return context.Cause(t.ctx)
	}
}

// nearest is a directory, or what is there of its parents.
func nearest(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}
