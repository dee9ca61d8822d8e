package cas_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"wf/cas"
	"wf/cas/castest"
	"wf/protocol"
)

func TestAFullDiskIsNamedAndTheRunGoesOn(t *testing.T) {
	mnt := t.TempDir()
	if err := unix.Mount("tmpfs", mnt, "tmpfs", 0, "size=1500k"); err != nil {
		t.Skip("needs root to mount a small tmpfs: ", err)
	}
	defer func() {
		if err := unix.Unmount(mnt, 0); err != nil {
			t.Error(err)
		}
	}()
	filler := filepath.Join(mnt, "filler")
	if err := os.WriteFile(filler, make([]byte, 600<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, filepath.Join(mnt, "store"))
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx := context.Background()
	j := must(s.Journal(ctx, "r1"))(t)
	rng := rand.New(rand.NewPCG(1, 1))
	step := func() error {
		_, err := j.Append(ctx, castest.Now, []cas.Draft{{Data: protocol.ResumedBy{By: "someone"}}}, []cas.Block{cas.Raw(bigNoise(rng)[:20<<10])})
		return err
	}
	acknowledged := 0
	for {
		if err := step(); err != nil {
			if !errors.Is(err, protocol.ErrDiskFull) {
				t.Fatal(err)
			}
			break
		}
		acknowledged++
	}
	if err := s.Commit(ctx, cas.Batch{Blocks: []cas.Block{cas.Raw(append(bigNoise(rng), bigNoise(rng)...))}}); !errors.Is(err, protocol.ErrDiskFull) {
		t.Errorf("a blob on a full disk: %v", err)
	}
	if got := must(castest.Events(ctx, s, "r1", 0))(t); len(got) != acknowledged || acknowledged == 0 {
		t.Errorf("%d events, %d were acknowledged", len(got), acknowledged)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := step(); err != nil {
		t.Fatalf("after space was freed: %v", err)
	}
	if got := must(castest.Events(ctx, s, "r1", 0))(t); len(got) != acknowledged+1 {
		t.Errorf("then %d events, want %d", len(got), acknowledged+1)
	}
}
