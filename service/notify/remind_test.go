package notify

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"wf/protocol"
)

const timed = `wf: 1
name: timed
roles:
  gate:
    ask: "Go on?"
    assignees: [anna]
    timeout: 24h
    remind: [4h, 8h, 12h]
    on_timeout: {escalate: [[ben], [carla]], then: fail}
`

// pass lets time pass, and drives a run for what is due then.
func (b *bench) pass(run protocol.RunID, d time.Duration) {
	b.t.Helper()
	b.at = b.at.Add(d)
	b.drive(run)
}

// asked compares what was told of questions: what it is, until when, of which people.
func (b *bench) asked(begin time.Time, want ...string) {
	b.t.Helper()
	var got []string
	for _, x := range b.got {
		if x.on != protocol.OnWaiting {
			continue
		}
		what, due := "asked", ""
		switch {
		case x.m.Reminder > 0:
			what = fmt.Sprint("reminder ", x.m.Reminder)
		case x.m.Escalated > 0:
			what = fmt.Sprint("escalated ", x.m.Escalated)
		}
		if x.m.Due != nil {
			at, err := time.Parse(time.RFC3339Nano, *x.m.Due)
			if err != nil {
				b.t.Fatal(err)
			}
			due = at.Sub(begin).String()
		}
		got = append(got, strings.Join([]string{what, due, strings.Join(x.m.Assignees, " "), x.m.Question, string(x.m.Status), string(x.m.Kind)}, " | "))
	}
	if !slices.Equal(got, want) {
		b.t.Fatalf("told\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

const tail = " | Go on? | waiting | question"

// Each reminder and escalation is told under an id of its own, in the order of the events, and once.
func TestRemindersAndEscalationsAreTold(t *testing.T) {
	b := newBench(t)
	b.sink(protocol.Sink{Name: "ops", On: []protocol.Moment{protocol.OnWaiting}, Include: []string{protocol.IncludeQuestion}}, nil)
	begin, run := b.at, b.run(timed)
	b.round()
	for range 8 { // 4 to 32 hours
		b.pass(run, 4*time.Hour)
		b.round()
		b.restart()
		b.round()
	}
	want := []string{"asked | 24h0m0s | anna" + tail, "reminder 1 | 24h0m0s | anna" + tail, "reminder 2 | 24h0m0s | anna" + tail, "reminder 3 | 24h0m0s | anna" + tail,
		"escalated 1 | 48h0m0s | anna ben" + tail, "reminder 1 | 48h0m0s | anna ben" + tail, "reminder 2 | 48h0m0s | anna ben" + tail}
	b.asked(begin, want...)
	b.pass(run, 16*time.Hour)
	b.round()
	b.asked(begin, append(want, "escalated 2 | 72h0m0s | anna ben carla"+tail)...)
	raw, err := protocol.CanonicalJSON(b.got[4].m)
	if err != nil {
		t.Fatal(err)
	}
	x := b.got[4].m
	golden := fmt.Sprintf(`{"assignees":["anna","ben"],"definition":%q,"due":"2027-01-17T08:00:00Z","escalated":1,"event":%q,"id":%q,"kind":"question","on":"waiting","question":"Go on?",`+
		`"run":%q,"schema":"wf.notification/v1","seq":%d,"sink":"ops","status":"waiting","step":"gate#1","time":"2027-01-16T08:00:00Z","workflow":"timed"}`, x.Definition, x.Event, x.ID, x.Run, x.Seq)
	if string(raw) != golden {
		t.Errorf("an escalation is\n%s\nwant\n%s", raw, golden)
	}
	ids := map[string]bool{}
	for i, x := range b.got {
		if ids[x.id] = true; i > 0 && x.seq <= b.got[i-1].seq {
			t.Errorf("event %d comes behind %d", x.seq, b.got[i-1].seq)
		}
	}
	if len(ids) != len(b.got) {
		t.Errorf("%d ids of %d notifications", len(ids), len(b.got))
	}
	was := len(b.got)
	b.answer(run)
	b.pass(run, 48*time.Hour)
	b.round()
	if len(b.got) != was {
		t.Errorf("told after the answer: %+v", b.got[was:])
	}
}

// What was not looked at, or did not get through: of reminders the last is told, of escalations too, and nothing of
// what was answered meanwhile.
func TestMissedRemindersAreToldOnce(t *testing.T) {
	b := newBench(t)
	up := true
	r := b.sink(protocol.Sink{Name: "ops", Include: []string{protocol.IncludeQuestion}}, func(*Message) error {
		if !up {
			return errors.New("connection refused")
		}
		return nil
	})
	begin, run := b.at, b.run(timed)
	b.pass(run, 4*time.Hour)
	b.pass(run, 4*time.Hour)
	b.round()
	b.asked(begin, "asked | 24h0m0s | anna"+tail, "reminder 2 | 24h0m0s | anna"+tail)

	up, b.got = false, nil
	b.pass(run, 4*time.Hour)
	b.round() // reminder 3 waits for its next attempt
	b.pass(run, 12*time.Hour)
	b.round()
	b.pass(run, 4*time.Hour)
	b.round()
	b.pass(run, 4*time.Hour)
	b.round()
	up = true
	for next := b.round(); !next.IsZero(); next = b.round() {
		b.at = next
	}
	b.asked(begin, "escalated 1 | 48h0m0s | anna ben"+tail, "reminder 2 | 48h0m0s | anna ben"+tail)
	if all, err := b.hooks(); err != nil || all.Sinks[0].Waiting+all.Sinks[0].Dead != 0 || all.Sinks[0].Delivered != 4 {
		t.Errorf("%+v, %v", all.Sinks, err)
	}

	up, b.got = false, nil
	b.pass(run, 4*time.Hour)
	b.round()
	b.answer(run)
	b.round()
	up = true
	asked := r.asked
	for next := b.round(); !next.IsZero(); next = b.round() {
		b.at = next
	}
	b.has(say("ops", run, "done"))
	if r.asked != asked+1 {
		t.Errorf("asked %d times for one that is done", r.asked-asked)
	}
}

// A run that ended before the look, by a cancellation too, waits for no one.
func TestAQuestionThatARunEndedWithIsNotTold(t *testing.T) {
	b := newBench(t)
	b.sink(protocol.Sink{Name: "ops"}, nil)
	run := b.run(timed)
	b.pass(run, 4*time.Hour)
	if err := b.d.Engine.Cancel(t.Context(), run, "test", "enough"); err != nil {
		t.Fatal(err)
	}
	b.drive(run)
	b.round()
	b.has()
}

// The run above repeats the question of a sub-workflow, and tells what happened there.
func TestASubWorkflowRemindsByItsParent(t *testing.T) {
	b := newBench(t)
	b.sink(protocol.Sink{Name: "ops", Include: []string{protocol.IncludeQuestion}}, nil)
	for file, text := range map[string]string{"timed.yaml": timed, "between.yaml": "wf: 1\nname: between\nroles: {sub: {workflow: timed.yaml}}\n"} {
		if err := os.WriteFile(filepath.Join(b.dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"timed.yaml", "between.yaml"} {
		b.got = nil
		begin, run := b.at, b.run("wf: 1\nname: parent\nroles: {sub: {workflow: "+file+"}}\n")
		b.round()
		b.pass(run, 4*time.Hour)
		b.round()
		b.pass(run, 20*time.Hour)
		b.round()
		b.asked(begin, "asked | 24h0m0s | anna"+tail, "reminder 1 | 24h0m0s | anna"+tail, "escalated 1 | 48h0m0s | anna ben"+tail)
	}
}
