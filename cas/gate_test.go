package cas

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"wf/protocol"
)

// A store that is closed while a reader is on its way in lets it in or refuses it. What the reader
// began may end later, and shares nothing with Close that changes: the race detector says so.
func TestAStoreIsClosedWhileAReaderComesIn(t *testing.T) {
	dir := openSample(t).Dir()
	for range 50 {
		s, err := Open(t.Context(), dir, Options{Wait: 5 * time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		s.gate.pause()() // the next reader has to open the database
		comes, read := make(chan struct{}), make(chan error, 1)
		go func() {
			close(comes)
			_, err := s.Heads(t.Context(), protocol.RunHead(""))
			read <- err
		}()
		<-comes
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-read; err != nil && !errors.Is(err, errClosed) {
			t.Fatal(err)
		}
	}
}

// A reader that comes back only later gives the store up at once, unless others of its process use it.
func TestTheStoreIsGivenUpWhenItIsNotInUse(t *testing.T) {
	s := openSample(t)
	s.gate.pause()()
	held := func() bool {
		s.gate.mu.Lock()
		defer s.gate.mu.Unlock()
		return s.gate.hold != nil
	}
	read := must(s.gate.enter(t.Context(), false))
	s.gate.yield()
	if !held() {
		t.Error("it is in use")
	}
	s.gate.leave(read, false)
	s.gate.yield()
	if held() {
		t.Error("it was read, and is still held")
	}
	s.gate.yield()
	written := must(s.gate.enter(t.Context(), true))
	other := must(s.gate.enter(t.Context(), false))
	s.gate.leave(other, false)
	s.gate.yield()
	if !held() {
		t.Error("another one writes")
	}
	s.gate.leave(written, false)
}

// A store whose store.lock was removed is read all the same, and a writer makes the file anew.
func TestAStoreWithoutItsLockFileIsRead(t *testing.T) {
	s := openSample(t)
	commitBlocks(t, s, Raw([]byte("a block")))
	s.gate.pause()() // closes the database
	if err := os.Remove(filepath.Join(s.Dir(), fileLock)); err != nil {
		t.Fatal(err)
	}
	reader, err := Open(t.Context(), s.Dir(), Options{ReadOnly: true, Wait: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Heads(t.Context(), protocol.RunHead("")); err != nil {
		t.Error(err)
	}
	if err := reader.Close(); err != nil {
		t.Error(err)
	}
	commitBlocks(t, s, Raw([]byte("another")))
	if _, err := os.Stat(filepath.Join(s.Dir(), fileLock)); err != nil {
		t.Error(err)
	}
}
