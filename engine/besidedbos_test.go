package engine_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"wf/cas"
	"wf/cas/castest"
	"wf/engine"
	"wf/pgstore"
	"wf/pgstore/pgtest"
	"wf/protocol"
	"wf/roles"
)

// instant is a performer that has its result at once.
type instant struct{}

func (instant) Perform(context.Context, protocol.Turn, roles.Emit) (protocol.Conclusion, error) {
	said := "the store keeps"
	return protocol.Conclusion{Text: &said}, nil
}

// acting is a run of n visits that act, one after another.
func acting(n int) string {
	return fmt.Sprintf(`
wf: 1
name: acting
limits: {steps: %d}
roles: {act: {run: 'true'}}
edges: [{from: START, to: act}, {from: act, to: act, limit: %d, on_limit: END}]
`, n+10, n-1)
}

// acts is a bench for acting.
func acts(t testing.TB, dsn string) *bench {
	b := newBench(t)
	b.on(dsn, pgstore.Options{})
	b.e.Performers[protocol.ActRun] = instant{}
	return b
}

// began begins runs of steps that act.
func (b *bench) began(runs, steps int) (ids []protocol.RunID) {
	b.t.Helper()
	p := b.load(acting(steps))
	for range runs {
		id, _, err := b.e.Begin(context.Background(), engine.Launch{Program: p, Source: []byte(acting(steps)), Inputs: protocol.JSON("{}")})
		if err != nil {
			b.t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

// drove drives runs to their end, all at once, and gives the time from before they begin.
func (b *bench) drove(runs, steps int) time.Duration {
	b.t.Helper()
	begun := time.Now()
	ids := b.began(runs, steps)
	b.all(ids)
	return time.Since(begun)
}

func (b *bench) all(ids []protocol.RunID) {
	b.t.Helper()
	var w sync.WaitGroup
	for _, id := range ids {
		w.Go(func() {
			if s, err := b.e.Drive(context.Background(), id, engine.DriveOptions{}); err != nil || s.Status() != protocol.Done {
				b.t.Errorf("run %s: %v, %v", id, s.Status(), err)
			}
		})
	}
	w.Wait()
}

// asks is a process that is asked for something by a line, and answers by one.
type asks struct {
	t   testing.TB
	in  io.WriteCloser
	out *bufio.Scanner
}

// started starts a process that says "ready" when it is.
func started(t testing.TB, cmd *exec.Cmd) *asks {
	t.Helper()
	a := &asks{t: t}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	a.in, a.out = in, bufio.NewScanner(out)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // its end is what the process waits for
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	for a.line() != "ready" {
	}
	return a
}

func (a *asks) line() string {
	a.t.Helper()
	if !a.out.Scan() {
		a.t.Fatal("the process ended: ", a.out.Err())
	}
	return a.out.Text()
}

func (a *asks) ask(format string, args ...any) {
	a.t.Helper()
	if _, err := fmt.Fprintf(a.in, format+"\n", args...); err != nil {
		a.t.Fatal(err)
	}
}

// rates are steps per second of rounds of one load.
type rates []float64

func (r *rates) add(steps int, took time.Duration) { *r = append(*r, float64(steps)/took.Seconds()) }

func (r rates) median() float64 { return slices.Sorted(slices.Values(r))[len(r)/2] }

func (r rates) String() string {
	all := slices.Sorted(slices.Values(r))
	return fmt.Sprintf("%.0f (%.0f–%.0f)", r.median(), all[0], all[len(all)-1])
}

// TestBesideDBOS compares steps per second with those of DBOS, in turns at one server whose data is on a disk. WF_DBOS is a directory with its packages: see
// make bench-postgres.
func TestBesideDBOS(t *testing.T) {
	dbos := os.Getenv("WF_DBOS")
	if dbos == "" {
		t.Skip("make bench-postgres performs it: it takes two minutes, and packages of npm")
	}
	t.Setenv("TMPDIR", "/var/tmp") // a disk
	srv, err := pgtest.Start("shared_buffers='256MB'", "max_connections=100", "max_wal_size='4GB'")
	pgtest.Needed(t, err)
	t.Cleanup(func() {
		if err := srv.Stop(); err != nil {
			t.Error(err)
		}
	})
	theirs, err := srv.Database(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	other := exec.Command("node", filepath.Join(dbos, "steps.js"), strings.Replace(theirs, "@/", "@localhost/", 1)) // its reader of addresses wants a host
	other.Dir = dbos
	beside := started(t, other)
	dsn := newStore(t, srv)
	ours := acts(t, dsn)
	for _, load := range []struct{ runs, steps int }{{1, 1000}, {64, 100}} {
		var a, b, alone rates
		for round := range 6 {
			n := load.runs * load.steps
			mine := ours.drove(load.runs, load.steps)
			beside.ask("%d %d", load.runs, load.steps)
			ms, err := strconv.ParseFloat(beside.line(), 64)
			if err != nil {
				t.Fatal(err)
			}
			kept := stored(t, ours.e.Store, round, load.runs, load.steps)
			if round > 0 { // the first one warms up
				alone.add(n, kept)
				a.add(n, mine)
				b.add(n, time.Duration(ms*float64(time.Millisecond)))
			}
		}
		t.Logf("%d at once, steps/s: wf %s, DBOS %s: %.1f ×; what the store does for a step %s: %.1f ×", load.runs, a, b, a.median()/b.median(), alone, alone.median()/b.median())
	}
	var one, two rates
	for range 5 {
		one.add(64*100, together(t, srv, 1, 64, 100))
		two.add(64*100, together(t, srv, 2, 64, 100))
	}
	t.Logf("64 runs at once, steps/s of workers with one processor: one %s, two %s: %.2f ×", one, two, two.median()/one.median())
}

// stored has journals take what a step says, its end and the beginning of the next one with a text, and gives the time.
func stored(t *testing.T, s engine.Store, round, runs, steps int) time.Duration {
	begun := time.Now()
	var w sync.WaitGroup
	for r := range runs {
		w.Go(func() {
			j, err := s.Journal(t.Context(), protocol.RunID(fmt.Sprint("stored", round, "x", runs, "x", r)))
			for n := 0; err == nil && n < steps; n++ {
				said := fmt.Sprint("the output of step ", n, " of run ", r)
				_, err = j.Append(t.Context(), castest.Now, []cas.Draft{{Step: "a#1", Data: protocol.TextSaid{Content: protocol.NewText(said)}}, {Data: protocol.ResumedBy{By: "someone"}}}, []cas.Block{cas.Raw([]byte(said))})
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	w.Wait()
	return time.Since(begun)
}

// together has workers, processes with one processor each, drive runs that are shared out among them.
func together(t *testing.T, srv *pgtest.Server, workers, runs, steps int) time.Duration {
	dsn := newStore(t, srv)
	var all []*asks
	for range workers {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestAWorkerOfTogether$")
		cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "WF_TOGETHER="+dsn)
		all = append(all, started(t, cmd))
	}
	for _, w := range all {
		w.ask("%d %d", runs/workers, steps)
	}
	for _, w := range all {
		for w.line() != "began" {
		}
	}
	begun := time.Now()
	for _, w := range all {
		w.ask("go")
	}
	for _, w := range all {
		for w.line() != "done" {
		}
	}
	return time.Since(begun)
}

// TestAWorkerOfTogether is a process of TestBesideDBOS.
func TestAWorkerOfTogether(t *testing.T) {
	dsn := os.Getenv("WF_TOGETHER")
	if dsn == "" {
		t.Skip("TestBesideDBOS starts it")
	}
	b := acts(t, dsn)
	in := bufio.NewScanner(os.Stdin)
	fmt.Println("ready")
	in.Scan()
	var runs, steps int
	if _, err := fmt.Sscan(in.Text(), &runs, &steps); err != nil {
		t.Fatal(err)
	}
	ids := b.began(runs, steps)
	fmt.Println("began")
	in.Scan()
	b.all(ids)
	fmt.Println("done")
}

// unlike is a performer that says 512 bytes, never the same.
type unlike struct{ n *atomic.Int64 }

func (p unlike) Perform(context.Context, protocol.Turn, roles.Emit) (protocol.Conclusion, error) {
	said := fmt.Sprintf("%016x %s", sha256.Sum256(fmt.Append(nil, p.n.Add(1))), filler(447))
	return protocol.Conclusion{Text: &said}, nil
}

// BenchmarkTableBytes tells what steps with 512 bytes of output take in the tables of a database, and in the file of a directory: where runs
// have the same outputs, and where each is another.
func BenchmarkTableBytes(b *testing.B) {
	const runs, steps = 20, 200
	for name, workflow := range map[string]string{"the same": pingPong(steps, 512), "others": acting(steps)} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				dsn := newStore(b, pgtest.Shared(b))
				inADatabase, inADirectory := newBench(b).on(dsn, pgstore.Options{}), newBench(b)
				for _, w := range []*bench{inADatabase, inADirectory} {
					w.e.Performers[protocol.ActRun] = unlike{new(atomic.Int64)}
				}
				for range runs {
					for _, w := range []*bench{inADatabase, inADirectory} {
						w.all([]protocol.RunID{begin(b, w, workflow)})
					}
				}
				out, err := pgtest.Shared(b).Ask(b.Context(), dsn, `select sum(pg_total_relation_size(oid)) from pg_class where relnamespace = 'wf'::regnamespace and relkind = 'r'`)
				if err != nil {
					b.Fatal(err)
				}
				tables, err := strconv.ParseFloat(out[0], 64)
				if err != nil {
					b.Fatal(err)
				}
				if err := inDir(inADirectory.e).Close(); err != nil {
					b.Fatal(err)
				}
				fi, err := os.Stat(filepath.Join(inADirectory.dir, ".wf", "store.db"))
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(tables/runs/steps, "table-B/step")
				b.ReportMetric(float64(fi.Size())/runs/steps, "file-B/step")
				b.ReportMetric(tables/float64(fi.Size()), "ratio")
			}
		})
	}
}
