package cas_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"wf/cas"
	"wf/cas/castest"
	"wf/protocol"
)

// stepRun writes what the engine writes for a run of set steps: each commit holds the payload,
// the StepRecord, step_completed, and step_started of the next.
type stepRun struct {
	j      *cas.Journal
	rng    *rand.Rand
	start  protocol.Link
	parent protocol.Link
	k      int
}

func newStepRun(tb testing.TB, s *cas.Store, id protocol.RunID, seed uint64) *stepRun {
	j, err := s.Journal(context.Background(), id)
	if err != nil {
		tb.Fatal(err)
	}
	start := cas.Raw(fmt.Append(nil, "start ", id)).Link
	return &stepRun{j: j, rng: rand.New(rand.NewPCG(seed, 1)), start: start, parent: start}
}

// text is n bytes like what people and models write: words, unevenly frequent.
func text(rng *rand.Rand, n int) string {
	words := strings.Fields("the of to and a in is it that test fails package function error returns nil value when file line with main go run expected got want module build fixed because module check handler context request response write read store event step")
	var b strings.Builder
	for b.Len() < n {
		w := words[min(int(rng.ExpFloat64()*12), len(words)-1)]
		if rng.IntN(6) == 0 {
			w = fmt.Sprintf("%s%d", w[:1], rng.IntN(100000))
		}
		b.WriteString(w + " ")
	}
	return b.String()[:n]
}

func (r *stepRun) step(ctx context.Context) error {
	out := cas.Raw([]byte(`{"text":"` + text(r.rng, 501) + `"}`))
	rec, err := cas.Encode(protocol.StepRecord{
		Kind: protocol.KindStep, V: 1, Start: r.start, Parents: []protocol.Link{r.parent}, Role: "count", Visit: r.k + 1,
		Edge: 1, Via: protocol.ViaEdge, Resumes: r.parent, Data: out.Link, Status: protocol.StepOK,
	})
	if err != nil {
		return err
	}
	r.k++
	_, err = r.j.Append(ctx, castest.Now+int64(r.k)*1234, []cas.Draft{
		{Step: fmt.Sprintf("count#%d", r.k), Data: protocol.StepCompleted{Record: rec.Link, Status: protocol.StepOK}},
		{Step: fmt.Sprintf("count#%d", r.k+1), Data: protocol.StepStarted{
			Start: r.start, Parents: []protocol.Link{rec.Link}, Role: "count", Visit: r.k + 1, Edge: 1, Via: protocol.ViaEdge,
			Resumes: rec.Link, Attempt: 1,
		}},
	}, []cas.Block{out, rec})
	r.parent = rec.Link
	return err
}

func benchStore(b *testing.B) *cas.Store {
	s, err := cas.Open(b.Context(), filepath.Join(b.TempDir(), "store"), cas.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return s
}

// BenchmarkCommit is one run whose steps are durable one by one, beside a bare bbolt
// transaction that stores as many bytes.
func BenchmarkCommit(b *testing.B) {
	ctx := b.Context()
	db, err := bolt.Open(filepath.Join(b.TempDir(), "raw.db"), 0o600, &bolt.Options{FreelistType: bolt.FreelistMapType, NoStatistics: true})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	r := newStepRun(b, benchStore(b), "r1", 1)
	var steps, raw float64
	value := make([]byte, 800)
	// In turns, so that both meet the same disk.
	for i := 0; b.Loop(); i++ {
		began := time.Now()
		if err := r.step(ctx); err != nil {
			b.Fatal(err)
		}
		mid := time.Now()
		err := db.Update(func(tx *bolt.Tx) error {
			bk, err := tx.CreateBucketIfNotExists([]byte("b"))
			if err != nil {
				return err
			}
			return bk.Put(fmt.Appendf(nil, "%08d", i), value)
		})
		if err != nil {
			b.Fatal(err)
		}
		steps += mid.Sub(began).Seconds()
		raw += time.Since(mid).Seconds()
	}
	n := float64(b.N)
	b.ReportMetric(n/steps, "commits/s")
	b.ReportMetric(n/raw, "raw-commits/s")
	b.ReportMetric(raw/steps, "ratio")
}

// BenchmarkCommit64 is 64 runs at once; they share transactions.
func BenchmarkCommit64(b *testing.B) {
	s, ctx := benchStore(b), b.Context()
	var runs []*stepRun
	for i := range 64 {
		runs = append(runs, newStepRun(b, s, protocol.RunID(fmt.Sprint("r", i)), uint64(i)))
	}
	const each = 20
	steps := 0
	for b.Loop() {
		var wg sync.WaitGroup
		for _, r := range runs {
			wg.Go(func() {
				for range each {
					if err := r.step(ctx); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		steps += each * len(runs)
	}
	b.ReportMetric(float64(steps)/b.Elapsed().Seconds(), "commits/s")
}

// BenchmarkReplay reads, hashes and decodes a journal in order.
func BenchmarkReplay(b *testing.B) {
	b.Run("10k", func(b *testing.B) {
		s := benchStore(b)
		r := newStepRun(b, s, "r1", 1)
		for range 5000 {
			if err := r.step(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportAllocs()
		events := 0
		for b.Loop() {
			for _, err := range s.After(b.Context(), "r1", 0) {
				if err != nil {
					b.Fatal(err)
				}
				events++
			}
		}
		b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
	})
}

// BenchmarkSize reports what a step with 512 bytes of output takes: live is what the entries
// of the database take with their heads, file the length of the file.
func BenchmarkSize(b *testing.B) {
	const steps = 2000
	for b.Loop() {
		s := benchStore(b)
		r := newStepRun(b, s, "r1", 1)
		for range steps {
			if err := r.step(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		size, err := s.Size(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		live := size.Live
		b.ReportMetric(float64(live)/steps, "live-B/step")
		b.ReportMetric(float64(size.File)/steps, "file-B/step")
		b.ReportMetric(float64(size.File)/float64(live), "file/live")
	}
}
