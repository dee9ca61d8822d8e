package pgstore_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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

// BenchmarkClaim claims runs and releases them, one after another or 64 at once.
func BenchmarkClaim(b *testing.B) {
	for _, at := range []int{1, 64} {
		b.Run(fmt.Sprint(at, " at once"), func(b *testing.B) {
			dsn := fresh(b, running(b))
			s := open(b, dsn)
			var n atomic.Int64
			var mu sync.Mutex
			var took []time.Duration
			var claims sync.WaitGroup
			b.ResetTimer()
			for range at {
				claims.Go(func() {
					for i := n.Add(1); i <= int64(b.N); i = n.Add(1) {
						begun := time.Now()
						c, err := s.Claim(b.Context(), protocol.RunID(fmt.Sprint("r", i)))
						d := time.Since(begun)
						if err == nil {
							err = c.Release(b.Context())
						}
						if err != nil {
							b.Error(err)
							return
						}
						mu.Lock()
						took = append(took, d)
						mu.Unlock()
					}
				})
			}
			claims.Wait()
			slices.Sort(took)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "claims/s")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}
