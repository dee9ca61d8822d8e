package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"wf/api"
	"wf/cas"
	"wf/cas/castest/inmemory"
	"wf/engine"
	"wf/engine/lang"
	"wf/protocol"
	"wf/roles"
)

func TestMain(m *testing.M) {
	inmemory.TempDirs()
	os.Exit(m.Run())
}

const gate = `wf: 1
name: gate
roles:
  first: {set: {said: one}}
  gate: {ask: "Go on?"}
  last: {set: {said: two}}
outputs: {all: done}
`

const quick = "wf: 1\nname: quick\nroles: {a: {set: {x: 1}}}\n"

// A bench is a store with an engine, a clock of its own, and what delivers.
type bench struct {
	t   *testing.T
	dir string
	s   *cas.Store
	d   *Deliverer
	k   *server
	at  time.Time
	got []sent
}

// sent is a notification that a receiver has taken.
type sent struct {
	sink, id string
	run      protocol.RunID
	seq      protocol.Seq
	on       protocol.Moment
	m        Message
}

// A receiver is a way whose answer the test decides.
type receiver struct {
	b      *bench
	name   string
	answer func(*Message) error
	asked  int
}

func (r *receiver) send(_ context.Context, m *Message, _ []byte) error {
	r.asked++
	if r.answer != nil {
		if err := r.answer(m); err != nil {
			return err
		}
	}
	r.b.got = append(r.b.got, sent{m.Sink, m.ID, m.Run, m.Seq, m.On, *m})
	return nil
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, dir: t.TempDir(), at: time.Unix(1_800_000_000, 0)}
	b.s = b.open(filepath.Join(b.dir, ".wf"))
	e := &engine.Engine{Store: b.s, Pins: cas.NewPins(b.s, t.TempDir()), Now: func() time.Time { return b.at }, Patience: -1, Performers: map[protocol.Action]roles.Performer{
		protocol.ActRun: &roles.Run{Walls: roles.Bare{Name: "a test"}}, protocol.ActAsk: roles.Ask{Now: func() time.Time { return b.at }}, protocol.ActWait: roles.Wait{}, protocol.ActSet: roles.Set{}}}
	e.Performers[protocol.ActWorkflow] = e.SubWorkflow()
	b.d = &Deliverer{Store: b.s, Engine: e, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return b.at }, Chance: func() float64 { return 0 }, ways: map[string]way{}}
	b.restart()
	return b
}

func (b *bench) open(dir string) *cas.Store {
	b.t.Helper()
	s, err := cas.Open(b.t.Context(), dir, cas.Options{Seal: []byte("a key")})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.t.Error(err)
		}
	})
	return s
}

// sink configures a sink of the user.
func (b *bench) sink(s protocol.Sink, answer func(*Message) error) *receiver {
	b.t.Helper()
	s.Webhook = "https://" + s.Name + ".example.com/"
	r := &receiver{b: b, name: s.Name, answer: answer}
	b.d.Sinks = append(b.d.Sinks, Configured{Sink: s, Journal: s.Name})
	b.d.ways[fmt.Sprintf("%+v", s)] = r
	if err := b.d.Open(b.t.Context(), nil); err != nil {
		b.t.Fatal(err)
	}
	return r
}

// restart is another process: it knows what is stored.
func (b *bench) restart() {
	b.k = &server{d: b.d, held: map[string]*sink{}, runs: cas.MovedRuns{Store: b.d.Store}}
}

// round looks and delivers until nothing is due, and says when something will be.
func (b *bench) round() (next time.Time) {
	b.t.Helper()
	ctx := b.t.Context()
	names, err := b.k.names(ctx)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, name := range names {
		if b.k.held[name] != nil {
			continue
		}
		j, err := openJournal(ctx, b.s, name)
		if err != nil {
			b.t.Fatal(err)
		}
		b.k.held[name] = &sink{journal: j, d: b.d, wake: make(chan struct{}, 1)}
		b.k.runs.Forget()
	}
	for _, k := range b.k.held {
		if err := k.catchUp(ctx); err != nil {
			b.t.Fatal(err)
		}
	}
	if err := b.k.look(ctx); err != nil {
		b.t.Fatal(err)
	}
	for _, name := range names {
		for {
			due, at := b.k.held[name].start(ctx)
			if len(due) == 0 {
				if !at.IsZero() && (next.IsZero() || at.Before(next)) {
					next = at
				}
				break
			}
			for _, x := range due {
				b.k.held[name].deliver(ctx, x)
			}
		}
	}
	return next
}

