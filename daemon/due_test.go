package daemon_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"wf/api"
	"wf/cas"
	"wf/daemon"
	"wf/engine"
	"wf/engine/lang"
	"wf/hub/schedule"
	"wf/pgstore"
	"wf/pgstore/pgtest"
	"wf/protocol"
	"wf/roles"
	"wf/service"
	"wf/service/compose"
	"wf/store"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Tests{M: m}.Run()) }

// postgres is the server of these tests, and a new store at it.
func postgres(t testing.TB) (*pgtest.Server, string) {
	t.Helper()
	srv := pgtest.Shared(t)
	dsn, err := srv.Database(t.Context())
	if err == nil {
		_, err = pgstore.Init(t.Context(), dsn, pgstore.Roles{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return srv, dsn
}

// fleet are processes that drive the runs of one database.
type fleet struct {
	t     *testing.T
	srv   *pgtest.Server
	dsn   string
	dir   string
	watch func(process int, u api.Update)
	log   *slog.Logger

	stores      []*pgstore.Store
	engines     []*engine.Engine
	supervisors []*daemon.Supervisor
}

// join adds a process that does not drive anything yet.
func (f *fleet) join(o pgstore.Options) (n int) {
	f.t.Helper()
	p, err := pgstore.Open(f.t.Context(), f.dsn, o)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		if err := p.Close(); err != nil {
			f.t.Error(err)
		}
	})
	n = len(f.engines)
	e := &engine.Engine{Store: p, Version: "test", Patience: -1, Watch: func(u api.Update) { f.watch(n, u) }}
	e.Performers = map[protocol.Action]roles.Performer{protocol.ActRun: &roles.Run{Walls: roles.Bare{Name: "a test"}}, protocol.ActAsk: roles.Ask{},
		protocol.ActWait: roles.Wait{}, protocol.ActSet: roles.Set{}, protocol.ActWorkflow: e.SubWorkflow()}
	f.stores, f.engines = append(f.stores, p), append(f.engines, e)
	f.supervisors = append(f.supervisors, daemon.NewSupervisor(p, e, f.log))
	return n
}

func (f *fleet) start(n int) {
	f.supervisors[n].Start()
	f.t.Cleanup(f.supervisors[n].Close)
}

// begin begins a run by a process.
func (f *fleet) begin(n int, yaml string) protocol.RunID {
	f.t.Helper()
	p, diags := lang.Load([]byte(yaml), lang.Options{File: "test.yaml", Read: func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(f.dir, name)) }})
	if p == nil {
		lang.Render(os.Stderr, []byte(yaml), diags, false)
		f.t.Fatal("the workflow is not valid")
	}
	run, _, err := f.engines[n].Begin(f.t.Context(), engine.Launch{Program: p, Source: []byte(yaml), Inputs: protocol.JSON("{}"), Workspace: f.dir})
	if err != nil {
		f.t.Fatal(err)
	}
	return run
}

const askYAML = "wf: 1\nname: question\nroles: {q: {ask: Go on?}, b: {set: {said: \"${{ output.text }}\"}}}\nedges: [{from: START, to: q}, {from: q, to: b}, {from: b, to: END}]\noutputs: {said: \"${{ steps.b.output.said }}\"}\n"

