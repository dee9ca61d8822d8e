package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/protocol"
	"wf/roles"
)

// A clocked bench asks by a clock of its own.
type clocked struct {
	*bench
	at atomic.Int64 // unix µs
}

func newClocked(t testing.TB) *clocked {
	c := &clocked{bench: newBench(t)}
	c.at.Store(time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC).UnixMicro())
	c.set()
	return c
}

// set gives the engine the clock, again after it was opened anew.
func (c *clocked) set() {
	c.e.Now = c.now
	c.e.Performers[protocol.ActAsk] = roles.Ask{Now: c.e.Now}
}

func (c *clocked) now() time.Time { return time.UnixMicro(c.at.Load()).UTC() }

func (c *clocked) pass(d time.Duration) { c.at.Add(d.Microseconds()) }

// after drives a run at a time after now.
func (c *clocked) after(id protocol.RunID, d time.Duration) *api.Run {
	c.t.Helper()
	c.pass(d)
	return c.drive(id)
}

// has are the events of some types, as they are stored.
func (b *bench) has(id protocol.RunID, types ...protocol.EventType) (out []protocol.Data) {
	b.t.Helper()
	for x, err := range b.e.Store.After(context.Background(), id, 0) {
		if err == nil && slices.Contains(types, x.Type) {
			var d protocol.Data
			if d, err = x.AnyData(); err == nil {
				out = append(out, d)
			}
		}
		if err != nil {
			b.t.Fatal(err)
		}
	}
	return out
}

// gate is a workflow that asks, with the keys of the question.
func gate(keys string) string {
	return `
wf: 1
name: gate
roles:
  ask: {ask: "Deploy?", choices: [deploy, stop], ` + keys + `}
  yes: {set: {went: deployed}}
  no: {set: {went: stopped}}
  late: {set: {went: late}}
edges:
  - {from: START, to: ask}
  - {from: ask, to: yes, when: output.choice == "deploy"}
  - {from: ask, to: no}
  - {from: ask, to: late, on: failure}
  - {from: yes, to: END}
  - {from: no, to: END}
  - {from: late, to: END}
outputs: {went: "${{ steps.yes?.output.went ?? steps.no?.output.went ?? steps.late?.output.went }}"}
`
}

