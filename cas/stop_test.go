package cas

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"wf/files"
	"wf/protocol"
)

func TestCtrlZLetsTheStoreGo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	stopped, cont := make(chan struct{}), make(chan struct{})
	s.handleStop(func() error {
		close(stopped)
		<-cont
		return nil
	})
	if err := syscall.Kill(os.Getpid(), syscall.SIGTSTP); err != nil {
		t.Fatal(err)
	}
	<-stopped
	f, err := openLock(filepath.Join(dir, fileLock), false)
	if err != nil {
		t.Fatal(err)
	}
	if free, err := files.TryLock(f, false); !free || err != nil {
		t.Errorf("a stopped process keeps the store: %v", err)
	}
	if err := files.FreeLock(f); err != nil {
		t.Fatal(err)
	}
	committed := make(chan error)
	go func() { committed <- s.Commit(t.Context(), Batch{Blocks: []Block{Raw([]byte("x"))}}) }()
	close(cont)
	if err := <-committed; err != nil {
		t.Error(err)
	}
}

// Who is on the way in when the process stops does not get there while it is stopped.
func TestCtrlZWhileTheStoreIsOpened(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.gate.pause()() // closed
	lock, err := openLock(filepath.Join(dir, fileLock), false)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if free, err := files.TryLock(lock, false); !free || err != nil {
		t.Fatal("the store is held", err)
	}
	read := make(chan error, 1)
	go func() {
		_, err := s.Heads(t.Context(), "")
		read <- err
	}()
	opening := func() *attempt {
		s.gate.mu.Lock()
		defer s.gate.mu.Unlock()
		return s.gate.opening
	}
	for opening() == nil {
		runtime.Gosched()
	}
	a := opening()
	paused := make(chan func())
	go func() { paused <- s.gate.pause() }()
	for !a.abandoned() {
		runtime.Gosched()
	}
	if err := files.Unlock(lock); err != nil {
		t.Fatal(err)
	}
	resume := <-paused
	if <-a.over; opening() != nil || s.gate.hold != nil {
		t.Error("the store was opened in a pause")
	}
	if free, err := files.TryLock(lock, false); !free || err != nil {
		t.Error("a stopped process keeps the store", err)
	}
	if err := files.Unlock(lock); err != nil {
		t.Fatal(err)
	}
	resume()
	if err := <-read; err != nil {
		t.Error(err)
	}
}

func TestNetworkFileSystemsHaveNames(t *testing.T) {
	if kind, err := onNetwork(t.TempDir()); err != nil || kind != "" {
		t.Errorf("a temporary directory is on %q, %v", kind, err)
	}
}

// Blocks whose digests begin alike share an entry of the index; each is found.
func TestBlocksWhoseDigestsBeginAlikeAreKeptApart(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "store"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	a, b := Raw([]byte("a")), Raw([]byte("b"))
	if err := s.Commit(t.Context(), Batch{Blocks: []Block{a, b}}); err != nil {
		t.Fatal(err)
	}
	err = shareEntry(t, s, a, b)
	if err != nil {
		t.Fatal(err)
	}
	for _, blk := range []Block{a, b} {
		if got, err := s.Block(t.Context(), blk.Link); err != nil || string(got) != string(blk.Data) {
			t.Errorf("%s: %q, %v", blk.Link, got, err)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	rec, err := Encode(protocol.Result{Kind: protocol.KindResult, V: 1, Start: Raw([]byte("a")).Link, Status: protocol.Done})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(pack([]Block{Raw([]byte("a")), rec}))
	for _, p := range dictRun(1, 3) {
		f.Add(pack(p))
	}
	f.Fuzz(func(t *testing.T, stored []byte) {
		out, err := unpack(stored)
		if err != nil {
			return
		}
		var blocks []Block
		for _, u := range out {
			blocks = append(blocks, Block{linkOf(u.codec, u.digest[:]), u.data})
		}
		again, err := unpack(pack(blocks))
		if err != nil || len(again) != len(out) {
			t.Fatalf("%d blocks became %d, %v", len(out), len(again), err)
		}
		for i := range out {
			if again[i].digest != out[i].digest {
				t.Errorf("block %d changed", i)
			}
		}
	})
}