// What two processes find due they drive, each run once at a time and to its end, whichever of them began and answered it. What
// is noted of each run is what its journal says, and no process keeps anything.
func TestTwoProcessesDriveTheRunsOfOneDatabase(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	srv, dsn := postgres(t)
	type asked struct {
		run  protocol.RunID
		step string
	}
	var mu sync.Mutex
	questions, over := make(chan asked, 1000), make(chan protocol.RunID, 1000)
	drives := map[int]int{} // ends by process
	f := &fleet{t: t, srv: srv, dsn: dsn, dir: t.TempDir(), log: slog.New(slog.NewTextHandler(testLog{t}, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	f.watch = func(n int, u api.Update) {
		switch u.Data.(type) {
		case protocol.WaitingFor:
			if u.Parent == "" && u.Data.(protocol.WaitingFor).Kind == protocol.WaitQuestion {
				questions <- asked{u.Run, u.Step}
			}
		case protocol.Finished:
			if u.Parent == "" {
				mu.Lock()
				drives[n]++
				mu.Unlock()
				over <- u.Run
			}
		}
	}
	for range 2 {
		f.join(pgstore.Options{Poll: 200 * time.Millisecond})
	}
	if err := os.WriteFile(filepath.Join(f.dir, "child.yaml"), []byte(askYAML), 0o600); err != nil {
		t.Fatal(err)
	}
	kinds := []string{
		"wf: 1\nname: command\nroles: {a: {run: 'mkdir \"$WF_RUN_ID\" && rmdir \"$WF_RUN_ID\" && echo \"$WF_RUN_ID\" >>ran'}}\n",
		"wf: 1\nname: timer\nroles: {a: {wait: 1s}}\n",
		askYAML,
		"wf: 1\nname: parent\nroles: {sub: {workflow: child.yaml}}\noutputs: {said: \"${{ steps.sub.output.said }}\"}\n",
	}
	const runs = 200
	commands := map[string]bool{}
	var all []protocol.RunID
	for i := range runs {
		kind := kinds[r.IntN(len(kinds))]
		run := f.begin(r.IntN(2), kind)
		all = append(all, run)
		if kind == kinds[0] {
			commands[string(run)] = true
		}
		if i == 0 {
			f.start(0)
			f.start(1)
		}
	}
	patience := time.After(2 * time.Minute)
	for ended := map[protocol.RunID]bool{}; len(ended) < runs; {
		select {
		case q := <-questions:
			if _, err := f.engines[r.IntN(2)].Answer(t.Context(), q.run, engine.Reply{Step: q.step, Text: "yes"}); err != nil {
				t.Errorf("answer %s of run %s: %v", q.step, q.run, err)
			}
		case run := <-over:
			if ended[run] {
				t.Errorf("run %s ended twice", run)
			}
			ended[run] = true
		case <-patience:
			for _, run := range all {
				if !ended[run] {
					st, err := f.engines[0].State(t.Context(), run)
					t.Errorf("run %s has not ended: %v, %v; %s", run, st.Status(), err, f.row(run))
				}
			}
			t.FailNow()
		}
	}
	for _, k := range f.supervisors {
		k.Close()
		if n := k.Kept(); n > 0 {
			t.Errorf("a process keeps %d runs", n)
		}
	}
	if drives[0] == 0 || drives[1] == 0 {
		t.Errorf("ends by process: %v", drives)
	}
	ran, err := os.ReadFile(filepath.Join(f.dir, "ran"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(ran)) {
		if id := strings.TrimSpace(line); !commands[id] {
			t.Errorf("the command of run %s was performed twice, or is of no run", id)
		} else {
			delete(commands, id)
		}
	}
	if len(commands) > 0 {
		t.Errorf("commands that were not performed: %v", commands)
	}
	f.agree()
}

// row is what is noted of a run.
func (f *fleet) row(run protocol.RunID) string {
	f.t.Helper()
	out, err := f.srv.Ask(f.t.Context(), f.dsn, fmt.Sprintf("select concat_ws(' ', state, coalesce(due::text, 'never'), case when woken then 'woken' end, coalesce(parent, 'alone'), needs, worker) from wf.runs where run = '%s'", run))
	if err != nil {
		f.t.Fatal(err)
	}
	return strings.Join(out, "|")
}

// agree compares what is noted of each run with what its journal says.
func (f *fleet) agree() {
	f.t.Helper()
	heads, err := f.stores[0].Heads(f.t.Context(), protocol.RunHead(""))
	if err != nil {
		f.t.Fatal(err)
	}
	for _, h := range heads {
		run := protocol.RunOf(h.Name)
		st, err := f.engines[0].State(f.t.Context(), run)
		if err != nil {
			f.t.Fatal(err)
		}
		x := engine.Standing(run, st)
		due, parent := "never", "alone"
		if x.Due > cas.DueSoon {
			due = fmt.Sprint(x.Due)
		}
		if x.Parent != "" {
			parent = string(x.Parent)
		}
		want := fmt.Sprintf("%s %s %s {%s}", x.State, due, parent, strings.Join(x.Needs, ","))
		got := f.row(run)
		if x.Due == cas.DueNow { // what time that was is known to the store alone
			var state, at, rest string
			if _, err := fmt.Sscan(got, &state, &at, &rest); err != nil || at == "never" {
				f.t.Errorf("run %s is to be driven, and is noted as %q", run, got)
			}
			continue
		}
		if got != want {
			f.t.Errorf("run %s is %q, and noted as %q", run, want, got)
		}
	}
}

// testLog writes to the log of a test.
type testLog struct{ t *testing.T }

func (l testLog) Write(b []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

// An answer to the question of a sub-workflow, given to that itself by a process that drives nothing, has its parent go on.
func TestAnAnswerToASubWorkflowIsNewsForItsRun(t *testing.T) {
	srv, dsn := postgres(t)
	asks, over := make(chan protocol.RunID, 10), make(chan protocol.RunID, 10)
	f := &fleet{t: t, srv: srv, dsn: dsn, dir: t.TempDir(), log: slog.New(slog.NewTextHandler(testLog{t}, nil))}
	f.watch = func(n int, u api.Update) {
		switch u.Data.(type) {
		case protocol.WaitingFor:
			if u.Parent != "" {
				asks <- u.Run
			}
		case protocol.Finished:
			over <- u.Run
		}
	}
	f.join(pgstore.Options{Poll: 200 * time.Millisecond})
	f.join(pgstore.Options{Poll: 50 * time.Millisecond})
	if err := os.WriteFile(filepath.Join(f.dir, "child.yaml"), []byte(askYAML), 0o600); err != nil {
		t.Fatal(err)
	}
	f.start(0)
	root := f.begin(0, "wf: 1\nname: parent\nroles: {sub: {workflow: child.yaml}}\noutputs: {said: \"${{ steps.sub.output.said }}\"}\n")
	child := <-asks
	for f.row(root) != "waiting never alone {}" { // its driver has let go
		if err := f.stores[1].AwaitDue(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.engines[1].Answer(t.Context(), child, engine.Reply{Text: "yes"}); err != nil {
		t.Fatal(err)
	}
	for run := range over {
		if run == root {
			break
		}
	}
	f.supervisors[0].Close()
	f.agree()
}

// A run that works in the files of one machine waits for it, while others go on elsewhere.
func TestARunWaitsForItsMachine(t *testing.T) {
	srv, dsn := postgres(t)
	type end struct {
		process int
		run     protocol.RunID
	}
	over := make(chan end, 10)
	f := &fleet{t: t, srv: srv, dsn: dsn, dir: t.TempDir(), log: slog.New(slog.NewTextHandler(testLog{t}, nil))}
	f.watch = func(n int, u api.Update) {
		if _, ok := u.Data.(protocol.Finished); ok {
			over <- end{n, u.Run}
		}
	}
	for range 3 {
		f.join(pgstore.Options{Poll: 100 * time.Millisecond})
	}
	f.engines[0].Machine, f.engines[1].Machine = "here", "there"
	const yaml = "wf: 1\nname: one\nroles: {a: {set: {n: 1}}}\n"
	tied, free := f.begin(0, yaml), f.begin(2, yaml)
	f.start(1)
	if got := <-over; got != (end{1, free}) { // the other one was due before
		t.Errorf("%+v", got)
	}
	if row := f.row(tied); !strings.HasPrefix(row, "running ") || !strings.HasSuffix(row, " alone {place:here}") {
		t.Errorf("a run that waits for its machine is noted as %q", row)
	}
	f.start(0)
	if got := <-over; got != (end{0, tied}) {
		t.Errorf("%+v", got)
	}
}

// Two machines that serve one schedule from files in different places name its firings alike, and each sees what the other one has dealt with.
func TestAFleetServesOneSchedule(t *testing.T) {
	_, dsn := postgres(t)
	now := time.Now().Truncate(time.Minute)
	var begins []string
	for n := range 2 {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "tick.yaml"), []byte("wf: 1\nname: tick\non: {schedule: '* * * * *'}\nroles: {a: {set: {n: 1}}}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := store.Open(t.Context(), dsn, store.Options{State: dir})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		u := &compose.Setup{}
		catalog, err := u.NewCatalog([]string{dir}, "")
		if err != nil {
			t.Fatal(err)
		}
		all, err := (&service.Local{Setup: u, Store: s, Engine: &engine.Engine{Store: s}, Catalog: catalog}).Workflows(t.Context())
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		begins = append(begins, all[0].Firings)
		note, _ := store.NoteOf(s, "schedule")
		seen := &schedule.Seen{In: note}
		until, err := seen.Until("tick", now)
		if err == nil && n == 0 {
			err = seen.Dealt(schedule.Dealt{Key: "tick", Job: "tick", Due: now.Add(time.Minute), Run: "R"})
		}
		if err != nil {
			t.Fatal(err)
		}
		if want := now.Add(time.Duration(n) * time.Minute); !until.Equal(want) {
			t.Errorf("process %d: firings are dealt with until %s, want %s", n, until, want)
		}
		if runs, err := seen.Runs("tick"); err != nil || len(runs) != 1 {
			t.Errorf("process %d: open runs are %v, %v", n, runs, err)
		}
	}
	if begins[0] != begins[1] || begins[0] == "" {
		t.Errorf("firings begin with %q", begins)
	}
}

// A full process takes some more after a while: what it drives waits for a run that no process would drive else.
func TestAFullProcessIsRelieved(t *testing.T) {
	srv, dsn := postgres(t)
	f := &fleet{t: t, srv: srv, dsn: dsn, dir: t.TempDir(), log: slog.New(slog.DiscardHandler)}
	over := make(chan protocol.RunID, 2)
	f.watch = func(_ int, u api.Update) {
		if _, ok := u.Data.(protocol.Finished); ok {
			over <- u.Run
		}
	}
	f.join(pgstore.Options{Poll: 50 * time.Millisecond})
	f.supervisors[0].AtMost(1)
	f.supervisors[0].RelieveAfter(300 * time.Millisecond)
	first := f.begin(0, "wf: 1\nname: one\nroles: {a: {run: 'until [ -e go ]; do sleep 0.01; done'}}\n")
	second := f.begin(0, "wf: 1\nname: two\nroles: {a: {run: 'touch go'}}\n")
	f.start(0)
	ended := map[protocol.RunID]bool{<-over: true, <-over: true}
	if !ended[first] || !ended[second] {
		t.Errorf("ended are %v", ended)
	}
}

// A process drives no more runs at once than it may, whether they are due or given to it: others are left to other processes, and each ends.
func TestAFullProcessLeavesRunsToOthers(t *testing.T) {
	srv, dsn := postgres(t)
	f := &fleet{t: t, srv: srv, dsn: dsn, dir: t.TempDir(), log: slog.New(slog.DiscardHandler)}
	over := make(chan protocol.RunID, 100)
	f.watch = func(_ int, u api.Update) {
		if _, ok := u.Data.(protocol.Finished); ok {
			over <- u.Run
		}
	}
	const runs = 12
	most := []int{2, 3}
	for n := range most {
		f.join(pgstore.Options{Poll: 50 * time.Millisecond})
		f.supervisors[n].AtMost(most[n])
	}
	begun := func() int {
		all, err := filepath.Glob(filepath.Join(f.dir, "begun-*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	const yaml = "wf: 1\nname: one\nroles: {a: {run: 'touch \"begun-$WF_RUN_ID\"; until [ -e go ]; do sleep 0.01; done'}}\n"
	f.start(0)
	for range runs {
		f.supervisors[0].Keep(f.begin(0, yaml), engine.DriveOptions{})
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for begun() < most[0] {
		<-tick.C
	}
	f.start(1)
	for begun() < most[0]+most[1] {
		<-tick.C
	}
	for range 30 { // some looks for due runs
		<-tick.C
	}
	if n := begun(); n != most[0]+most[1] || f.supervisors[0].Driven() != most[0] || f.supervisors[1].Driven() != most[1] {
		t.Errorf("%d runs have begun; the processes drive %d and %d", n, f.supervisors[0].Driven(), f.supervisors[1].Driven())
	}
	if err := os.WriteFile(filepath.Join(f.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range runs {
		<-over
	}
}
