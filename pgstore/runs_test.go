package pgstore_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"wf/cas"
	"wf/cas/castest"
	"wf/pgstore"
	"wf/protocol"
)

// beginRun writes the first event of a run together with where it is.
func beginRun(t testing.TB, s *pgstore.Store, x cas.Standing) *cas.Journal {
	t.Helper()
	j := must(s.Journal(t.Context(), x.Run))(t)
	move(t, j, x)
	return j
}

// move writes one more event.
func move(t testing.TB, j *cas.Journal, x cas.Standing) {
	t.Helper()
	st := must(j.Stage(castest.Now, []cas.Draft{{Data: protocol.ResumedBy{By: "someone"}}}, nil))(t)
	st.Stands(x)
	must(j.Commit(t.Context(), st))(t)
}

// row is what is noted of a run: state, due (never, now, or later), woken, parent, needs.
func row(t testing.TB, dsn string, run protocol.RunID) string {
	t.Helper()
	out := must(server.Ask(t.Context(), dsn, fmt.Sprintf(`select concat_ws(' ', state, case when due is null then 'never' when due <= extract(epoch from now())*1e6 then 'now' else 'later' end,
		case when woken then 'woken' end, parent, needs) from wf.runs where run = '%s'`, run)))(t)
	return strings.Join(out, "|")
}

func due(t testing.TB, s *pgstore.Store, have ...string) []protocol.RunID {
	t.Helper()
	out := must(s.Due(t.Context(), have, 32))(t)
	slices.Sort(out)
	return out
}

