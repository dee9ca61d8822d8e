package pgstore_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"wf/cas"
	"wf/cas/castest"
	"wf/protocol"
)

// BenchmarkCommit appends what a step writes, an event pair with a payload, to one run after another or to 64 at once.
func BenchmarkCommit(b *testing.B) {
	for _, runs := range []int{1, 64} {
		b.Run(fmt.Sprint(runs, " runs"), func(b *testing.B) {
			dsn := fresh(b, running(b))
			s := open(b, dsn)
			var left atomic.Int64
			left.Store(int64(b.N))
			var writers sync.WaitGroup
			b.ResetTimer()
			for r := range runs {
				writers.Go(func() {
					j, err := s.Journal(b.Context(), protocol.RunID(fmt.Sprint("r", r)))
					for n := 0; err == nil && left.Add(-1) >= 0; n++ {
						said := fmt.Sprint("the output of step ", n, " of run ", r)
						_, err = j.Append(b.Context(), castest.Now, []cas.Draft{{Step: "a#1", Data: protocol.TextSaid{Content: protocol.NewText(said)}}, {Data: protocol.ResumedBy{By: "someone"}}},
							[]cas.Block{cas.Raw([]byte(said))})
					}
					if err != nil {
						b.Error(err)
					}
				})
			}
			writers.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
		})
	}
}
