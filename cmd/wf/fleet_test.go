package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"wf/pgstore/pgtest"
	"wf/protocol"
)

// Three workers drive runs of a database with a synchronous standby. Workers are killed and replaced, the primary is killed and the standby
// promoted. Every run, those of sub-workflows too, ends as one that nothing disturbed; what was acknowledged is there; no command and no call of a model that has
// a result is repeated; a client that follows a run sees each event once. WF_FAULTS=1 is 300 runs in place of 24, and six kills in place of
// two; WF_FLEET_SEED chooses which, and after how many calls.
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
	if text := os.Getenv("WF_FLEET_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))

	calm := newFleet(t)
	calm.workers = []*fleetWorker{calm.serve()}
	calm.all(runs)
	calm.settle(runs)
	want := calm.records()
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
	var answered map[protocol.RunID]bool
	var others sync.WaitGroup
	others.Go(func() { begun = f.all(runs) })
	others.Go(func() { answered = f.settle(runs) })
	f.disturb(dice, runs, kills, primary, standby)
	others.Wait()
	if t.Failed() {
		return
	}
	if begun["topic-000"] != followed {
		t.Errorf("a request that was sent again began run %s, before it was %s", begun["topic-000"], followed)
	}
	f.check(begun, answered)
	if got, want := <-seen, string(f.wf("log", string(followed), "--events", "-o", "jsonl")); got != want {
		t.Errorf("a client that followed run %s saw\n%s\nits events are\n%s", followed, got, want)
	}
	if got := f.records(); !maps.Equal(got, want) {
		t.Errorf("the steps are %v, undisturbed %v", got, want)
	}
	f.wf("verify", "--all")
	f.copied()
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
	f.t.Helper()
	total := runs * fleetCalls
	await := func(calls int) { f.until(func() bool { return f.known() >= calls }) }
	for k := range kills {
		await(total*k/kills + 1 + dice.IntN(total/kills))
		i := dice.IntN(len(f.workers))
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

// check looks for what was acknowledged, and for what was done although it had a result. Each result is in the journal once.
func (f *fleet) check(begun map[string]protocol.RunID, answered map[protocol.RunID]bool) {
	f.t.Helper()
	calls, commands, events, resumed := 0, 0, 0, 0
	none := func(what string, times []time.Time, result time.Time) {
		f.t.Helper()
		if len(times) == 0 {
			f.t.Errorf("%s has a result, and was never begun", what)
		}
		for _, at := range times {
			if at.After(result) {
				f.t.Errorf("%s was begun again at %s, its result is of %s", what, at, result)
			}
		}
	}
	acts, all := f.acts(), f.list()
	if len(all) != 2*len(begun) {
		f.t.Errorf("%d runs with those of sub-workflows, want %d", len(all), 2*len(begun))
	}
	for _, r := range all {
		topic, role, results := f.topicOf(r), "plan", map[string][]time.Time{}
		if r.Parent != "" {
			role = "think"
		}
		for _, e := range f.events(r.ID) {
			events++
			switch e.Type {
			case protocol.EvResumed:
				resumed++
			case protocol.EvAnswered:
				results["answer"] = append(results["answer"], e.TS)
			case protocol.EvStepCompleted:
				results[e.Step] = append(results[e.Step], e.TS)
			case protocol.EvToolCall:
				results[role+" 0"] = append(results[role+" 0"], e.TS)
			case protocol.EvText:
				results[role+" 1"] = append(results[role+" 1"], e.TS)
			}
		}
		want := []string{"think#1", "think 0", "think 1"}
		if role == "plan" {
			want = []string{"answer", "plan#1", "plan 0", "plan 1", "list#1", "build#1[0]", "build#1[1]", "build#1[2]", "asks#1", "part#1", "last#1"}
			if begun[topic] != r.ID {
				f.t.Errorf("%s is run %s, and %s was begun", topic, r.ID, begun[topic])
			}
		}
		for _, what := range want {
			if n := len(results[what]); n != 1 {
				f.t.Errorf("%s, run %s: %s has %d results", topic, r.ID, what, n)
				continue
			}
			switch of := topic + " " + what; {
			case strings.HasPrefix(what, "build#") || what == "last#1":
				commands += len(acts[of])
				none(of, acts[of], results[what][0])
			case strings.HasSuffix(what, " 0") || strings.HasSuffix(what, " 1"):
				calls += len(f.asked[of])
				none(of, f.asked[of], results[what][0])
			}
		}
	}
	if calls != f.known() {
		f.t.Errorf("%d calls of models were made, of which %d have a place", f.known(), calls)
	}
	for run := range answered {
		if !slices.Contains(slices.Collect(maps.Values(begun)), run) {
			f.t.Errorf("run %s took an answer, and was not begun", run)
		}
	}
	f.t.Logf("%d runs, %d answers taken: %d events, gone on with %d times; %d calls of models, %d needed; %d commands, %d needed", len(begun), len(answered), events, resumed, calls, fleetCalls*len(begun), commands, 4*len(begun))
}

// copied brings the runs into a directory, and from there into another database: ids, heads and so all records are the same.
func (f *fleet) copied() {
	f.t.Helper()
	heads := func() map[protocol.RunID]string {
		out := map[protocol.RunID]string{}
		for _, r := range f.list() {
			out[r.ID] = fmt.Sprint(r.Status, " ", r.Head)
		}
		return out
	}
	want, from := heads(), f.store
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