func (b *bench) write(name, text string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func went(v *api.Run) string {
	if v.Status != protocol.Done {
		return string(v.Status)
	}
	return strings.TrimSuffix(strings.TrimPrefix(string(v.Outputs), `{"went":"`), `"}`)
}

func TestAQuestionThatIsNotAnsweredInTime(t *testing.T) {
	for _, test := range []struct{ keys, until, then, want string }{
		{"timeout: 4h, on_timeout: stop", "2030-01-01T16:00:00.000000Z", "stop", "stopped"},
		{"timeout: 4h", "2030-01-01T16:00:00.000000Z", "fail", "late"},
		{"timeout: 4h, on_timeout: fail", "2030-01-01T16:00:00.000000Z", "fail", "late"},
	} {
		c := newClocked(t)
		id, v := c.run(gate(test.keys), nil)
		if w := v.Waiting; len(w) != 1 || w[0].Due == nil || *w[0].Due != test.until || w[0].OnTimeout != test.then {
			t.Fatalf("%s: %+v", test.keys, w)
		}
		if v := c.after(id, 4*time.Hour-time.Microsecond); v.Status != protocol.Waiting || *v.Waiting[0].Due != test.until {
			t.Fatalf("%s: %s before its time", test.keys, v.Status)
		}
		if v := c.after(id, time.Microsecond); went(v) != test.want {
			t.Errorf("%s: %s %s, want %s", test.keys, went(v), v.Reason, test.want)
		}
		if _, err := c.e.Answer(t.Context(), id, engine.Reply{Step: "ask#1", Choice: "deploy"}); !errors.Is(err, protocol.ErrFinal) {
			t.Errorf("%s: a late answer: %v", test.keys, err)
		}
	}
}

// It waits for ever, also where defaults bound what agents and commands do.
func TestAQuestionWithoutATimeoutWaitsForEver(t *testing.T) {
	c := newClocked(t)
	id, _ := c.run(strings.Replace(gate("assignees: anna"), "roles:", "defaults: {timeout: 1m, retry: 3}\nroles:", 1), nil)
	if v := c.after(id, 100*365*24*time.Hour); v.Status != protocol.Waiting || v.Waiting[0].Due != nil || len(c.has(id, protocol.EvTimerFired)) > 0 {
		t.Errorf("%s %+v", v.Status, v.Waiting)
	}
}

// A failure by timeout is tried again as any other: the question is asked anew, with a new time and all reminders.
func TestAQuestionThatFailedIsAskedAnew(t *testing.T) {
	c := newClocked(t)
	id, _ := c.run(gate("timeout: 1h, remind: 30m, retry: {attempts: 2, delay: 10m, on: timeout}"), nil)
	c.e.Watch = func(u api.Update) {
		if u.Entry != nil && u.Entry.Type == protocol.EvAttemptFailed {
			c.pass(15 * time.Minute)
		}
	}
	v := c.after(id, time.Hour)
	if v.Status != protocol.Waiting || *v.Waiting[0].Due != "2030-01-01T14:15:00.000000Z" || len(v.Waiting[0].Remind) != 1 {
		t.Fatalf("asked anew: %s %+v", v.Status, v.Waiting)
	}
	if v = c.after(id, time.Hour); went(v) != "late" {
		t.Errorf("%s %s: %s", went(v), v.Reason, c.types(id))
	}
}

func TestAQuestionIsCalledToMind(t *testing.T) {
	c := newClocked(t)
	id, v := c.run(gate("timeout: 10h, on_timeout: stop, remind: [3h, 1h, 2h, 8h]"), nil)
	if len(v.Waiting[0].Remind) != 4 {
		t.Fatalf("%+v", v.Waiting)
	}
	reminded := func(want string) {
		t.Helper()
		if got := fmt.Sprint(c.has(id, protocol.EvReminded)); got != want {
			t.Errorf("reminders %s, want %s", got, want)
		}
	}
	c.after(id, time.Hour-time.Microsecond)
	reminded("[]")
	c.after(id, time.Microsecond)
	reminded("[{1}]")
	c.after(id, 30*time.Minute)
	reminded("[{1}]")
	v = c.after(id, 2*time.Hour) // two were missed
	reminded("[{1} {3}]")
	if v.Status != protocol.Waiting || len(v.Waiting[0].Remind) != 1 {
		t.Errorf("%s %+v", v.Status, v.Waiting)
	}
	if err := engine.DrivenAgrees(t.Context(), c.e, id); err != nil {
		t.Error(err)
	}
	if v = c.after(id, 24*time.Hour); went(v) != "stopped" { // the time is over: nothing is called to mind
		t.Errorf("%s", went(v))
	}
	reminded("[{1} {3}]")
}

func TestAQuestionIsPutToFurtherPeople(t *testing.T) {
	c := newClocked(t)
	id, v := c.run(gate("timeout: 2h, remind: 1h, assignees: [anna], on_timeout: {escalate: [ben, [carla, anna]], then: stop}"), nil)
	for _, want := range []struct {
		then, people string
		n            int
	}{{"escalate", "anna", 0}, {"escalate", "anna ben", 1}, {"stop", "anna ben carla", 2}} {
		w := v.Waiting[0]
		if w.OnTimeout != want.then || strings.Join(w.Assignees, " ") != want.people || w.Escalated != want.n || len(w.Remind) != 1 {
			t.Fatalf("%+v, want %+v", w, want)
		}
		c.after(id, time.Hour) // a reminder
		v = c.after(id, 5*time.Hour)
	}
	if went(v) != "stopped" {
		t.Errorf("%s: %s", went(v), c.types(id))
	}
	if got := len(c.has(id, protocol.EvReminded)); got != 3 {
		t.Errorf("%d reminders: %s", got, c.types(id))
	}
	for _, d := range c.has(id, protocol.EvEscalated) {
		x := d.(protocol.Escalated)
		if at := time.UnixMicro(x.Due).UTC(); at.Hour() != (12+6*x.N+2)%24 || at.Minute() != 0 {
			t.Errorf("escalation %d is due at %s: by the clock of when it was escalated", x.N, at)
		}
	}
	id, _ = c.run(gate("timeout: 2h, on_timeout: escalate"), nil)
	for n := range 4 {
		v = c.after(id, 2*time.Hour)
		if n < 3 && (v.Status != protocol.Waiting || v.Waiting[0].Escalated != n+1) {
			t.Fatalf("after %d times: %s %+v", n+1, v.Status, v.Waiting)
		}
	}
	if went(v) != "late" {
		t.Errorf("escalated to no one new: %s", went(v))
	}
}

func TestAssigneesBindAuthenticatedAnswers(t *testing.T) {
	c := newClocked(t)
	id, _ := c.run(gate("timeout: 1h, assignees: [anna, ben], on_timeout: {escalate: [carla]}"), nil)
	answer := func(who string) error {
		_, err := c.e.Answer(t.Context(), id, engine.Reply{Choice: "deploy", By: who, Bound: who})
		return err
	}
	if err := answer("carla"); !errors.Is(err, protocol.ErrForbidden) || !strings.Contains(err.Error(), "anna, ben") {
		t.Errorf("another person: %v", err)
	}
	if err := c.e.Message(t.Context(), id, "carla", "deploy"); err != nil || len(c.has(id, protocol.EvAnswered)) > 0 {
		t.Errorf("a message answered: %v", err)
	}
	c.after(id, time.Hour)
	if err := answer("dora"); !errors.Is(err, protocol.ErrForbidden) {
		t.Errorf("another person: %v", err)
	}
	if err := answer("carla"); err != nil {
		t.Error(err)
	}
	if v := c.drive(id); went(v) != "deployed" {
		t.Error(went(v))
	}
	id, _ = c.run(gate("assignees: [anna]"), nil)
	if err := answer(""); err != nil {
		t.Errorf("the user of the terminal: %v", err)
	}
}

// An answer that another process records at any moment of a drive counts if it is the first, and is refused if it
// is not.
func TestTheFirstOfAnAnswerAndATimerCounts(t *testing.T) {
	counts := map[string]int{}
	for nth := 1; ; nth++ {
		c := newClocked(t)
		id, _ := c.run(gate("timeout: 1h, on_timeout: stop"), nil)
		other, err := cas.Open(t.Context(), c.dir+"/.wf", cas.Options{})
		if err != nil {
			t.Fatal(err)
		}
		second := &engine.Engine{Store: other, Version: "test", Performers: c.e.Performers}
		c.pass(time.Hour)
		calls, refused := 0, error(nil)
		c.e.Now = func() time.Time {
			if calls++; calls == nth {
				_, refused = second.Answer(context.Background(), id, engine.Reply{Choice: "deploy"})
			}
			return c.now()
		}
		v := c.drive(id)
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
		if calls < nth {
			break
		}
		want := "deployed"
		if refused != nil {
			want = "stopped"
			if !errors.Is(refused, protocol.ErrNotWaiting) && !errors.Is(refused, protocol.ErrFinal) {
				t.Errorf("call %d: %v", nth, refused)
			}
		}
		fired := len(c.has(id, protocol.EvTimerFired))
		counts[want]++
		if went(v) != want || fired+len(c.has(id, protocol.EvAnswered)) != 1 {
			t.Errorf("call %d: %s, want %s: %s", nth, went(v), want, c.types(id))
		}
	}
	if counts["deployed"] == 0 || counts["stopped"] == 0 {
		t.Errorf("only one of them ever came first: %v", counts)
	}
}

// A process that dies at any operation on disk leaves the times of a question as they were, and the next says
// nothing twice.
func TestAQuestionKeepsItsTimesThroughCrashes(t *testing.T) {
	var want string
	crashed := 0
	for n := 1; n < 12; n++ {
		c := newClocked(t)
		c.e.Watch = nil
		p := c.load(gate("timeout: 2h, remind: 1h, assignees: [anna], on_timeout: {escalate: [ben], then: stop}"))
		id, _, err := c.e.Begin(t.Context(), engine.Launch{Program: p, Inputs: protocol.JSON("{}"), Workspace: c.dir})
		if err != nil {
			t.Fatal(err)
		}
		died := false
		for range 4 {
			c.crashing(n)
			c.set()
			if _, err := c.e.Drive(t.Context(), id, engine.DriveOptions{}); err != nil {
				died = true
			}
			c.open()
			c.set()
			c.drive(id)
			c.pass(61 * time.Minute)
		}
		v := c.drive(id)
		got := fmt.Sprint(went(v), " ", *v.Result, " ", c.has(id, protocol.EvReminded, protocol.EvEscalated, protocol.EvTimerFired))
		if want == "" {
			want = got
		}
		if got != want || went(v) != "stopped" {
			t.Fatalf("after %d operations: %s, want %s: %s", n, got, want, c.types(id))
		}
		if rep, err := c.e.Check(t.Context(), id, nil); err != nil || !rep.OK() {
			t.Fatalf("%v %+v", err, rep)
		}
		if died {
			crashed++
		}
	}
	if crashed < 3 {
		t.Errorf("only %d crashes", crashed)
	}
}

// The run of a sub-workflow has the timers; the run above it shows them, and its answers go down in time.
func TestASubWorkflowOwnsItsTimers(t *testing.T) {
	c := newClocked(t)
	child := gate("timeout: 2h, remind: 1h, assignees: [anna], on_timeout: {escalate: [ben], then: stop}")
	c.write("child.yaml", child)
	parent := "wf: 1\nname: parent\nroles: {sub: {workflow: child.yaml}}\noutputs: {went: \"${{ steps.sub?.output.went }}\"}\n"
	id, v := c.run(parent, nil)
	kid := v.Steps[0].Child
	shows := func(due, people string) {
		t.Helper()
		if w := v.Waiting; len(w) != 1 || *w[0].Due != due || strings.Join(w[0].Assignees, " ") != people {
			t.Fatalf("%s %+v, want %s of %s", v.Status, w, due, people)
		}
	}
	shows("2030-01-01T14:00:00.000000Z", "anna")
	v = c.after(id, time.Hour)
	shows("2030-01-01T14:00:00.000000Z", "anna")
	if got := len(c.has(kid, protocol.EvReminded)); got != 1 || len(c.has(id, protocol.EvReminded, protocol.EvTimerFired)) != 0 {
		t.Errorf("%d reminders of the child, journal of the parent %s", got, c.types(id))
	}
	v = c.after(id, time.Hour)
	shows("2030-01-01T16:00:00.000000Z", "anna ben")
	c.pass(3 * time.Hour)
	c.drive(kid) // by itself: its time is over
	if _, err := c.e.Answer(t.Context(), id, engine.Reply{Choice: "deploy"}); !errors.Is(err, protocol.ErrNotWaiting) {
		t.Errorf("a late answer: %v", err)
	}
	if v = c.drive(id); went(v) != "stopped" {
		t.Errorf("%s %s", went(v), v.Reason)
	}
	c.write("child.yaml", strings.Replace(child, "Deploy?", "Now?", 1))
	id, _ = c.run(parent, nil)
	c.pass(3 * time.Hour) // late, and no process was there: the answer is the first
	if _, err := c.e.Answer(t.Context(), id, engine.Reply{Choice: "deploy"}); err != nil {
		t.Fatal(err)
	}
	if v := c.drive(id); went(v) != "deployed" {
		t.Errorf("%s %s", went(v), v.Reason)
	}
}

// Each of several questions of a sub-workflow has its time, though the run above shows only the first.
func TestEveryTimerOfASubWorkflowWakesIt(t *testing.T) {
	for first, want := range map[string]string{
		"{ask: \"For ever?\"}":            "waiting",
		"{ask: \"Long?\", timeout: 9h}":   "waiting",
		"{wait: 9h}":                      "waiting",
		"{ask: \"Short?\", timeout: 30m}": "suspended", // it failed, and no edge takes that
		"{wait: 30m}":                     "done",
	} {
		c := newClocked(t)
		c.e.Performers[protocol.ActWait] = roles.Wait{Now: c.now}
		c.write("child.yaml", "wf: 1\nname: child\nroles:\n  a: "+first+"\n  b: {ask: \"B?\", choices: [stop], timeout: 1h, on_timeout: stop}\n  c: {set: {x: 1}}\n"+
			"edges:\n  - {from: START, to: [a, b]}\n  - {from: b, to: c}\n  - {from: [a, c], to: END}\n")
		_, v := c.run("wf: 1\nname: parent\nroles: {sub: {workflow: child.yaml}}\n", nil)
		kid := v.Steps[0].Child
		v = c.after(v.ID, time.Hour)
		k := c.view(kid)
		if fired := slices.Contains(steps(k), "c#1 ok"); !fired || string(k.Status) != want {
			t.Errorf("%s: the child is %s, want %s: %v", first, k.Status, want, steps(k))
		}
		if v.Status != k.Status {
			t.Errorf("%s: the run above is %s, not %s: %s", first, v.Status, k.Status, c.types(v.ID))
		}
	}
}
