package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"
)

// crowded are n runs of a small workflow in one directory, so many at a time: how long all took, and each; and what they said.
func crowded(t *testing.T, n, atOnce int) (all time.Duration, each []time.Duration, said [][]byte) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "one.yaml", "wf: 1\nname: one\ndefaults: {timeout: 1m}\nroles: {only: {run: 'true'}}\n")
	each, said = make([]time.Duration, n), make([][]byte, n)
	rooms := make(chan struct{}, atOnce)
	var runs sync.WaitGroup
	began := time.Now()
	for i := range n {
		rooms <- struct{}{}
		runs.Go(func() {
			defer func() { <-rooms }()
			began := time.Now()
			cmd := wfIn(dir, "run", "one.yaml")
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			if err := cmd.Run(); err != nil {
				exit, _ := errors.AsType[*exec.ExitError](err)
				t.Errorf("run %d: %v\n%s", i, exit, stderr.Bytes())
			}
			each[i], said[i] = time.Since(began), stderr.Bytes()
		})
	}
	runs.Wait()
	all = time.Since(began)
	slices.Sort(each)
	return all, each, said
}

// waits is what a run says of a wait for the store.
var waits = regexp.MustCompile(`(?m)^warning: waiting for the store .*, held by process \d+$`)

// F-505: a thousand runs in one directory are all done, two hundred at a time as well as eight; none waits much longer than others, and
// each that waits for a second says for which process.
func TestF505AThousandRunsInOneDirectory(t *testing.T) {
	if os.Getenv("WF_LONG") == "" {
		t.Skip("set WF_LONG=1: it takes minutes; cas has a short form")
	}
	const n = 1000
	few, _, _ := crowded(t, n, 8)
	many, each, said := crowded(t, n, 200)
	told := 0
	for _, s := range said {
		if waits.Match(s) {
			told++
		}
	}
	p50, p99 := each[n/2], each[n*99/100]
	t.Logf("8 at a time: %s; 200 at a time: %s, p50 %s, p99 %s; %d told of a wait", few, many, p50, p99, told)
	if many > few*13/10 {
		t.Errorf("200 at a time take %s, 8 at a time %s", many, few)
	}
	if p99 > 3*p50 {
		t.Errorf("p99 is %s, p50 %s", p99, p50)
	}
	if p99 > 20*time.Second && told == 0 {
		t.Error("none says that it waits")
	}
}