func TestWhereRunsAre(t *testing.T) {
	dsn, ctx := fresh(t, running(t)), t.Context()
	s := open(t, dsn)
	is := func(run protocol.RunID, want string) {
		t.Helper()
		if got := row(t, dsn, run); got != want {
			t.Errorf("run %s is %q, want %q", run, got, want)
		}
	}
	j := beginRun(t, s, cas.Standing{Run: "a", State: protocol.Running, Due: cas.DueSoon})
	is("a", "running later {}")
	move(t, j, cas.Standing{Run: "a", State: protocol.Running, Due: cas.DueNow, Needs: []string{"place:m", "gpu"}})
	is("a", "running now {place:m,gpu}")
	move(t, j, cas.Standing{Run: "a", State: protocol.Waiting, Needs: []string{"gpu"}})
	is("a", "waiting never {gpu}")
	move(t, j, cas.Standing{Run: "a", State: protocol.Waiting, Due: 4e15})
	is("a", "waiting later {}")
	beginRun(t, s, cas.Standing{Run: "child", State: protocol.Running, Parent: "a"})
	is("child", "running never a {}")

	// News that is no event of the run stays news until the run is given out, whatever its driver writes meanwhile.
	if err := s.Commit(ctx, cas.Batch{Runs: []cas.Standing{cas.Wake("a")}}); err != nil {
		t.Fatal(err)
	}
	is("a", "waiting now woken {}")
	move(t, j, cas.Standing{Run: "a", State: protocol.Waiting})
	is("a", "waiting now woken {}")
	if got := due(t, s); !slices.Equal(got, []protocol.RunID{"a"}) {
		t.Errorf("due: %v", got)
	}
	is("a", "waiting later {}")

	// Where the batch does not move the run it says what that follows from, and is refused once the run has gone on.
	seen, _ := j.Head()
	still := cas.Standing{Run: "a", State: protocol.Waiting, At: seen}
	if err := s.Commit(ctx, cas.Batch{Runs: []cas.Standing{still}}); err != nil {
		t.Fatal(err)
	}
	is("a", "waiting never {}")
	move(t, j, cas.Standing{Run: "a", State: protocol.Running, Due: cas.DueNow})
	if err := s.Commit(ctx, cas.Batch{Runs: []cas.Standing{still}}); !errors.Is(err, protocol.ErrHeadMoved) {
		t.Errorf("what follows from an older event: %v", err)
	}
	is("a", "running now {}")

	// A batch that is refused says nothing.
	late := must(s.Journal(ctx, "a"))(t)
	st := must(late.Stage(castest.Now, []cas.Draft{{Data: protocol.ResumedBy{By: "late"}}}, nil))(t)
	st.Stands(cas.Standing{Run: "a", State: protocol.Suspended})
	move(t, j, cas.Standing{Run: "a", State: protocol.Done})
	if _, err := late.Commit(ctx, st); !errors.Is(err, protocol.ErrHeadMoved) {
		t.Errorf("late: %v", err)
	}
	is("a", "done never {}")
	if err := s.Commit(ctx, cas.Batch{Runs: []cas.Standing{cas.Wake("a")}}); err != nil { // there is nothing left to drive
		t.Fatal(err)
	}
	is("a", "done never {}")

	// What is known of a run goes with it.
	h := must(s.Head(ctx, protocol.RunHead("a")))(t)
	d := must(cas.Bury(h, protocol.Tombstone{By: "someone"}))(t)
	if err := s.Commit(ctx, cas.Batch{Deletes: []cas.Deletion{d}}); err != nil {
		t.Fatal(err)
	}
	is("a", "")
	for _, bad := range []cas.Standing{{Run: "b\x00", State: protocol.Running}, {Run: "b", State: protocol.Running, Needs: []string{"a,b"}},
		{Run: "b", State: protocol.Running, Needs: []string{strings.Repeat("x", 2000)}}} {
		if err := s.Commit(ctx, cas.Batch{Runs: []cas.Standing{bad}}); !errors.Is(err, protocol.ErrUsage) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func TestDueRunsAreThoseThatCanBeDrivenHere(t *testing.T) {
	dsn := fresh(t, running(t))
	s := open(t, dsn)
	for run, needs := range map[protocol.RunID][]string{"any": nil, "here": {"place:here"}, "there": {"place:there"}, "gpu": {"gpu", "place:here"}} {
		beginRun(t, s, cas.Standing{Run: run, State: protocol.Running, Due: cas.DueNow, Needs: needs})
	}
	beginRun(t, s, cas.Standing{Run: "later", State: protocol.Waiting, Due: 4e15})
	if got := due(t, s, "place:here", "docker"); !slices.Equal(got, []protocol.RunID{"any", "here"}) {
		t.Errorf("without a GPU: %v", got)
	}
	if got := due(t, s, "gpu", "place:here", "place:there"); !slices.Equal(got, []protocol.RunID{"gpu", "there"}) {
		t.Errorf("what was given out is given out again, or not what is left: %v", got)
	}
	if got := due(t, s, "gpu", "place:here", "place:there"); len(got) > 0 {
		t.Errorf("nothing is left: %v", got)
	}
}

// Many that look at once are given other runs, all of them, and nobody waits.
func TestEachDueRunIsGivenOutOnce(t *testing.T) {
	dsn := fresh(t, running(t))
	const lookers, runs = 4, 200
	s := open(t, dsn)
	for i := range runs {
		beginRun(t, s, cas.Standing{Run: protocol.RunID(fmt.Sprint("r", i)), State: protocol.Running, Due: cas.DueNow})
	}
	var mu sync.Mutex
	given := map[protocol.RunID]int{}
	var all sync.WaitGroup
	for range lookers {
		other := open(t, dsn)
		all.Go(func() {
			for {
				got, err := other.Due(t.Context(), nil, 7)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				for _, run := range got {
					given[run]++
				}
				over := len(given) == runs
				mu.Unlock()
				if over || err != nil {
					return
				}
			}
		})
	}
	all.Wait()
	for run, n := range given {
		if n != 1 {
			t.Errorf("run %s was given out %d times", run, n)
		}
	}
}

// What a worker had claimed that has died is given out by those that live, also where its row is gone.
func TestRunsOfDeadWorkersAreGivenOut(t *testing.T) {
	dsn := fresh(t, running(t))
	s := must(pgstore.Open(t.Context(), dsn, pgstore.Options{Poll: 20 * time.Millisecond, Lease: 300 * time.Millisecond}))(t)
	t.Cleanup(func() { s.Close() })
	for _, run := range []protocol.RunID{"killed", "gone", "free", "waits"} {
		x := cas.Standing{Run: run, State: protocol.Running, Due: cas.DueNow}
		if run == "waits" {
			x = cas.Standing{Run: run, State: protocol.Waiting}
		}
		beginRun(t, s, x)
	}
	if err := server.Exec(t.Context(), dsn, `insert into wf.workers select '\x01', 1, now(), 'h', 1, max(writer), 300 from (values (1)) t(writer);
		update wf.heads set token = '\x01', worker = case name when 'run/gone' then '\x02'::bytea else '\x01' end where name in ('run/killed', 'run/gone', 'run/waits');
		update wf.runs r set worker = h.worker from wf.heads h where h.name = 'run/' || r.run`); err != nil {
		t.Fatal(err)
	}
	if got := due(t, s); !slices.Contains(got, "free") || slices.Contains(got, "killed") {
		t.Errorf("before anything was heard: %v", got)
	}
	given := map[protocol.RunID]bool{}
	for !given["killed"] || !given["gone"] {
		for _, run := range due(t, s) {
			given[run] = true
			c := must(s.Claim(t.Context(), run))(t)
			if got := due(t, s); slices.Contains(got, run) {
				t.Errorf("run %s is claimed, and given out: %v", run, got)
			}
			t.Cleanup(func() { c.Release(t.Context()) })
		}
		if err := s.AwaitDue(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if given["waits"] {
		t.Error("a run that waits was given out")
	}
}

// A run that was cancelled after its worker was killed is driven by no process, once that is known to be dead.
func TestF507AnEndedRunOfADeadWorkerIsNotDriven(t *testing.T) {
	dsn := fresh(t, running(t))
	s := must(pgstore.Open(t.Context(), dsn, pgstore.Options{Poll: 20 * time.Millisecond, Lease: 300 * time.Millisecond}))(t)
	t.Cleanup(func() { s.Close() })
	states := map[protocol.RunID]protocol.RunStatus{"killed": protocol.Cancelled, "gone": protocol.Cancelled, "waits": protocol.Waiting}
	for run, state := range states {
		beginRun(t, s, cas.Standing{Run: run, State: state})
	}
	if err := server.Exec(t.Context(), dsn, `insert into wf.workers select '\x01', 1, now(), 'h', 1, max(writer), 300 from (values (1)) t(writer);
		update wf.heads set token = '\x01', worker = case name when 'run/gone' then '\x02'::bytea else '\x01' end where starts_with(name, 'run/');
		update wf.runs r set worker = h.worker from wf.heads h where h.name = 'run/' || r.run`); err != nil {
		t.Fatal(err)
	}
	claimed := func() []string {
		return must(server.Ask(t.Context(), dsn, `select string_agg(substr(name, 5), ' ' order by name) from wf.heads where worker is not null`))(t)
	}
	due(t, s)
	if got := claimed(); !slices.Contains(got, "killed waits") {
		t.Errorf("before anything was heard: %q", got)
	}
	for slices.Contains(claimed(), "killed waits") {
		due(t, s)
		if err := s.AwaitDue(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := claimed(); !slices.Equal(got, []string{"waits"}) {
		t.Errorf("claimed are %q", got)
	}
	for run := range states {
		if driven := must(open(t, dsn).Driven(t.Context(), run))(t); driven != (run == "waits") {
			t.Errorf("%s: driven %t", run, driven)
		}
	}
	c := must(s.Claim(t.Context(), "waits"))(t)
	if err := c.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// A run that may leave its machine is given to another one once no process of its own is there, and has not taken it for two leases: neither while
// one beats, nor at once when that ends, nor before one that was killed is known to be dead.
func TestARunLeavesItsMachineWhenNoProcessIsThere(t *testing.T) {
	const lease = 300 * time.Millisecond
	dsn := fresh(t, running(t))
	home := must(pgstore.Open(t.Context(), dsn, pgstore.Options{Poll: 20 * time.Millisecond, Lease: lease}))(t)
	away := must(pgstore.Open(t.Context(), dsn, pgstore.Options{Poll: 20 * time.Millisecond, Lease: lease}))(t)
	t.Cleanup(func() { away.Close() })
	if got := must(home.Due(t.Context(), []string{"place:here"}, 10))(t); len(got) > 0 {
		t.Fatalf("due: %v", got)
	}
	x := cas.Standing{Run: "moves", State: protocol.Running, Due: cas.DueNow, Needs: []string{"gpu"}, Home: "place:here"}
	beginRun(t, away, x)
	y := x
	y.Run, y.Needs, y.Home = "stays", []string{"gpu", "place:here"}, ""
	beginRun(t, away, y)
	given := func(have ...string) []protocol.RunID { return must(away.Due(t.Context(), have, 10))(t) }
	for began := time.Now(); time.Since(began) < 3*lease; { // its machine is there, and slow
		if got := given("place:there", "gpu"); len(got) > 0 {
			t.Fatalf("given away while its machine is there: %v", got)
		}
		if err := away.AwaitDue(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := home.Close(); err != nil {
		t.Fatal(err)
	}
	// As a process that was killed leaves it.
	if err := server.Exec(t.Context(), dsn, fmt.Sprintf(`insert into wf.workers values ('\x01', 1, now(), 'h', 1, 2, %d, '{place:here}')`, lease.Milliseconds())); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	if got := given("place:there"); len(got) > 0 {
		t.Errorf("given to one that lacks what it needs: %v", got)
	}
	for {
		got := given("place:there", "gpu")
		if len(got) > 0 {
			if len(got) != 1 || got[0] != "moves" {
				t.Errorf("given away: %v", got)
			}
			break
		}
		if err := away.AwaitDue(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if over := time.Since(killed); over < lease {
		t.Errorf("given away after %s, before the process of its machine was known to be dead", over)
	}
	// One that is due since just now waits for two leases, although no process of its machine is there.
	x.Run = "later"
	beginRun(t, away, x)
	began := time.Now()
	for len(given("place:there", "gpu")) == 0 {
		if err := away.AwaitDue(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if over := time.Since(began); over < 2*lease-50*time.Millisecond { // the clock of the server may be another one
		t.Errorf("given away after %s, a process that is started anew should come first", over)
	}
	if got := must(away.Due(t.Context(), []string{"place:here", "gpu"}, 10))(t); len(got) != 1 || got[0] != "stays" {
		t.Errorf("at its machine: %v", got)
	}
}
