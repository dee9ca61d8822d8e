package cas_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"wf/cas"
	"wf/cas/castest"
	"wf/protocol"
)

// small mounts a small file system of its own.
func small(t *testing.T, size string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skip("needs root to mount a small tmpfs: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill writes to a file until the file system has no free block.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if err = errors.Join(err, f.Close()); !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(path), &fs); err != nil || fs.Bfree != 0 {
		t.Fatalf("%d blocks are free, %v", fs.Bfree, err)
	}
}

// F317: on a disk without a free block a collection makes room, whatever of the store is dead: large blocks, files that no pack names, small
// blocks, little or much of all.
func TestF317ACollectionMakesRoomOnAFullDisk(t *testing.T) {
	for _, c := range []struct{ blobs, orphans, blocks, live int }{{6, 0, 0, 1}, {0, 6, 0, 1}, {0, 6, 0, 20}, {6, 0, 0, 60}, {1, 0, 0, 60}, {3, 3, 30, 20}, {0, 0, 40, 2}, {0, 0, 5, 40}} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			mnt := small(t, "4m")
			s := openStore(t, filepath.Join(mnt, "store"))
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			rng := rand.New(rand.NewPCG(1, 1))
			commit := func(size int) {
				t.Helper()
				noise := append(bigNoise(rng), bigNoise(rng)...)
				if err := s.Commit(t.Context(), cas.Batch{Blocks: []cas.Block{cas.Raw(noise[:size])}}); err != nil {
					t.Fatal(err)
				}
			}
			j := castest.Sample(t, s, "r1", c.live, func(int) string { return fmt.Sprintf("%x", bigNoise(rng)[:5<<10]) })
			for i := range max(c.blobs, c.orphans, c.blocks) {
				if i < c.blobs {
					commit(100 << 10)
				}
				if i < c.blocks {
					commit(20 << 10)
				}
				if i < c.orphans {
					sum := fmt.Sprintf("%064x", i)
					dir := filepath.Join(mnt, "store", "blobs", sum[:2])
					if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, sum), make([]byte, 100<<10), 0o600)); err != nil {
						t.Fatal(err)
					}
				}
			}
			fill(t, filepath.Join(mnt, "filler"))
			r, err := cas.GC(t.Context(), s, cas.GCOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if int(r.Removed) < c.blobs+c.blocks || int(r.Blobs) != c.blobs+c.orphans {
				t.Errorf("%+v", r)
			}
			sound(t, s)
			castest.Longer(t, j, 1)
		})
	}
}

// F317: a disk on which there is no room to drop what has aged is no reason to keep what is dead.
func TestF317WhatHasAgedHindersNoCollectionOnAFullDisk(t *testing.T) {
	mnt := small(t, "4m")
	s := openStore(t, filepath.Join(mnt, "store"))
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	rng := rand.New(rand.NewPCG(1, 1))
	castest.Sample(t, s, "r1", 5, nil)
	noise := append(bigNoise(rng), bigNoise(rng)...)
	memo, now := cas.Raw([]byte("a memo")), time.Now()
	b := cas.Batch{Blocks: []cas.Block{cas.Raw(noise[:100<<10]), memo}}
	for i := range 200 {
		at := now
		if i%2 == 0 {
			at = now.AddDate(-1, 0, 0)
		}
		b.Derived = append(b.Derived, cas.PutMemo(fmt.Sprintf("%05d", i), cas.StoredMemo{Memo: memo.Link, At: at.UnixMicro(), Data: noise[i*100:][:1500]}))
	}
	if err := s.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	fill(t, filepath.Join(mnt, "filler"))
	if r, err := cas.GC(t.Context(), s, cas.GCOptions{}); err != nil || r.Removed != 1 || r.Blobs != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	sound(t, s)
}

