package cas_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"wf/cas"
	"wf/cas/castest"
	"wf/protocol"
)

// A store that met errors at random operations, and went on, is as good as one that did not.
func TestAStoreThatFailedConforms(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	castest.ExerciseDir(t, func(t *testing.T, dir string) *cas.Store {
		rng := rand.New(rand.NewPCG(seed, uint64(len(dir))))
		var failing atomic.Bool
		var left atomic.Int64
		var cause error
		s, err := cas.Open(t.Context(), dir, cas.Options{Before: func(op cas.Op) error {
			if failing.Load() && op != cas.OpCount && left.Add(-1) == 0 {
				return fmt.Errorf("%s: %w", op, cause)
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		failing.Store(true)
		for i := range 8 {
			cause = []error{syscall.ENOSPC, syscall.EIO}[i%2]
			left.Store(1 + rng.Int64N(4))
			small, large := cas.Raw(fmt.Append(nil, dir, seed, i)), cas.Raw(bigNoise(rng))
			err := s.Commit(t.Context(), cas.Batch{Blocks: []cas.Block{small, large}})
			failed := left.Load() <= 0
			left.Store(0)
			if failed != (err != nil) || err != nil && !errors.Is(err, cause) {
				t.Fatalf("operation failed: %v, commit says: %v", failed, err)
			}
			if cause == syscall.ENOSPC && err != nil && !errors.Is(err, protocol.ErrDiskFull) {
				t.Fatalf("a full disk is called %v", err)
			}
			if ok, err := castest.Has(t.Context(), s, small.Link); ok == failed || err != nil {
				t.Fatalf("after a commit that failed=%v the block is there: %v, %v", failed, ok, err)
			}
		}
		failing.Store(false)
		return s
	})
}

func bigNoise(rng *rand.Rand) []byte {
	b := make([]byte, 70<<10)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// killEnv tells a child after how many operations to kill itself.
const killEnv = "CASTEST_KILL"

// killAfter kills this process, without a chance to tidy up, at the n-th operation.
func killAfter(n int) func(cas.Op) error {
	var seen atomic.Int64
	return func(cas.Op) error {
		if int(seen.Add(1)) == n {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil
	}
}

// Killed at each operation of its commits, a process leaves a whole number of them behind.
func TestW20KilledAtEveryOperation(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	acknowledged := 0
	for n := 1; n <= 24; n++ {
		t.Setenv(killEnv, strconv.Itoa(n))
		cmd, _, out := start(t, "append", dir, "r1", "-1")
		last := 0
		for out.Scan() {
			seq, err := strconv.Atoi(strings.Fields(out.Text())[0])
			if err != nil {
				t.Fatal(out.Text())
			}
			last = seq
			acknowledged++
		}
		_ = cmd.Wait() // killed
		s := openStore(t, dir)
		got, err := castest.Events(t.Context(), s, "r1", 0)
		if err != nil && !errors.Is(err, protocol.ErrUnknownRun) || len(got) < last || len(got)%2 != 0 {
			t.Errorf("killed at operation %d: %d events, %d were acknowledged, %v", n, len(got), last, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if acknowledged == 0 {
		t.Error("nothing was ever acknowledged")
	}
}

// A power loss may leave any of the sectors of a commit written and any not. bbolt writes its
// meta page last: torn, the store opens at the old head.
func TestATornCommitLeavesTheOldHead(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 7))
	dir := made(t)
	path := filepath.Join(dir, "store.db")
	for round := range 10 {
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		s := openStore(t, dir)
		j, err := s.Journal(t.Context(), "r1")
		if err != nil {
			t.Fatal(err)
		}
		old := must(castest.Events(t.Context(), s, "r1", 0))(t)
		castest.Append(t, j, 1)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		after, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for range 8 {
			torn := bytes.Clone(after)
			for at := 0; at < len(before); at += 512 {
				if at < 8192 || rng.IntN(2) == 0 {
					copy(torn[at:at+512], before[at:])
				}
			}
			if err := os.WriteFile(path, torn, 0o600); err != nil {
				t.Fatal(err)
			}
			s := openStore(t, dir)
			got, err := castest.Events(t.Context(), s, "r1", 0)
			if err != nil || len(got) != len(old) || got[len(got)-1].CID != old[len(old)-1].CID {
				t.Errorf("round %d: %d events, want %d: %v", round, len(got), len(old), err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := os.WriteFile(path, after, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
