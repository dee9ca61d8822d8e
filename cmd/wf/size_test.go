package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// noise is text that shrinks to about half of its length, as prose does.
func noise(seed string, n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", seed, i))
		b.WriteString(hex.EncodeToString(sum[:]))
		b.WriteByte('\n')
	}
	return b.String()[:n]
}

// a run of 500 turns takes at most 1.3 times its unique content, each distinct block
// counted once, although the request of the last turn holds all the turns before it.
func TestX03FiveHundredTurnsTakeLittleMoreThanTheirContent(t *testing.T) {
	if testing.Short() {
		t.Skip("five hundred turns, one after the other")
	}
	t.Parallel()
	const turns, size = 500, 2000
	dir := t.TempDir()
	var replies strings.Builder
	for i := range turns {
		text := noise(fmt.Sprint(i), size)
		fmt.Fprintf(&replies, "%s#%d:\n  - {text: %q}\n", []string{"ping", "pong"}[i%2], i/2+1, text)
	}
	write(t, dir, "replies.yaml", replies.String())
	write(t, dir, "talk.yaml", fmt.Sprintf(`
wf: 1
name: talk
limits: {steps: %d}
defaults: {model: script/replies.yaml, timeout: 1m}
roles:
  ping: {prompt: You say ping.}
  pong: {prompt: You say pong.}
edges:
  - {from: START, to: ping, prompt: Begin.}
  - {from: ping, to: pong}
  - {from: pong, to: ping, limit: %d, on_limit: END}
`, turns+1, turns/2-1))
	store := filepath.Join(dir, ".wf")
	wf := func(args ...string) {
		t.Helper()
		cmd := exec.Command("wf", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+dir, "WF_STORE="+store, "XDG_STATE_HOME=", "XDG_DATA_HOME=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	wf("run", "talk.yaml", "-q")
	var taken int64
	err := filepath.Walk(store, func(_ string, fi os.FileInfo, err error) error {
		if err == nil && !fi.IsDir() {
			taken += fi.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	wf("export", "-1", "-o", "run.car", "-q") // every distinct block, once and plain
	car, err := os.Stat(filepath.Join(dir, "run.car"))
	if err != nil {
		t.Fatal(err)
	}
	unique := car.Size()
	t.Logf("%d bytes of content, %d bytes of store: %.2f", unique, taken, float64(taken)/float64(unique))
	if float64(taken) > 1.3*float64(unique) {
		t.Errorf("the store takes %d bytes for %d bytes of content", taken, unique)
	}
}