func (b *bench) load(yaml string) *lang.Program {
	b.t.Helper()
	p, diags := lang.Load([]byte(yaml), lang.Options{File: "test.yaml", Read: func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(b.dir, name)) }})
	if p == nil {
		b.t.Fatal(diags)
	}
	return p
}

// run begins a run, and drives it until it stops.
func (b *bench) run(yaml string) protocol.RunID {
	b.t.Helper()
	p := b.load(yaml)
	in, err := p.Inputs(nil)
	if err != nil {
		b.t.Fatal(err)
	}
	run, _, err := b.d.Engine.Begin(b.t.Context(), engine.Launch{Program: p, Source: []byte(yaml), Inputs: in, Workspace: b.dir})
	if err != nil {
		b.t.Fatal(err)
	}
	b.drive(run)
	return run
}

func (b *bench) drive(run protocol.RunID) {
	b.t.Helper()
	if _, err := b.d.Engine.Drive(b.t.Context(), run, engine.DriveOptions{By: "test"}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) answer(run protocol.RunID) {
	b.t.Helper()
	if _, err := b.d.Engine.Answer(b.t.Context(), run, engine.Reply{Text: "yes", By: "test", Source: "test"}); err != nil {
		b.t.Fatal(err)
	}
	b.drive(run)
}

// has compares what was delivered: "sink run moment", in any order between runs.
func (b *bench) has(want ...string) {
	b.t.Helper()
	var got []string
	for _, x := range b.got {
		got = append(got, fmt.Sprintf("%s %s %s", x.sink, x.run, x.on))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		b.t.Fatalf("delivered\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func say(sink string, run protocol.RunID, on protocol.Moment) string {
	return fmt.Sprintf("%s %s %s", sink, run, on)
}

func TestEachMomentIsToldOnce(t *testing.T) {
	b := newBench(t)
	b.sink(protocol.Sink{Name: "all"}, nil)
	b.sink(protocol.Sink{Name: "ends", On: []protocol.Moment{protocol.OnDone}}, nil)
	asks := b.run(gate)
	b.round()
	b.round()
	b.has(say("all", asks, "waiting"))
	b.answer(asks)
	fails := b.run("wf: 1\nname: f\nroles: {a: {run: exit 3}}\n")
	limit := b.run("wf: 1\nname: l\nlimits: {steps: 1}\nroles: {a: {set: {x: 1}}, b: {set: {x: 2}}}\n")
	stuck := b.run("wf: 1\nname: s\nroles: {a: {set: {x: 1}}}\nedges: [{from: a, to: END, when: output.x == 2}]\n")
	waits := b.run("wf: 1\nname: w\nroles: {a: {wait: {signal: go}}}\n")
	b.round()
	b.restart()
	b.round()
	b.has(say("all", asks, "waiting"), say("all", asks, "done"), say("ends", asks, "done"), say("all", fails, "failed"), say("all", limit, "limit"), say("all", stuck, "failed"))
	if st, err := b.d.Engine.State(t.Context(), waits); err != nil || st.Status() != protocol.Waiting {
		t.Fatal(err)
	}
	if err := b.d.Engine.Cancel(t.Context(), waits, "test", "enough"); err != nil {
		t.Fatal(err)
	}
	was := len(b.got)
	b.round()
	if len(b.got) != was {
		t.Errorf("a cancellation was told: %v", b.got[was:])
	}
}

// What a store holds when a sink is configured fires nothing; what happens then does, in old runs too.
func TestTheCursorBeginsWithTheConfiguration(t *testing.T) {
	b := newBench(t)
	old := b.run(gate)
	b.run(quick)
	b.sink(protocol.Sink{Name: "ops"}, nil)
	b.round()
	b.has()
	b.answer(old)
	fresh := b.run(quick)
	b.round()
	b.has(say("ops", old, "done"), say("ops", fresh, "done"))
}

func TestASharedEventOfAForkFiresNothing(t *testing.T) {
	b := newBench(t)
	b.sink(protocol.Sink{Name: "ops"}, nil)
	run := b.run(gate)
	_, seq, err := b.s.Tip(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	fork, err := b.d.Engine.Fork(t.Context(), run, engine.ForkOptions{At: seq, By: "test"})
	if err != nil {
		t.Fatal(err)
	}
	b.round()
	b.has(say("ops", run, "waiting"))
	b.answer(fork)
	b.restart()
	b.round()
	b.has(say("ops", run, "waiting"), say("ops", fork, "done"))
}

// Runs from elsewhere fire nothing, nor does what they held when they were adopted.
func TestARunFromElsewhereFiresNothing(t *testing.T) {
	from := newBench(t)
	run := from.run(gate)
	var archive bytes.Buffer
	if _, err := cas.Export(t.Context(), &archive, from.s, cas.ExportOptions{}, run); err != nil {
		t.Fatal(err)
	}
	b := newBench(t)
	b.sink(protocol.Sink{Name: "ops"}, nil)
	if _, err := cas.Import(t.Context(), &archive, b.s, cas.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	b.round()
	b.restart()
	b.round()
	b.has()
	h, err := b.s.Head(t.Context(), protocol.RunHead(run))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(PassOver(t.Context(), b.s, b.at, []cas.Head{h}), b.d.Engine.Pins.Adopt(t.Context(), []cas.Head{h})); err != nil {
		t.Fatal(err)
	}
	b.restart()
	b.round()
	b.has()
	b.answer(run)
	b.round()
	b.has(say("ops", run, "done"))
}

// A question of a sub-workflow is told once, as that of the run that a person knows.
func TestASubWorkflowTellsByItsParent(t *testing.T) {
	b := newBench(t)
	b.sink(protocol.Sink{Name: "ops"}, nil)
	if err := os.WriteFile(filepath.Join(b.dir, "child.yaml"), []byte(gate), 0o600); err != nil {
		t.Fatal(err)
	}
	run := b.run("wf: 1\nname: parent\nroles: {sub: {workflow: child.yaml}}\n")
	b.round()
	b.answer(run)
	b.round()
	b.has(say("ops", run, "waiting"), say("ops", run, "done"))
}

func TestAChatThatWaitsForItsUserIsNotTold(t *testing.T) {
	b := newBench(t)
	b.sink(protocol.Sink{Name: "ops"}, nil)
	p := b.load(gate)
	in, err := p.Inputs(nil)
	if err != nil {
		t.Fatal(err)
	}
	run, _, err := b.d.Engine.Begin(t.Context(), engine.Launch{Program: p, Source: []byte(gate), Inputs: in, Workspace: b.dir, Type: protocol.ChatType})
	if err != nil {
		t.Fatal(err)
	}
	b.drive(run)
	b.round()
	b.has()
	b.answer(run)
	b.round()
	b.has(say("ops", run, "done"))
}

// A question that was answered before the look is told to no one.
func TestAnAnsweredQuestionIsNotTold(t *testing.T) {
	b := newBench(t)
	b.sink(protocol.Sink{Name: "ops"}, nil)
	run := b.run(gate)
	b.answer(run)
	b.round()
	b.has(say("ops", run, "done"))
}

// A receiver that is away for a day: nothing is lost, nothing comes twice, and each run's come in order. Another sink
// goes on meanwhile.
func TestAHookThatFailsForADay(t *testing.T) {
	b := newBench(t)
	back := b.at.Add(24 * time.Hour)
	down := func(*Message) error {
		if b.at.Before(back) {
			return errors.New("connection refused")
		}
		return nil
	}
	r := b.sink(protocol.Sink{Name: "ops"}, down)
	b.sink(protocol.Sink{Name: "log"}, nil)
	var want []string
	for i := range 20 {
		run := b.run(gate)
		b.round()
		if i%2 == 0 {
			b.answer(run)
			want = append(want, say("ops", run, "done"), say("log", run, "done"))
		}
		b.round()
		want = append(want, say("ops", run, "waiting"), say("log", run, "waiting"))
	}
	if len(b.got) != 30 {
		t.Fatalf("the other sink got %d of 30", len(b.got))
	}
	rounds := 0
	for next := b.round(); !next.IsZero(); next = b.round() {
		if !next.After(b.at) {
			t.Fatal("the clock stands still")
		}
		if b.at = next; rounds%100 == 0 {
			b.restart() // and another process takes over now and then
		}
		rounds++
	}
	b.has(want...)
	last := map[protocol.RunID]protocol.Seq{}
	for _, x := range b.got {
		if x.sink == "ops" {
			if x.seq <= last[x.run] {
				t.Errorf("run %s: event %d comes behind %d", x.run, x.seq, last[x.run])
			}
			last[x.run] = x.seq
		}
	}
	if late := b.at.Sub(back); late > 2*time.Hour {
		t.Errorf("delivered %s after the receiver was back", late)
	}
	if r.asked > 20*60 { // 10 attempts until the pause is an hour, then 24, and the pace of a sink that fails
		t.Errorf("a receiver that was away was asked %d times", r.asked)
	}
}

// A clock that is put back by a day delays no attempt by that day: at most by the longest pause, whichever others are due before.
func TestAClockThatIsPutBackDelaysNoDelivery(t *testing.T) {
	for _, back := range []time.Duration{time.Minute, lastPause, 24 * time.Hour, 400 * 24 * time.Hour} {
		b := newBench(t)
		up := false
		b.sink(protocol.Sink{Name: "ops"}, func(*Message) error {
			if up {
				return nil
			}
			return errors.New("connection refused")
		})
		run := b.run(quick)
		for range 3 {
			if next := b.round(); next.After(b.at) {
				b.at = next
			}
		}
		b.at = b.at.Add(-back)
		other := b.run(quick) // fails by the new clock, and is asked for again before the first one would be
		set := b.at
		b.round()
		up = true
		for next := b.round(); !next.IsZero(); next = b.round() {
			b.at = next
		}
		if late := b.at.Sub(set); late > lastPause {
			t.Errorf("put back by %s: delivered after %s", back, late)
		}
		b.has(say("ops", run, "done"), say("ops", other, "done"))
	}
}

// A clock that is set forward by a week, or a machine that was off for one, ends no attempts before their time.
func TestAClockThatIsSetForwardEndsNoDelivery(t *testing.T) {
	for _, back := range []time.Duration{0, 7 * 24 * time.Hour, 8 * 24 * time.Hour} {
		b := newBench(t)
		b.sink(protocol.Sink{Name: "ops"}, func(*Message) error { return errors.New("connection refused") })
		b.run(quick)
		var lasted time.Duration
		step := func() bool {
			next := b.round()
			if next.After(b.at) {
				lasted += next.Sub(b.at)
				b.at = next
			}
			return !next.IsZero()
		}
		for range 4 {
			step()
		}
		b.at = b.at.Add(7 * 24 * time.Hour)
		for range 3 {
			step()
		}
		b.restart() // it is measured by what is stored
		b.at = b.at.Add(-back)
		for step() {
		}
		if lasted < lifetime-5*lastPause || lasted > lifetime+lastPause {
			t.Errorf("set back by %s: given up after %s", back, lasted)
		}
	}
}

// After three days a notification is dead; wf hook retry begins anew.
func TestAfterThreeDaysADeliveryIsDead(t *testing.T) {
	b := newBench(t)
	up := false
	b.sink(protocol.Sink{Name: "ops"}, func(*Message) error {
		if up {
			return nil
		}
		return failure{errors.New("it answered 503"), lastPause, false}
	})
	begin, run := b.at, b.run(quick)
	for next := b.round(); !next.IsZero(); next = b.round() {
		b.at = next
	}
	if lasted := b.at.Sub(begin); lasted > lifetime || lasted < lifetime-3*time.Hour {
		t.Errorf("given up after %s", lasted)
	}
	all, err := b.hooks()
	if err != nil || len(all.Sinks) != 1 || all.Sinks[0].Dead != 1 || all.Sinks[0].Waiting != 0 || all.Sinks[0].Deliveries[0].Error != "it answered 503" {
		t.Fatalf("%+v, %v", all, err)
	}
	id := all.Sinks[0].Deliveries[0].ID
	if _, err := Retry(t.Context(), b.s, b.at, "ada", false, []string{"msg_none"}); !errors.Is(err, protocol.ErrNotFound) {
		t.Error(err)
	}
	up = true
	if done, err := Retry(t.Context(), b.s, b.at, "ada", false, []string{id[:12]}); err != nil || !slices.Equal(done, []string{id}) {
		t.Fatal(done, err)
	}
	b.round()
	b.has(say("ops", run, "done"))
	if b.got[0].id != id {
		t.Error("the id is another one")
	}
}

// A process that ends between the answer of a receiver and the note of it: the notification comes again, under its id.
func TestADeliveryThatWasNotNotedComesAgainUnderItsID(t *testing.T) {
	b := newBench(t)
	b.sink(protocol.Sink{Name: "ops"}, nil)
	run := b.run(quick)
	b.round()
	first := b.got[0].id
	// The same journal, up to the event before the note.
	j, err := openJournal(t.Context(), b.s, "ops")
	if err != nil {
		t.Fatal(err)
	}
	st := NewState(j.payload(t.Context()))
	for e, err := range j.chain.After(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == protocol.EvDelivered {
			break
		}
		if err := st.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	x, _ := st.Take(b.at.UnixMicro())
	if x == nil || x.ID != first || x.Run != run {
		t.Fatalf("%+v, sent was %s", x, first)
	}
}

// A store from elsewhere may hold deliveries too: those of its runs are not sent.
func TestADeliveryOfARunFromElsewhereIsForgotten(t *testing.T) {
	b := newBench(t)
	r := b.sink(protocol.Sink{Name: "ops"}, func(*Message) error { return errors.New("down") })
	run := b.run(quick)
	next := b.round()
	if err := b.d.Engine.Pins.Disown(t.Context(), []protocol.RunID{run}); err != nil {
		t.Fatal(err)
	}
	b.at = next
	if next := b.round(); !next.IsZero() || r.asked != 1 {
		t.Errorf("asked %d times, again at %s", r.asked, next)
	}
	if all, err := b.hooks(); err != nil || all.Sinks[0].Waiting+all.Sinks[0].Dead != 0 {
		t.Errorf("%+v, %v", all.Sinks, err)
	}
}

func TestADeliveryOfARunThatIsGoneIsForgotten(t *testing.T) {
	b := newBench(t)
	r := b.sink(protocol.Sink{Name: "ops"}, nil)
	j, err := openJournal(t.Context(), b.s, "ops")
	if err != nil {
		t.Fatal(err)
	}
	run := b.run(gate)
	_, seq, _ := b.s.Tip(t.Context(), run)
	err = j.append(t.Context(), b.at, func(*State) []cas.Draft {
		return []cas.Draft{{Data: protocol.DeliveryDue{ID: "msg_a", Run: "GONE", Seq: 3, Event: "x", On: protocol.OnDone}},
			{Data: protocol.DeliveryDue{ID: "msg_b", Run: run, Seq: seq, Event: "another history", On: protocol.OnWaiting}}}
	})
	if err != nil {
		t.Fatal(err)
	}
	b.round()
	if all, err := b.hooks(); err != nil || all.Sinks[0].Waiting+all.Sinks[0].Dead != 0 || r.asked != 0 {
		t.Errorf("%+v, asked %d times, %v", all.Sinks, r.asked, err)
	}
}

// hooks are the sinks with what was not delivered.
func (b *bench) hooks() (*api.Hooks, error) {
	all, err := List(b.t.Context(), b.s, b.d.Sinks, api.NotificationQuery{})
	if err != nil {
		return nil, err
	}
	return all.Hooks(), nil
}

// Without its stored state, and with a stored state of its own making, a sink goes on from its journal.
func TestASinkOpensByItsStateOrItsJournal(t *testing.T) {
	b := newBench(t)
	b.sink(protocol.Sink{Name: "ops"}, nil)
	run := b.run(gate)
	b.round()
	k := b.k.held["ops"]
	if err := k.keep(t.Context(), 1); err != nil || k.kept != k.st.Seq {
		t.Fatal(err, k.kept)
	}
	if _, same, err := Refold(t.Context(), b.s, "ops"); !same || err != nil {
		t.Fatal("the stored state differs from its journal", err)
	}
	b.answer(run)
	b.restart()
	b.round()
	if got := b.k.held["ops"].kept; got == 0 {
		t.Error("the stored state was not used")
	}
	b.has(say("ops", run, "waiting"), say("ops", run, "done"))
	forged := NewState(nil)
	forged.Seq, forged.Origin = k.st.Seq, "forged"
	raw, err := forged.Snapshot()
	if err == nil {
		err = b.s.Commit(t.Context(), cas.Batch{Derived: []cas.Derived{{Key: protocol.NotifyHead("ops"), Head: b.k.held["ops"].st.Head, Data: raw}}})
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, same, err := Refold(t.Context(), b.s, "ops"); same || err != nil {
		t.Fatal("a stored state that says something else is found to be the same", err)
	}
}

// Runs without anything to tell are recorded together.
func TestRunsThatTellNothingAreRecordedTogether(t *testing.T) {
	b := newBench(t)
	b.sink(protocol.Sink{Name: "ops", On: []protocol.Moment{protocol.OnFailed}}, nil)
	b.round()
	k := b.k.held["ops"]
	was := k.st.Seq
	for i := range passedRuns {
		k.pass(protocol.RunID(fmt.Sprint(i)), 7)
		drafts := k.passing(passedRuns)
		if (len(drafts) > 0) != (i == passedRuns-1) {
			t.Fatalf("%d drafts behind %d runs", len(drafts), i+1)
		}
	}
	if err := k.append(t.Context(), b.at, func(*State) []cas.Draft { return k.passing(passedRuns) }); err != nil || k.st.Seq != was+1 || len(k.passed) != 0 {
		t.Fatal(err, k.st.Seq-was, len(k.passed))
	}
	if k.st.Cursor("255") != 7 || k.cursor("255") != 7 {
		t.Error("the cursor is lost")
	}
	k.pass("long", passedEvents-1)
	if k.passing(passedRuns) != nil {
		t.Error("recorded too early")
	}
	if k.pass("long", passedEvents); k.passing(passedRuns) == nil {
		t.Error("not recorded")
	}
}

// What a workflow says is done once it is trusted, from the begin of a run on.
func TestTheSinkOfAWorkflowWantsTrust(t *testing.T) {
	b := newBench(t)
	yaml := strings.Replace(gate, "roles:", "notify: [{name: me, on: [waiting, done], webhook: \"https://me.example.com/\"}]\nroles:", 1)
	p := b.load(yaml)
	b.d.ways[fmt.Sprintf("%+v", p.Workflow.Notify[0])] = &receiver{b: b, name: "me"}
	trusted := false
	b.d.Trusts = func(*lang.Program) (bool, error) { return trusted, nil }
	begin := func() protocol.RunID {
		t.Helper()
		if err := b.d.Open(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		return b.run(yaml)
	}
	before := begin()
	b.round()
	trusted = true
	run := begin()
	b.answer(before)
	b.round()
	b.answer(run)
	b.round()
	sink := SinkOf("gate", "me")
	b.has(say(sink, run, "waiting"), say(sink, run, "done"), say(sink, before, "done"))
	other := b.run(gate) // without the key
	b.round()
	if slices.ContainsFunc(b.got, func(x sent) bool { return x.run == other }) {
		t.Error("the sink of another workflow was told")
	}
}

func TestNamesOfWorkflowsMakeNamesOfSinks(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range []string{"a", "a/b", "a_b", "..", "ä ö", "ä_ö", strings.Repeat("x", 300), strings.Repeat("x", 301)} {
		sink := SinkOf(name, "s")
		if seen[sink] || len(sink) > 200 || strings.Count(sink, "/") != 2 || strings.Contains(sink, "/../") {
			t.Errorf("%q gives %q", name, sink)
		}
		seen[sink] = true
	}
}

// A command at a terminal delivers its own run, and counts what it leaves.
func TestACommandDeliversItsOwnRun(t *testing.T) {
	b := newBench(t)
	b.d.Now = nil // it waits by the clock of the machine
	up := false
	b.sink(protocol.Sink{Name: "ops"}, func(*Message) error {
		if !up {
			return errors.New("down")
		}
		return nil
	})
	flush := func(ctx context.Context, run protocol.RunID, want int) {
		t.Helper()
		if left, err := b.d.Flush(ctx, run); err != nil || left != want {
			t.Fatalf("%d are left, want %d, %v", left, want, err)
		}
	}
	run, other := b.run(quick), b.run(quick)
	flush(t.Context(), run, 1)
	flush(t.Context(), run, 1)
	up = true
	ended, end := context.WithCancel(t.Context())
	end()
	flush(ended, other, 1) // interrupted: nothing is sent, all of it is recorded
	b.has()
	flush(t.Context(), other, 0)
	b.has(say("ops", other, "done"))

	// Where another process delivers, it is left to that.
	unlock, ok, err := b.s.LockSink(b.t.Context(), "ops")
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	flush(t.Context(), other, 0)
	if _, ok, err := b.s.LockSink(b.t.Context(), "ops"); ok || err != nil {
		t.Error("two have the lock", err)
	}
	third := b.run(quick)
	short, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer stop()
	flush(short, third, 1)
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
}

// Of two processes each notification is delivered by one, and the other goes on where that ends.
func TestTwoProcessesDeliverOnce(t *testing.T) {
	b := newBench(t)
	b.d.Now = nil
	came := make(chan string, 100)
	b.sink(protocol.Sink{Name: "ops"}, func(m *Message) error {
		came <- string(m.Run)
		return nil
	})
	first, leave := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.d.Serve(first)
	}()
	second, leaveToo := context.WithCancel(t.Context())
	endedToo := make(chan struct{})
	go func() {
		defer close(endedToo)
		b.d.Serve(second)
	}()
	for range 3 {
		run := b.run(quick)
		if got := <-came; got != string(run) {
			t.Errorf("%s was told, not %s", got, run)
		}
	}
	leave()
	<-ended
	run := b.run(quick)
	if got := <-came; got != string(run) {
		t.Errorf("%s was told, not %s", got, run)
	}
	leaveToo()
	<-endedToo
	if len(came) > 0 {
		t.Errorf("%s was told twice", <-came)
	}
	ids := map[string]bool{}
	for _, x := range b.got {
		ids[x.id] = true
	}
	if len(ids) != 4 || len(b.got) != 4 {
		t.Errorf("%d deliveries of %d notifications", len(b.got), len(ids))
	}
}

func TestAMessageHoldsWhatIsIncluded(t *testing.T) {
	b := newBench(t)
	roles.Conceal("KEY", "a secret of eight and more")
	run := b.run("wf: 1\nname: talk\nroles: {a: {ask: \"Is it a secret of eight and more?\"}}\noutputs: {said: \"${{ steps.a.text }}\", key: a secret of eight and more}\n")
	message := func(s protocol.Sink, seq protocol.Seq, on protocol.Moment) *Message {
		t.Helper()
		st, err := b.d.Engine.State(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range b.s.After(t.Context(), run, seq-1) {
			if err != nil {
				t.Fatal(err)
			}
			m, err := message(t.Context(), b.d.Engine, st, s, "ops", protocol.DeliveryDue{ID: "msg_1", Run: run, Seq: seq, Event: e.CID.String(), On: on, Step: e.StepName()})
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		return nil
	}
	_, asked, _ := b.s.Tip(t.Context(), run)
	bare := message(protocol.Sink{}, asked, protocol.OnWaiting)
	if bare.Title+bare.Question+bare.Link != "" || bare.Outputs != nil || bare.Status != protocol.Waiting || bare.Kind != protocol.WaitQuestion || bare.Step != "a#1" || bare.Workflow != "talk" || bare.Definition == "" {
		t.Errorf("%+v", bare)
	}
	all := protocol.Sink{Include: protocol.Includes, Page: "https://wf.example.com/"}
	full := message(all, asked, protocol.OnWaiting)
	if full.Title != "talk" || full.Question != "Is it [secret:KEY]?" || full.Link != "https://wf.example.com/#/run/"+string(run) {
		t.Errorf("%+v", full)
	}
	b.answer(run)
	_, ended, _ := b.s.Tip(t.Context(), run)
	done := message(all, ended, protocol.OnDone)
	if string(done.Outputs) != `{"key":"[secret:KEY]","said":"yes"}` || done.Status != protocol.Done || done.Code != "" {
		t.Errorf("%+v %s", done, done.Outputs)
	}
}
