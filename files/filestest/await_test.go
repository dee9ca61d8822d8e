package filestest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestAwaitSeesFilesThatAreWrittenMovedAndRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	file := filepath.Join(dir, "file")
	is := func(text string) func() bool {
		return func() bool { b, err := os.ReadFile(file); return err == nil && string(b) == text }
	}
	for _, step := range []struct {
		do func() error
		so func() bool
	}{
		{func() error { return os.MkdirAll(dir, 0o700) }, func() bool { _, err := os.Stat(dir); return err == nil }},
		{func() error { return os.WriteFile(file, []byte("one"), 0o600) }, is("one")},
		{func() error { return os.WriteFile(file, []byte("two"), 0o600) }, is("two")},
		{func() error {
			beside := filepath.Join(dir, "..", "beside")
			return errors.Join(os.WriteFile(beside, []byte("three"), 0o600), os.Rename(beside, file))
		}, is("three")},
		{func() error { return os.Remove(file) }, func() bool { _, err := os.Stat(file); return os.IsNotExist(err) }},
	} {
		asked, done := make(chan struct{}, 100), make(chan error, 1)
		go func() {
			done <- Await(t.Context(), dir, func() bool { asked <- struct{}{}; return step.so() })
		}()
		<-asked // it is not so yet, or it comes meanwhile
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	why := errors.New("enough")
	ctx, stop := context.WithCancelCause(t.Context())
	err := Await(ctx, t.TempDir(), func() bool { stop(why); return false })
	if !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
}