// F317: cut off at any operation, such a collection leaves a sound store, and the next one ends it.
func TestF317ACollectionOnAFullDiskIsCutOff(t *testing.T) {
	emptied := 0
	for n, ended := 0, false; !ended; n++ {
		mnt := small(t, "4m")
		path, rng := filepath.Join(mnt, "store"), rand.New(rand.NewPCG(1, 1))
		s := openStore(t, path)
		castest.Sample(t, s, "r1", 60, func(int) string { return fmt.Sprintf("%x", bigNoise(rng)[:5<<10]) })
		dead := cas.Raw(append(bigNoise(rng), bigNoise(rng)...))
		if err := errors.Join(s.Commit(t.Context(), cas.Batch{Blocks: []cas.Block{dead}}), s.Close()); err != nil {
			t.Fatal(err)
		}
		fill(t, filepath.Join(mnt, "filler"))
		cut := errors.New("cut off")
		left := n
		dying, err := cas.Open(t.Context(), path, cas.Options{Before: func(cas.Op) error {
			if left--; left < 0 {
				return cut
			}
			return nil
		}})
		if err == nil {
			_, err = cas.GC(t.Context(), dying, cas.GCOptions{})
			err = errors.Join(err, dying.Close())
		}
		if ended = err == nil; !ended && !errors.Is(err, cut) {
			t.Fatal(err)
		}
		gone, err := filepath.Glob(filepath.Join(path, "blobs", "*", "gone-*"))
		if err != nil {
			t.Fatal(err)
		}
		emptied += len(gone)
		s = openStore(t, path)
		sound(t, s)
		if r, err := cas.GC(t.Context(), s, cas.GCOptions{}); err != nil || !ended && r.Kept == 0 {
			t.Errorf("operation %d: %+v, %v", n, r, err)
		}
		sound(t, s)
		rest, err := filepath.Glob(filepath.Join(path, "blobs", "*", "*"))
		if err = errors.Join(err, s.Close()); len(rest) > 0 || err != nil {
			t.Fatalf("operation %d: %v is left, %v", n, rest, err)
		}
	}
	if emptied == 0 {
		t.Error("none was cut off behind an emptied file")
	}
}

// F509: whatever byte of a store is another one, a collection ends with an error, or did what it does: it takes no damaged pack for one that is gone.
func TestF509ACollectionOfADamagedStoreRemovesNothing(t *testing.T) {
	from := filepath.Join(t.TempDir(), "store")
	s := openStore(t, from)
	castest.Sample(t, s, "r1", 6, nil)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 4 {
		if err := s.Commit(t.Context(), cas.Batch{Blocks: []cas.Block{cas.Raw(bigNoise(rng)[:6<<10])}}); err != nil { // nothing reaches them
			t.Fatal(err)
		}
	}
	file := "store.db"
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(from, file))
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for range 300 {
		dir := filepath.Join(t.TempDir(), "store")
		changed := bytes.Clone(whole)
		changed[rng.IntN(len(changed))] ^= byte(1 + rng.IntN(255))
		if err := errors.Join(os.CopyFS(dir, os.DirFS(from)), os.WriteFile(filepath.Join(dir, file), changed, 0o600)); err != nil {
			t.Fatal(err)
		}
		s, err := cas.Open(t.Context(), dir, cas.Options{Wait: patience})
		if err != nil {
			continue
		}
		_, err = cas.GC(t.Context(), s, cas.GCOptions{})
		if after, rerr := os.ReadFile(filepath.Join(dir, file)); errors.Is(err, protocol.ErrCorrupt) && strings.Contains(err.Error(), "the store is damaged (pack") {
			if refused++; rerr != nil || !bytes.Equal(after, changed) {
				t.Errorf("the store was changed although %v; %v", err, rerr)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if refused == 0 {
		t.Error("no damaged pack was met")
	}
}

// sound holds that a store has no fault.
func sound(t *testing.T, s *cas.Store) {
	t.Helper()
	v, err := cas.Verify(t.Context(), s, cas.VerifyOptions{})
	if err != nil || len(v.Findings) > 0 {
		t.Errorf("%+v, %v", v.Findings, err)
	}
}
