package engine_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"wf/api"
	"wf/engine"
	"wf/protocol"
	"wf/roles"
)

var heldData = protocol.Held{Provider: "p", Limit: protocol.HeldByRequests, Max: 60}

// byProvider performs run roles as a model does under the limits of its provider: that of the name slow is held for a
// time by the clock of the bench, and then works for a second.
type byProvider struct {
	clock *atomic.Int64
	long  time.Duration
}

func (p byProvider) Perform(ctx context.Context, turn protocol.Turn, emit roles.Emit) (protocol.Conclusion, error) {
	done := protocol.Conclusion{Data: protocol.JSON(`{"exit_code":0}`)}
	if turn.Role.Name != "slow" || p.long == 0 {
		return done, nil
	}
	if err := emit(ctx, heldData); err != nil {
		return done, err
	}
	p.clock.Add(int64(p.long))
	err := emit(ctx, protocol.Released{MS: p.long.Milliseconds()})
	p.clock.Add(int64(time.Second))
	return done, err
}

func (b *bench) under(long time.Duration) {
	p := byProvider{&atomic.Int64{}, long}
	p.clock.Store(time.Now().UnixNano())
	b.e.Performers[protocol.ActRun] = p
	b.e.Now = func() time.Time { return time.Unix(0, p.clock.Load()) }
}

const heldYAML = `
wf: 1
name: held
roles:
  slow: {run: "true", concurrency: g}
  line: {run: "true", concurrency: g}
  quick: {run: "true"}
edges:
  - {from: START, to: [slow, line, quick]}
  - {from: [slow, line, quick], to: END}
`

const alone = `
wf: 1
name: alone
limits: {duration: 10s}
roles:
  slow: {run: "true"}
edges:
  - {from: START, to: slow}
  - {from: slow, to: END}
`

// The time in which a visit is held is no time of the run, nor of its step, and nothing of it is in what is concluded.
func TestAHoldIsNoTimeOfARun(t *testing.T) {
	free := newBench(t)
	free.under(0)
	_, want := free.run(alone, nil)

	b := newBench(t)
	b.under(10 * time.Minute)
	id, v := b.run(alone, nil)
	if v.Status != done || *v.Result != *want.Result {
		t.Fatalf("%s (%s) %v, want %v", v.Status, v.Reason, v.Result, *want.Result)
	}
	if v.ActiveMS != 1000 || v.Timing.TotalMS != 1000 {
		t.Errorf("active for %d ms, its steps for %d", v.ActiveMS, v.Timing.TotalMS)
	}
	for _, s := range v.Steps {
		if s.MS != 1000 {
			t.Errorf("%s took %d ms", s.ID, s.MS)
		}
	}
	if r, err := b.e.Check(t.Context(), id, nil); err != nil || !r.OK() {
		t.Errorf("checked again: %v %+v", err, r)
	}
}

// A visit that is held takes no place of Parallel, nor does one that waits for its slot: another one is performed meanwhile.
// While they are kept back they say so.
func TestAHeldVisitTakesNoPlace(t *testing.T) {
	b := newBench(t)
	b.e.Parallel = 1
	held, seen := heldUntil{make(chan struct{})}, make(chan struct{})
	b.e.Performers[protocol.ActRun] = held
	b.e.Watch = func(u api.Update) {
		if d, ok := u.Data.(protocol.StepCompleted); ok && d.Status == protocol.StepOK && u.Step == "quick#1" {
			close(seen)
		}
	}
	p := b.load(heldYAML)
	id, _, err := b.e.Begin(t.Context(), engine.Launch{Program: p, Inputs: protocol.JSON("{}"), Workspace: b.dir})
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() {
		_, err := b.e.Drive(t.Context(), id, engine.DriveOptions{})
		over <- err
	}()
	<-seen
	v := b.view(id)
	for _, s := range v.Steps {
		if want := "waits for the limit of 60 requests a minute of the provider p"; s.Role == "slow" && (s.Held != want || s.Status != "running") {
			t.Errorf("%s is %s, held: %q", s.ID, s.Status, s.Held)
		}
		if s.Role == "line" && (s.Queue == nil || s.Held != "") {
			t.Errorf("%s is %s, in the queue: %v, held: %q", s.ID, s.Status, s.Queue, s.Held)
		}
	}
	close(held.release)
	if err := <-over; err != nil {
		t.Fatal(err)
	}
	if v := b.view(id); v.Status != done || slices.ContainsFunc(v.Steps, func(s *api.Step) bool { return s.Held != "" || s.Queue != nil }) {
		t.Errorf("%s (%s)", v.Status, v.Reason)
	}
}

// heldUntil holds the role slow until it is let go.
type heldUntil struct{ release chan struct{} }

func (h heldUntil) Perform(ctx context.Context, turn protocol.Turn, emit roles.Emit) (protocol.Conclusion, error) {
	done := protocol.Conclusion{Data: protocol.JSON(`{"exit_code":0}`)}
	if turn.Role.Name != "slow" {
		return done, nil
	}
	if err := emit(ctx, heldData); err != nil {
		return done, err
	}
	select {
	case <-h.release:
	case <-ctx.Done():
		return done, ctx.Err()
	}
	return done, emit(ctx, protocol.Released{})
}

// The hold of a sub-workflow is one of the visit that it is performed for.
func TestAHoldOfASubWorkflowIsOneOfItsParent(t *testing.T) {
	b := newBench(t)
	b.under(10 * time.Minute)
	b.child("wf: 1\nname: child\nroles:\n  slow: {run: \"true\"}\nedges:\n  - {from: START, to: slow}\n  - {from: slow, to: END}\n")
	id, v := b.run("wf: 1\nname: parent\nlimits: {duration: 5s}\nroles:\n  sub: {workflow: ./child.yaml}\nedges:\n  - {from: START, to: sub}\n  - {from: sub, to: END}\n", nil)
	if v.Status != done || v.ActiveMS > 1000 {
		t.Errorf("%s (%s), active for %d ms", v.Status, v.Reason, v.ActiveMS)
	}
	var got []protocol.EventType
	for _, x := range b.entries(id) {
		if x.Type == protocol.EvHeld || x.Type == protocol.EvReleased {
			got = append(got, x.Type)
		}
	}
	if !slices.Equal(got, []protocol.EventType{protocol.EvHeld, protocol.EvReleased}) {
		t.Errorf("journaled %v", got)
	}
}
