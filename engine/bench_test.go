package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"wf/cas"
	"wf/engine"
	"wf/engine/rules"
	"wf/protocol"
)

// pingPong is a run of n steps: two set roles that hand over to each other. The text makes a
// step's output pad bytes long.
func pingPong(n, pad int) string {
	return fmt.Sprintf(`
wf: 1
name: ping-pong
limits: {steps: %d}
roles:
  ping: {set: {n: "${{ (steps.pong?.output.n ?? 0) + 1 }}", pad: %q}}
  pong: {set: {n: "${{ output.n + 1 }}", pad: %q}}
edges:
  - {from: START, to: ping}
  - {from: ping, to: pong}
  - {from: pong, to: END, when: output.n >= %d}
  - {from: pong, to: ping, limit: %d}
`, n+10, filler(pad), filler(pad), n, n)
}

// filler is text that compresses about as well as prose does.
func filler(n int) string {
	words := strings.Fields("the store keeps every block by the hash of its bytes and a head moves only from the value that the writer last saw so nothing is lost when a process is killed in the middle of a step")
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%s%x ", words[(i*i+3*i)%len(words)], i*2654435761%65536)
	}
	return b.String()[:n]
}

func begin(b testing.TB, w *bench, yaml string) protocol.RunID {
	b.Helper()
	p := w.load(yaml)
	in, err := p.Inputs(nil)
	if err != nil {
		b.Fatal(err)
	}
	id, _, err := w.e.Begin(context.Background(), engine.Launch{Program: p, Source: []byte(yaml), Inputs: in})
	if err != nil {
		b.Fatal(err)
	}
	return id
}

func drive(b *testing.B, w *bench, id protocol.RunID, want protocol.RunStatus) {
	b.Helper()
	s, err := w.e.Drive(context.Background(), id, engine.DriveOptions{})
	if err != nil {
		b.Error(err)
	} else if s.Status() != want {
		b.Errorf("%s: %s", s.Status(), s.Reason())
	}
}

// rawCommits is how many bare bbolt transactions of size bytes a second make it to this disk.
func rawCommits(b *testing.B, size int) float64 {
	b.Helper()
	db, err := bolt.Open(filepath.Join(b.TempDir(), "raw.db"), 0o600, &bolt.Options{NoStatistics: true})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	const n = 500
	value := []byte(filler(size))
	start := time.Now()
	for i := range n {
		err := db.Update(func(tx *bolt.Tx) error {
			k, err := tx.CreateBucketIfNotExists([]byte("b"))
			if err != nil {
				return err
			}
			return k.Put(fmt.Appendf(nil, "%08d", i), value)
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	return n / time.Since(start).Seconds()
}

func BenchmarkSteps(b *testing.B) {
	b.Run("sequential", func(b *testing.B) {
		const steps = 2000
		for range b.N {
			w := newBench(b)
			id := begin(b, w, pingPong(steps, 16))
			before := rawCommits(b, 900)
			start, busy := time.Now(), cpu(b)
			drive(b, w, id, protocol.Done)
			rate := steps / time.Since(start).Seconds()
			b.ReportMetric((cpu(b)-busy)/steps*1e6, "cpu-µs/step")
			raw := (before + rawCommits(b, 900)) / 2
			b.ReportMetric(rate, "steps/s")
			b.ReportMetric(raw, "raw-commits/s")
			b.ReportMetric(rate/raw, "ratio")
		}
	})
	b.Run("runs64", func(b *testing.B) {
		const runs, steps = 64, 200
		for range b.N {
			alone := newBench(b)
			id := begin(b, alone, pingPong(steps*5, 16))
			start := time.Now()
			drive(b, alone, id, protocol.Done)
			sequential := steps * 5 / time.Since(start).Seconds()

			w := newBench(b)
			var ids []protocol.RunID
			for range runs {
				ids = append(ids, begin(b, w, pingPong(steps, 16)))
			}
			busy := cpu(b)
			start = time.Now()
			var wg sync.WaitGroup
			for _, id := range ids {
				wg.Go(func() { drive(b, w, id, protocol.Done) })
			}
			wg.Wait()
			rate := runs * steps / time.Since(start).Seconds()
			b.ReportMetric((cpu(b)-busy)/runs/steps*1e6, "cpu-µs/step")
			b.ReportMetric(rate, "steps/s")
			b.ReportMetric(rate/sequential, "x-sequential")
		}
	})
}

// BenchmarkBytes tells what 2,000 steps with 512 bytes of output take.
func BenchmarkBytes(b *testing.B) {
	const steps = 2000
	for range b.N {
		w := newBench(b)
		id := begin(b, w, pingPong(steps, 512))
		drive(b, w, id, protocol.Done)
		if err := inDir(w.e).Close(); err != nil {
			b.Fatal(err)
		}
		fi, err := os.Stat(filepath.Join(w.dir, ".wf", "store.db"))
		if err != nil {
			b.Fatal(err)
		}
		live := liveBytes(b, filepath.Join(w.dir, ".wf", "store.db"))
		b.ReportMetric(float64(live)/steps, "live-B/step")
		b.ReportMetric(float64(fi.Size())/steps, "file-B/step")
		b.ReportMetric(float64(fi.Size())/float64(live), "file/live")
	}
}

// liveBytes sums the keys and values of a database.
func liveBytes(b *testing.B, file string) (n int) {
	b.Helper()
	db, err := bolt.Open(file, 0o600, &bolt.Options{ReadOnly: true})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	var count func(*bolt.Bucket) error
	count = func(k *bolt.Bucket) error {
		return k.ForEach(func(key, v []byte) error {
			n += len(key) + len(v)
			if v == nil {
				return count(k.Bucket(key))
			}
			return nil
		})
	}
	err = db.View(func(tx *bolt.Tx) error {
		return tx.ForEach(func(_ []byte, k *bolt.Bucket) error { return count(k) })
	})
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// long is a store with a run that was suspended after n steps.
func long(b *testing.B, n int) (*bench, protocol.RunID) {
	b.Helper()
	w := newBench(b)
	yaml := strings.Replace(pingPong(1<<20, 16), fmt.Sprintf("steps: %d", 1<<20+10), fmt.Sprintf("steps: %d", n), 1)
	id := begin(b, w, yaml)
	drive(b, w, id, protocol.Suspended)
	if err := inDir(w.e).Close(); err != nil {
		b.Fatal(err)
	}
	return w, id
}

func BenchmarkResume(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		b.Run(fmt.Sprintf("%dk", n/1000), func(b *testing.B) {
			w, id := long(b, n)
			b.ResetTimer()
			var total time.Duration
			for range b.N {
				start := time.Now()
				s, err := cas.Open(context.Background(), filepath.Join(w.dir, ".wf"), cas.Options{})
				if err != nil {
					b.Fatal(err)
				}
				e := &engine.Engine{Store: s}
				state, err := e.State(context.Background(), id)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := state.Next(); err != nil {
					b.Fatal(err)
				}
				total += time.Since(start)
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(total.Microseconds())/1000/float64(b.N), "ms")
		})
	}
}

func BenchmarkFold(b *testing.B) {
	b.Run("10k", func(b *testing.B) {
		w, id := long(b, 10000)
		s, err := cas.Open(context.Background(), filepath.Join(w.dir, ".wf"), cas.Options{})
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		read := func(l protocol.Link) ([]byte, error) { return s.Block(context.Background(), l) }
		b.ResetTimer()
		for range b.N {
			if _, err := rules.Fold(engine.Records(read), s.After(context.Background(), id, 0)); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms")
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(m.Sys)/(1<<20), "MB-sys")
	})
}
