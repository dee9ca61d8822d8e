package engine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"wf/api"
	"wf/protocol"
)

// wide is a fan-out of n items that only take values over.
func wide(n int) string {
	return fmt.Sprintf(`
wf: 1
name: wide
limits: {steps: %d}
roles:
  list: {set: {items: "${{ 1..%d }}"}}
  one: {set: {n: "${{ item }}"}}
  last: {set: {n: "${{ len(output) }}"}}
edges:
  - {from: START, to: list}
  - {from: list, to: one, for_each: output.items}
  - {from: one, to: last}
  - {from: last, to: END}
`, n+10, n)
}

// cpu is what this process has used so far, in seconds.
func cpu(b *testing.B) float64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// What ten times the items cost, in CPU time and in bytes of the store: in proportion it is 10.
func BenchmarkFanOut(b *testing.B) {
	run := func(n int) (seconds, bytes float64) {
		w := newBench(b)
		id := begin(b, w, wide(n))
		before := cpu(b)
		drive(b, w, id, protocol.Done)
		seconds = cpu(b) - before
		if err := inDir(w.e).Close(); err != nil {
			b.Fatal(err)
		}
		err := filepath.Walk(filepath.Join(w.dir, ".wf"), func(_ string, fi os.FileInfo, err error) error {
			if err == nil {
				bytes += float64(fi.Size())
			}
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
		return seconds, bytes
	}
	for range b.N {
		run(1000)
		s1, b1 := run(1000)
		s10, b10 := run(10000)
		b.ReportMetric(s10/s1, "cpu-ratio")
		b.ReportMetric(b10/b1, "bytes-ratio")
		b.ReportMetric(s10, "cpu-s")
		b.ReportMetric(b10/1e6, "MB")
	}
}

// BenchmarkLongLoop is what a step costs late in a run, beside one early in it: CPU time of 1,000
// steps around the 16,000th and around the 1,000th.
func BenchmarkLongLoop(b *testing.B) {
	for range b.N {
		w := newBench(b)
		id := begin(b, w, pingPong(16600, 16))
		steps, marks := 0, map[int]float64{}
		w.e.Watch = func(n api.Update) {
			if _, ok := n.Data.(protocol.StepCompleted); ok {
				if steps++; steps%500 == 0 {
					marks[steps] = cpu(b)
				}
			}
		}
		drive(b, w, id, protocol.Done)
		early, late := marks[1500]-marks[500], marks[16500]-marks[15500]
		b.ReportMetric(late/early, "ratio")
		b.ReportMetric(late*1000, "µs/step")
	}
}
