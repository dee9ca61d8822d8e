package appear_test

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"wf/roles/workspace/appear"
)

// BenchmarkLook begins and ends a span in workspaces of some size: as the first command of a process, where nothing
// changed, and where a file was made.
func BenchmarkLook(b *testing.B) {
	for _, files := range []int{1_000, 10_000, 100_000} {
		p := newPlace(b)
		for i := range files / 10 {
			dir := fmt.Sprintf("node_modules/p%d/lib%d", i/3, i%3)
			p.mkdir(dir)
			for j := range 10 {
				if err := os.WriteFile(fmt.Sprintf("%s/%s/f%d", p.root, dir, j), nil, 0o644); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.Run(fmt.Sprint("first-", files), func(b *testing.B) {
			defer processor(b)()
			for b.Loop() {
				appear.Forget()
				s := p.watch().Begin()
				appear.Settle(p.watch())
				s.End()
			}
		})
		b.Run(fmt.Sprint("unchanged-", files), func(b *testing.B) {
			defer processor(b)()
			for b.Loop() {
				p.watch().Begin().End()
			}
		})
		b.Run(fmt.Sprint("changed-", files), func(b *testing.B) {
			defer processor(b)()
			for b.Loop() {
				s := p.watch().Begin()
				p.write("node_modules/p1/new", "")
				s.End()
				appear.Settle(p.watch())
			}
		})
	}
}

// processor reports the processor time of an operation, which is the same on a busy machine.
func processor(b *testing.B) func() {
	used := func() int64 {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return u.Utime.Nano() + u.Stime.Nano()
	}
	before := used()
	return func() { b.ReportMetric(float64(used()-before)/float64(b.N)/1e6, "cpu-ms/op") }
}
