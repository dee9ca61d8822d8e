package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"wf/pgstore/pgtest"
	"wf/protocol"
)

// Three workers drive runs of a database with a synchronous standby. Workers are killed and replaced, the primary is killed and the standby
// promoted. Every run ends as one that nothing disturbed; what was acknowledged is there; nothing that has a result is done again; a client that follows a run sees
// each event once. WF_FAULTS=1 is 300
// runs in place of 24, and six kills in place of two.
func TestAFleetLosesWorkersAndItsDatabase(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("waits for a lease")
	}
	runs, kills := 24, 2
	if os.Getenv("WF_FAULTS") != "" {
		runs, kills = 300, 6
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))

	calm := newFleet(t)
	calm.workers = []*fleetWorker{calm.serve()}
	first := calm.all(runs)
	calm.settle(runs)
	calm.workers[0].kill()

	f := newFleet(t)
	primary := pgtest.Own(t)
	dsn, err := primary.Database(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	standby, err := primary.Standby(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := standby.Stop(); err != nil {
			t.Error(err)
		}
	})
	name, _, _ := strings.Cut(strings.TrimPrefix(dsn, "postgres://wf@/"), "?")
	f.store = pgtest.DSN(name, primary, standby)
	f.wf("store", "init")
	for range 3 {
		f.workers = append(f.workers, f.serve())
	}
	followed := f.begin("topic-000")
	seen := f.follow(followed)
	var begun map[string]protocol.RunID
	var beginning sync.WaitGroup
	beginning.Go(func() { begun = f.all(runs) })
	disturbed := make(chan struct{})
	go func() {
		defer close(disturbed)
		f.disturb(dice, runs, kills, primary, standby)
	}()
	beginning.Wait()
	answered := f.settle(runs)
	<-disturbed
	f.check(begun, answered)
	if got, want := <-seen, string(f.wf("log", string(followed), "--events", "-o", "jsonl")); got != want {
		t.Errorf("a client that followed run %s saw\n%s\nits events are\n%s", followed, got, want)
	}
	for topic, run := range begun {
		if got, want := f.records(run), calm.records(first[topic]); !maps.Equal(got, want) {
			t.Errorf("%s, run %s: its steps are %v, undisturbed %v", topic, run, got, want)
		}
	}
	f.wf("verify", "--all")
	f.copied(begun)
}

// all begins runs, several at once, and gives them by topic.
func (f *fleet) all(n int) map[string]protocol.RunID {
	f.t.Helper()
	out := map[string]protocol.RunID{}
	var mu sync.Mutex
	var starting sync.WaitGroup
	for part := range 4 {
		starting.Go(func() {
			for i := part; i < n; i += 4 {
				topic := fmt.Sprintf("topic-%03d", i)
				run := f.begin(topic)
				mu.Lock()
				out[topic] = run
				mu.Unlock()
			}
		})
	}
	starting.Wait()
	return out
}

// disturb kills workers, and in the middle of it the primary, each when some more calls of models were made.
func (f *fleet) disturb(dice *rand.Rand, runs, kills int, primary, standby *pgtest.Server) {
	total := runs * fleetCalls
	await := func(calls int) {
		for tick := time.NewTicker(10 * time.Millisecond); f.known() < calls; <-tick.C {
		}
	}
	for k := range kills {
		await(total*k/kills + 1 + dice.IntN(total/kills))
		i := 1 + dice.IntN(len(f.workers)-1) // a client follows a run at the first
		f.t.Logf("after %d calls worker %d is killed", f.known(), i)
		f.workers[i].kill()
		another := f.serve()
		f.mu.Lock()
		f.workers[i] = another
		f.mu.Unlock()
		if k != kills/2-1 {
			continue
		}
		await(f.known() + dice.IntN(total/kills/2))
		f.t.Logf("after %d calls the primary is killed", f.known())
		if err := primary.Kill(); err != nil {
			f.t.Error(err)
		}
		if err := standby.Promote(f.t.Context()); err != nil {
			f.t.Error(err)
		}
	}
}

// check looks for what was acknowledged, and for what was done although it had a result.
func (f *fleet) check(begun map[string]protocol.RunID, answered map[protocol.RunID]bool) {
	f.t.Helper()
	acts := f.acts()
	again, tries := 0, 0
	for topic, run := range begun {
		answers := 0
		ended := map[string]time.Time{} // steps
		said := map[string]time.Time{}  // answers of models, by how many results they follow
		for _, e := range f.events(run) {
			switch e.Type {
			case protocol.EvAnswered:
				answers++
			case protocol.EvStepCompleted:
				ended[e.Step] = e.TS
			case protocol.EvToolCall:
				said[topic+" plan 0"] = e.TS
			case protocol.EvText:
				said[topic+" plan 1"] = e.TS
			}
		}
		if answers > 1 || answered[run] && answers == 0 {
			f.t.Errorf("run %s has %d answers, one was taken: %v", run, answers, answered[run])
		}
		for step, at := range ended {
			tries += len(acts[topic+" "+step])
			for _, began := range acts[topic+" "+step] {
				if began.After(at) {
					again++
					f.t.Errorf("%s: %s was done again at %s, its result is of %s", topic, step, began, at)
				}
			}
		}
		f.mu.Lock()
		for place, at := range said {
			for _, when := range f.asked[place] {
				if when.After(at) {
					again++
					f.t.Errorf("%s was asked again at %s, the answer is of %s", place, when, at)
				}
			}
		}
		f.mu.Unlock()
	}
	f.t.Logf("%d runs: %d calls of models, %d needed; %d commands, %d needed; %d of them had a result", len(begun), f.known(), fleetCalls*len(begun), tries, 4*len(begun), again)
}

// copied brings the runs into a directory, and from there into another database: ids and records are the same.
func (f *fleet) copied(begun map[string]protocol.RunID) {
	f.t.Helper()
	heads := func() map[string]string {
		out := map[string]string{}
		for _, r := range f.list() {
			out[string(r.ID)] = fmt.Sprint(r.Status, " ", r.Head)
		}
		return out
	}
	want, from := heads(), f.store
	if len(want) != len(begun) {
		f.t.Errorf("%d runs, want %d", len(want), len(begun))
	}
	other := pgtest.Own(f.t)
	dsn, err := other.Database(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	for _, to := range []string{filepath.Join(f.dir, "copied"), dsn} {
		if f.store = to; to == dsn {
			f.wf("store", "init")
		}
		if out, err := wfIn(f.dir, "store", "copy", from, to).CombinedOutput(); err != nil {
			f.t.Fatalf("wf store copy: %v\n%s", err, out)
		}
		f.wf("verify", "--all")
		if got := heads(); !maps.Equal(got, want) {
			f.t.Errorf("the runs at %s are %v, want %v", to, got, want)
		}
		from = to
	}
}
