package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"wf/cas"
	"wf/engine"
	"wf/protocol"
	"wf/roles"
)

// grace is that of a collection beside writers.
const grace = time.Hour

const longYAML = `
wf: 1
name: long
limits: {steps: 200}
roles:
  a: {run: "true"}
edges:
  - {from: START, to: a}
  - {from: a, to: a, limit: 99, on_limit: END}
`

// chatter is a command that says something else each time, about as much as a short answer of a model.
type chatter struct{ n atomic.Uint64 }

func (c *chatter) Perform(context.Context, protocol.Turn, roles.Emit) (protocol.Conclusion, error) {
	rng := rand.New(rand.NewPCG(c.n.Add(1), 2))
	var b strings.Builder
	for b.Len() < 1600 {
		fmt.Fprintf(&b, "word%d ", rng.IntN(100000))
	}
	return protocol.Conclusion{Text: new(b.String())}, nil
}

// manyRuns makes finished runs of 100 steps.
func manyRuns(b *bench, n int) []protocol.RunID {
	b.t.Helper()
	b.e.Performers[protocol.ActRun] = &chatter{}
	p := b.load(longYAML)
	ids := make([]protocol.RunID, n)
	var all sync.WaitGroup
	room := make(chan struct{}, 64)
	for i := range ids {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			id, _, err := b.e.Begin(context.Background(), engine.Launch{Program: p, Source: []byte(longYAML), Inputs: []byte("{}"), Workspace: b.dir})
			if err == nil {
				_, err = b.e.Drive(context.Background(), id, engine.DriveOptions{})
			}
			if err != nil {
				b.t.Error(err)
			}
			ids[i] = id
		})
	}
	all.Wait()
	if b.t.Failed() {
		b.t.FailNow()
	}
	return ids
}

// writer commits events to a run of its own until stop, and tells the longest that one of them took. It has the
// store open as another process does.
func writer(tb testing.TB, dir string) (stop func() (longest time.Duration, n int)) {
	s, err := cas.Open(context.Background(), dir, cas.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	j, err := s.Journal(context.Background(), "writer")
	if err != nil {
		tb.Fatal(err)
	}
	ended, done := make(chan struct{}), make(chan struct{})
	var longest time.Duration
	n := 0
	go func() {
		defer close(done)
		for {
			begun := time.Now()
			if _, err := j.Append(context.Background(), begun.UnixMicro(), []cas.Draft{{Data: protocol.TextSaid{Content: protocol.NewText("x")}}}, nil); err != nil {
				tb.Error(err)
				return
			}
			longest = max(longest, time.Since(begun))
			n++
			select {
			case <-ended:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	return func() (time.Duration, int) {
		close(ended)
		<-done
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
		return longest, n
	}
}

// BenchmarkDeletedRuns deletes 1,000 runs of 100 steps (WF_BENCH_RUNS) beside as many that stay, has their bytes
// collected, and tells what that took and how long a writer in the same store waited for one commit at most.
func BenchmarkDeletedRuns(b *testing.B) {
	count := 1000
	if n, err := strconv.Atoi(os.Getenv("WF_BENCH_RUNS")); err == nil {
		count = n
	}
	for b.Loop() {
		b.StopTimer()
		x := newBench(b)
		manyRuns(x, count/10)
		ids := manyRuns(x, count)
		before, err := inDir(x.e).Size(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		stop := writer(b, x.e.Store.Dir())
		b.StartTimer()
		begun := time.Now()
		var all sync.WaitGroup
		room := make(chan struct{}, 32)
		for _, id := range ids {
			room <- struct{}{}
			all.Go(func() {
				defer func() { <-room }()
				if _, _, err := x.e.Delete(context.Background(), id, engine.Burial{By: "ada"}); err != nil {
					b.Error(err)
				}
			})
		}
		all.Wait()
		deleted := time.Since(begun)
		rm, _ := stop()
		stop = writer(b, x.e.Store.Dir())
		begun = time.Now()
		r, err := cas.GC(context.Background(), inDir(x.e), cas.GCOptions{Grace: grace})
		if err != nil {
			b.Fatal(err)
		}
		took := time.Since(begun)
		gc, n := stop()
		b.ReportMetric(float64(before.File+before.Blobs)/1e6, "MB-before")
		b.ReportMetric(float64(r.After)/1e6, "MB-after")
		b.ReportMetric(deleted.Seconds(), "s-rm")
		b.ReportMetric(float64(rm.Milliseconds()), "ms-wait-rm")
		b.ReportMetric(took.Seconds(), "s-gc")
		b.ReportMetric(float64(gc.Milliseconds()), "ms-wait-gc")
		b.ReportMetric(float64(n), "commits-gc")
	}
}
