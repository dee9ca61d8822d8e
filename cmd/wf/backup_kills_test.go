package main

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"wf/cas"
	"wf/protocol"
)

// Backups of a store in which another process works, and restorings of one, are killed by chance: WF_BACKUP_KILLS=200 each, with
// WF_BACKUP_KILLS_SEED for other moments. The backup before stays whole and the next one goes on from it; a directory that is
// half restored is taken for a store by no command, and the next restoring makes all of it (O-08).
func TestO08BackupsAndRestoringsSurviveKills(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes")
	}
	t.Parallel()
	number := func(name string, otherwise int) int {
		given := os.Getenv(name)
		if given == "" {
			return otherwise
		}
		n, err := strconv.Atoi(given)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return n
	}
	kills := number("WF_BACKUP_KILLS", 3)
	seed := uint64(number("WF_BACKUP_KILLS_SEED", 1))
	chance := rand.New(rand.NewPCG(seed, seed))
	ctx, dir := t.Context(), t.TempDir()
	store, backup := filepath.Join(dir, ".wf"), filepath.Join(dir, "backup")
	s, err := cas.Open(ctx, store, cas.Options{Wait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	// grow adds some MB, half of them in blob files.
	grown := 0
	grow := func(mb int) {
		t.Helper()
		for range mb {
			grown++
			var blocks []cas.Block
			links := []protocol.Link{}
			for _, n := range slices.Concat(slices.Repeat([]int{8 << 10}, 64), slices.Repeat([]int{128 << 10}, 4)) {
				noise := make([]byte, n)
				for i := range noise {
					noise[i] = byte(chance.Uint32())
				}
				b := cas.Raw(noise)
				blocks, links = append(blocks, b), append(links, b.Link)
			}
			root, err := cas.Encode(map[string]any{"links": links})
			if err == nil {
				err = s.Commit(ctx, cas.Batch{Blocks: append(blocks, root), Moves: []cas.Move{{Name: fmt.Sprint("memory/", grown), New: root.Link}}})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	// done runs a command to its end, killed one until a moment by chance within a span.
	done := func(args ...string) time.Duration {
		t.Helper()
		begun := time.Now()
		if out, err := wfIn(dir, args...).CombinedOutput(); err != nil {
			t.Fatalf("wf %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return time.Since(begun)
	}
	killed := 0
	kill := func(within time.Duration, args ...string) {
		t.Helper()
		cmd := wfIn(dir, args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(chance.Int64N(int64(within)))) // the moment is the point
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			killed++
		}
	}

	write(t, dir, "busy.yaml", "wf: 1\nname: busy\nlimits: {steps: 200000}\nroles:\n  a: {run: 'true'}\nedges:\n  - {from: START, to: a}\n  - {from: a, to: a, limit: 100000, on_limit: END}\n")
	trustAll(t, dir)
	busy := wfIn(dir, "run", "busy.yaml", "--request-id", "busy")
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	over := false
	end := func() {
		if !over {
			over = true
			_ = busy.Process.Kill() // it would go on for minutes
			_ = busy.Wait()
		}
	}
	defer end()
	grow(3)
	took := done("store", "backup", backup)
	was, err := cas.VerifyBackup(ctx, backup)
	if err != nil {
		t.Fatal(err)
	}
	for n := range kills {
		grow(1)
		kill(took, "store", "backup", backup)
		now, err := cas.VerifyBackup(ctx, backup)
		if err != nil || now.At < was.At {
			t.Fatalf("kill %d of seed %d: %v, from %d after %d", n, seed, err, now.At, was.At)
		}
		if n%2 == 1 {
			took = max(took, done("store", "backup", backup, "--verify"))
			if now, err = cas.VerifyBackup(ctx, backup); err != nil || now.At <= was.At {
				t.Fatalf("after kill %d of seed %d: %v, from %d after %d", n, seed, err, now.At, was.At)
			}
		}
		was = now
	}
	end()
	// heads of a store are what a restored one must have.
	heads := func(dir string) map[string]protocol.Link {
		t.Helper()
		s, err := cas.Open(ctx, dir, cas.Options{MustExist: true, Wait: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		list, err := s.Heads(ctx, "")
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]protocol.Link{}
		for _, h := range list {
			out[h.Name] = h.Link
		}
		return out
	}
	done("store", "backup", backup, "--verify")
	want := heads(store)
	if len(want) < grown+1 {
		t.Fatalf("%d heads", len(want))
	}

	took = done("store", "restore", backup, filepath.Join(dir, "first"))
	halves := 0
	for n := range kills {
		to := filepath.Join(dir, fmt.Sprint("to", n))
		kill(took, "store", "restore", backup, to)
		if _, err := os.Lstat(filepath.Join(to, "store.db")); err != nil {
			if _, err := os.Lstat(filepath.Join(to, ".restoring")); err == nil {
				halves++
				for _, args := range [][]string{{"ls"}, {"show", "-1"}, {"verify"}, {"gc", "--yes"}, {"run", "busy.yaml"}, {"store", "backup", filepath.Join(dir, "other")}, {"store", "adopt", "--yes"}} {
					out, err := wfIn(dir, append(args, "--store", to)...).CombinedOutput()
					if err == nil || !strings.Contains(string(out), "wf store restore") {
						t.Errorf("kill %d of seed %d: wf %s: %v\n%s", n, seed, args[0], err, out)
					}
					if halves > 1 {
						break // the others are tried once
					}
				}
				if _, err := os.Lstat(filepath.Join(to, "store.db")); err == nil {
					t.Errorf("kill %d of seed %d: a store was made of the half one", n, seed)
				}
			}
			done("store", "restore", backup, to)
		} else if out, err := wfIn(dir, "store", "restore", backup, to).CombinedOutput(); err == nil || !strings.Contains(string(out), "wf store adopt") {
			t.Errorf("over a store: %v\n%s", err, out)
		}
		if got := heads(to); !maps.Equal(got, want) {
			t.Errorf("kill %d of seed %d: %d heads, want %d", n, seed, len(got), len(want))
		}
		if r, err := cas.VerifyDir(ctx, to, cas.VerifyOptions{All: true}); err != nil || !r.OK {
			t.Errorf("kill %d of seed %d: %v, %v", n, seed, r.Findings, err)
		}
	}
	if killed == 0 {
		t.Error("every process ended before it was killed")
	}
	t.Logf("seed %d: %d of %d were killed in time, %d directories were half restored", seed, killed, 2*kills, halves)
}
