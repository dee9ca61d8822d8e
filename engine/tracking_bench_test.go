package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"wf/cas"
	"wf/engine"
	"wf/protocol"
)

// BenchmarkC02First records a workspace of 50,000 files (WF_BENCH_FILES) for the first time, while another writer commits;
// Again is a further run of the same process, of two takings, and Changed one in which a file has changed.
func BenchmarkC02First(b *testing.B) {
	for range b.N {
		b.StopTimer()
		x := manyFiles(b)
		stop, done := make(chan struct{}), make(chan time.Duration)
		go func() {
			var longest time.Duration
			for i := 0; ; i++ {
				select {
				case <-stop:
					done <- longest
					return
				case <-time.After(2 * time.Millisecond):
				}
				_, blocks := cas.Payload([]byte(strconv.Itoa(i)))
				begun := time.Now()
				if err := x.e.Store.Commit(context.Background(), cas.Batch{Blocks: blocks}); err != nil {
					b.Error(err)
				}
				longest = max(longest, time.Since(begun))
			}
		}()
		b.StartTimer()
		x.tracked()
		b.StopTimer()
		close(stop)
		b.ReportMetric(float64((<-done).Microseconds())/1000, "ms-longest-commit")
	}
}

func BenchmarkC02Again(b *testing.B) {
	b.Cleanup(engine.SettleAtOnce()) // files that were just written are read again each time
	x := manyFiles(b)
	x.tracked()
	for b.Loop() {
		x.tracked()
	}
}

func BenchmarkC02Changed(b *testing.B) {
	b.Cleanup(engine.SettleAtOnce())
	x := manyFiles(b)
	x.tracked()
	for i := 0; b.Loop(); i++ {
		x.lay(map[string]string{"d7/f7": strconv.Itoa(i)})
		x.tracked()
	}
}

// manyFiles is a workspace with 100 files in each directory.
func manyFiles(b *testing.B) *bench {
	x := newBench(b)
	n := 50_000
	if s := os.Getenv("WF_BENCH_FILES"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	for i := range n {
		dir := filepath.Join(x.dir, fmt.Sprintf("d%d", i/100))
		if i%100 == 0 {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				b.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d", i%100)), fmt.Appendf(nil, "%d %s", i, "some text of a file\n"), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	return x
}

// tracked is a run of one command that does nothing.
func (b *bench) tracked() {
	p := b.load("wf: 1\nworkspace: {track: true}\nroles: {one: {run: 'true'}}")
	id, _, err := b.e.Begin(context.Background(), engine.Launch{Program: p, Inputs: protocol.JSON("{}"), Workspace: b.dir})
	if err != nil {
		b.t.Fatal(err)
	}
	b.drive(id)
}
