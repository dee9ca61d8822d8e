package pgstore_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"wf/cas"
	"wf/pgstore"
	"wf/protocol"
)

// waiting adds rows of runs that wait: most for a person, the others for a time in the next day.
func waiting(b testing.TB, dsn string, n int) {
	b.Helper()
	sql := fmt.Sprintf(`insert into wf.runs(run, state, due, needs) select 'W' || lpad(i::text, 15, '0'), 'waiting',
		case when i %% 3 = 0 then (extract(epoch from now()) * 1000000)::bigint + 3600000000 + i end, '{}' from generate_series(1, %d) i`, n)
	if err := server.Exec(b.Context(), dsn, sql); err != nil {
		b.Fatal(err)
	}
	if err := server.Exec(b.Context(), dsn, "vacuum analyze wf.runs"); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkIdle is one look of a worker that finds nothing, beside many runs that wait; of its time, what this process uses of a
// core and what the server does.
func BenchmarkIdle(b *testing.B) {
	for _, n := range []int{0, 100_000} {
		b.Run(fmt.Sprint(n, " wait"), func(b *testing.B) {
			dsn := fresh(b, running(b))
			waiting(b, dsn, n)
			s := open(b, dsn)
			due(b, s)
			var before, after syscall.Rusage
			_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
			b.ResetTimer()
			for range b.N {
				if got := must(s.Due(b.Context(), []string{"place:here"}, 32))(b); len(got) > 0 {
					b.Fatal(got)
				}
			}
			b.StopTimer()
			_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
			used := time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
			b.ReportMetric(float64(used.Microseconds())/float64(b.N), "cpu-µs/look")
		})
	}
}

// BenchmarkClaims has two workers claim and release runs that become due at a rate, beside 100,000 that wait. A claim is from the
// moment in which a worker asks what is due to that in which it may drive the run.
func BenchmarkClaims(b *testing.B) {
	const rate = 190 // in a second
	dsn := fresh(b, running(b))
	waiting(b, dsn, 100_000)
	s := open(b, dsn)
	for i := range b.N {
		beginRun(b, s, cas.Standing{Run: protocol.RunID(fmt.Sprint("r", i)), State: protocol.Waiting, Due: 4e15})
	}
	var mu sync.Mutex
	var took []time.Duration
	var all, claims sync.WaitGroup
	left := make(chan struct{})
	for range 2 {
		w := open(b, dsn)
		all.Go(func() {
			for {
				select {
				case <-left:
					return
				default:
				}
				asked := time.Now()
				runs, err := w.Due(b.Context(), nil, 32)
				for _, run := range runs {
					claims.Go(func() {
						c, err := w.Claim(b.Context(), run)
						d := time.Since(asked)
						if err == nil {
							err = c.Release(b.Context())
						}
						if err != nil {
							b.Error(err)
						}
						mu.Lock()
						defer mu.Unlock()
						if took = append(took, d); len(took) == b.N {
							close(left)
						}
					})
				}
				if err == nil && len(runs) == 0 {
					err = w.AwaitDue(b.Context())
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	b.ResetTimer()
	tick := time.NewTicker(time.Second / rate)
	defer tick.Stop()
	var wakes sync.WaitGroup
	for i := range b.N {
		<-tick.C
		wakes.Go(func() {
			if err := s.Commit(b.Context(), cas.Batch{Runs: []cas.Standing{cas.Wake(protocol.RunID(fmt.Sprint("r", i)))}}); err != nil {
				b.Error(err)
			}
		})
	}
	wakes.Wait()
	all.Wait()
	claims.Wait()
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "claims/s")
}

// The look for what is due reads a few pages of an index, however many wait.
func TestALookForDueRunsIsCheap(t *testing.T) {
	dsn := fresh(t, running(t))
	waiting(t, dsn, 100_000)
	plan := must(server.Ask(t.Context(), dsn, `explain (analyze, buffers, timing off) `+strings.NewReplacer("$1", "'{place:here}'::text[]", "$2", "32", "$3", "5000000", "$4", "60000000", "$5", "'{}'").Replace(pgstore.TakeFree)))(t)
	text := strings.Join(plan, "\n")
	t.Log(text)
	var pages int
	for _, line := range plan {
		if at := strings.Index(line, "Buffers: shared hit="); at >= 0 {
			if _, err := fmt.Sscanf(line[at:], "Buffers: shared hit=%d", &pages); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	if !strings.Contains(text, "runs_due") || pages > 10 {
		t.Errorf("%d pages were read", pages)
	}
}
