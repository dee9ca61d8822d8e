package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/protocol"
	"wf/roles"
)

// crew performs run roles, each until it is let go, and counts those that act at once.
type crew struct {
	mu    sync.Mutex
	gates map[string]chan error // by RUN:step
	acts  int
	most  int
	began chan string
}

func newCrew() *crew { return &crew{gates: map[string]chan error{}, began: make(chan string, 1000)} }

func (c *crew) gate(name string) chan error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gates[name] == nil {
		c.gates[name] = make(chan error, 10)
	}
	return c.gates[name]
}

func (c *crew) Perform(ctx context.Context, t protocol.Turn, _ roles.Emit) (protocol.Conclusion, error) {
	c.mu.Lock()
	c.acts++
	c.most = max(c.most, c.acts)
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.acts--
		c.mu.Unlock()
	}()
	name := protocol.Use{Run: t.Run, Step: t.Step.String()}.String()
	c.began <- name
	select {
	case err := <-c.gate(name):
		return protocol.Conclusion{Data: protocol.JSON(`{"exit_code":0}`)}, err
	case <-ctx.Done():
		return protocol.Conclusion{}, ctx.Err()
	}
}

// next is what began next.
func (c *crew) next(t testing.TB) string {
	t.Helper()
	select {
	case name := <-c.began:
		return name
	case <-time.After(time.Minute):
		t.Fatal("nothing begins")
		return ""
	}
}

// letGo ends what acts under a name.
func (c *crew) letGo(name string) { c.gate(name) <- nil }

// groupBench is a bench whose commands are those of a crew.
type groupBench struct {
	*bench
	c    *crew
	ends sync.WaitGroup
}

func newGroupBench(t *testing.T) *groupBench {
	g := &groupBench{bench: newBench(t), c: newCrew()}
	g.e.Performers[protocol.ActRun] = g.c
	t.Cleanup(g.ends.Wait)
	return g
}

// other is the same store as another process has it.
func (g *groupBench) other() *groupBench {
	b := &bench{t: g.t, dir: g.dir}
	b.open()
	b.e.Performers[protocol.ActRun] = g.c
	return &groupBench{bench: b, c: g.c}
}

func (g *groupBench) begin(yaml string, inputs map[string]any) (protocol.RunID, error) {
	g.t.Helper()
	p := g.load(yaml)
	raw, err := p.Inputs(inputs)
	if err != nil {
		g.t.Fatal(err)
	}
	id, _, err := g.e.Begin(context.Background(), engine.Launch{Program: p, Source: []byte(yaml), Inputs: raw, Workspace: g.dir, File: filepath.Join(g.dir, "test.yaml")})
	return id, err
}

func (g *groupBench) mustBegin(yaml string, inputs map[string]any) protocol.RunID {
	g.t.Helper()
	id, err := g.begin(yaml, inputs)
	if err != nil {
		g.t.Fatal(err)
	}
	return id
}

// driven is a run that is driven in the background.
type driven struct {
	stop context.CancelCauseFunc
	over chan struct{}
	err  error
}

func (g *groupBench) goOn(id protocol.RunID) *driven {
	ctx, stop := context.WithCancelCause(context.Background())
	d := &driven{stop: stop, over: make(chan struct{})}
	g.t.Cleanup(func() { stop(nil); <-d.over })
	go func() {
		defer close(d.over)
		_, d.err = g.e.Drive(ctx, id, engine.DriveOptions{By: "test"})
	}()
	return d
}

// suspended is a new run whose process was stopped in its first command.
func (g *groupBench) suspended(yaml string) protocol.RunID {
	g.t.Helper()
	run := g.mustBegin(yaml, nil)
	d := g.goOn(run)
	g.c.next(g.t)
	d.stop(errors.New("enough"))
	<-d.over
	if v := g.view(run); v.Status != protocol.Suspended {
		g.t.Fatal(v.Status)
	}
	return run
}

// until waits for a status of a run.
func (g *groupBench) until(id protocol.RunID, want protocol.RunStatus) *api.Run {
	g.t.Helper()
	var v *api.Run
	g.await(func() bool { v = g.view(id); return v.Status == want }, func() string {
		return fmt.Sprintf("run %s is %s (%s), not %s", id, v.Status, v.Reason, want)
	})
	return v
}

// await looks at the store behind each commit until something is so; else is said of what is not so.
func (g *groupBench) await(so func() bool, otherwise func() string) {
	g.t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	for {
		since, err := g.e.Store.Changes(ctx)
		if err != nil {
			g.t.Fatal(err)
		}
		if so() {
			return
		}
		if _, err := g.e.Store.AwaitChange(ctx, since); err != nil {
			g.t.Fatal(otherwise(), err)
		}
	}
}

// goOnInLine is goOn for a queued run; it returns when the process has the lock of the run, behind which it waits for its
// turn. A lock is no commit, so this looks again and again.
func (g *groupBench) goOnInLine(id protocol.RunID) *driven {
	g.t.Helper()
	d := g.goOn(id)
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for {
		driving, err := g.e.Store.Driven(g.t.Context(), id)
		if err != nil {
			g.t.Fatal(err)
		}
		if driving {
			return d
		}
		select {
		case <-again.C:
		case <-d.over:
			g.t.Fatalf("the process of run %s has ended", id)
		}
	}
}

// group is the group of the store, which it must have: what holds it, and what waits.
func (g *groupBench) group(name string) (slots, queue []string) {
	g.t.Helper()
	all, err := g.e.Groups(context.Background())
	if err != nil {
		g.t.Fatal(err)
	}
	for _, x := range all {
		if x.Name != name {
			continue
		}
		for _, s := range x.Slots {
			for _, u := range s.Uses {
				slots = append(slots, u.String())
			}
		}
		for _, c := range x.Queue {
			queue = append(queue, c.String())
		}
	}
	return slots, queue
}

func (g *groupBench) wantGroup(name string, slots, queue []string) {
	g.t.Helper()
	s, q := g.group(name)
	if !slices.Equal(s, slots) || !slices.Equal(q, queue) {
		g.t.Fatalf("the group %s is held by %v, and %v wait; want %v and %v", name, s, q, slots, queue)
	}
}

const deployYAML = `
wf: 1
name: deploy
inputs: {env: {type: string, default: prod}}
concurrency: {group: "deploy-${{ inputs.env }}"}
roles:
  act: {run: deploy, timeout: 1h}
`

func act(id protocol.RunID) string { return string(id) + ":act#1" }

// O-03b: queued runs start in the order of asking, each when the one before has ended.
func TestO03bRunsOfAGroupActOneAfterTheOther(t *testing.T) {
	g := newGroupBench(t)
	ids := []protocol.RunID{g.mustBegin(deployYAML, nil), g.mustBegin(deployYAML, nil), g.mustBegin(deployYAML, nil)}
	free := g.mustBegin(deployYAML, map[string]any{"env": "test"})
	for i, want := range []protocol.RunStatus{protocol.Running, protocol.Queued, protocol.Queued} {
		if got := g.view(ids[i]).Status; got != want {
			t.Errorf("run %d is %s, want %s", i, got, want)
		}
	}
	for _, id := range []protocol.RunID{ids[2], ids[1], ids[0]} {
		g.other().goOn(id)
	}
	if got := g.c.next(t); got != act(ids[0]) {
		t.Fatalf("%s begins first", got)
	}
	g.goOn(free)
	if got := g.c.next(t); got != act(free) {
		t.Fatalf("%s begins, not the run of another group", got)
	}
	g.c.letGo(act(free))
	g.until(free, done)
	for i, id := range ids {
		g.wantGroup("deploy-prod", []string{string(id)}, runNames(ids[i+1:]))
		g.c.letGo(act(id))
		g.until(id, done)
		if i+1 < len(ids) {
			if got := g.c.next(t); got != act(ids[i+1]) {
				t.Fatalf("%s begins after run %d", got, i)
			}
		}
	}
	g.wantGroup("deploy-prod", nil, nil)
	if g.c.most != 2 {
		t.Errorf("%d acted at once", g.c.most)
	}
}

func runNames(ids []protocol.RunID) []string {
	var out []string
	for _, id := range ids {
		out = append(out, string(id))
	}
	return out
}

// A run of max slots enters as long as fewer are taken.
func TestO03bAGroupHasItsSlots(t *testing.T) {
	g := newGroupBench(t)
	const yaml = "wf: 1\nname: three\nconcurrency: {group: g, max: 3}\nroles: {act: {run: x, timeout: 1h}}\n"
	var want []protocol.RunStatus
	var got []protocol.RunStatus
	for i := range 5 {
		got = append(got, g.view(g.mustBegin(yaml, nil)).Status)
		want = append(want, []protocol.RunStatus{protocol.Running, protocol.Queued}[i/3])
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestO03bABusyGroupRefuses(t *testing.T) {
	g := newGroupBench(t)
	const yaml = "wf: 1\nname: one\nconcurrency: {group: g, on_busy: refuse}\nroles: {act: {run: x, timeout: 1h}}\n"
	first := g.mustBegin(yaml, nil)
	heads, err := g.e.Store.Heads(context.Background(), "run/")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.begin(yaml, nil); !errors.Is(err, protocol.ErrGroupBusy) || protocol.HintOf(err) != "wait until it has ended, or cancel it: wf cancel "+string(first) {
		t.Fatalf("%v (%s)", err, protocol.HintOf(err))
	}
	if now, _ := g.e.Store.Heads(context.Background(), "run/"); len(now) != len(heads) {
		t.Error("a run that was refused is there")
	}
	if err := g.e.Cancel(context.Background(), first, "test", "enough"); err != nil {
		t.Fatal(err)
	}
	g.wantGroup("g", nil, nil)
	if _, err := g.begin(yaml, nil); err != nil {
		t.Error(err)
	}
}

// cancel_old cancels the runs of the workflow that wait, and the one that holds the slot, and begins when what that
// performs has ended; runs of other workflows are waited for.
func TestO03bANewRunReplacesOlderOnes(t *testing.T) {
	g := newGroupBench(t)
	const yaml = "wf: 1\nname: deploy\nconcurrency: {group: g, on_busy: cancel_old}\nroles: {act: {run: x, timeout: 1h}}\n"
	const stranger = "wf: 1\nname: other\nconcurrency: {group: g, max: 2}\nroles: {act: {run: x, timeout: 1h}}\n"
	holder := g.mustBegin(yaml, nil)
	slow := &slowEnd{crew: g.c, end: make(chan struct{})}
	g.e.Performers[protocol.ActRun] = slow
	g.goOn(holder)
	g.c.next(t)
	waiting := g.mustBegin(yaml, nil)
	other := g.mustBegin(stranger, nil)
	newest := g.mustBegin(yaml, nil)
	p := g.other()
	p.goOn(newest)
	g.until(waiting, protocol.Cancelled)
	if v := g.until(holder, protocol.Cancelled); v.Reason == "" {
		t.Error("the holder was cancelled without a reason")
	}
	g.wantGroup("g", []string{string(holder)}, []string{string(other), string(newest)}) // its command has not ended
	if v := g.view(newest); v.Status != protocol.Queued {
		t.Fatalf("the newest is %s while the holder still acts", v.Status)
	}
	close(slow.end)
	p.goOn(other)
	if got := g.c.next(t); got != act(other) {
		t.Fatalf("%s begins", got)
	}
	g.c.letGo(act(other))
	if got := g.c.next(t); got != act(newest) {
		t.Fatalf("%s begins", got)
	}
	g.c.letGo(act(newest))
	g.until(newest, done)
}

const tidyYAML = "wf: 1\nname: tidies\nconcurrency: {group: g, on_busy: %s, release_on_suspend: %v}\nroles:\n" +
	"  act: {run: x, timeout: 1h}\n  tidy: {run: x, timeout: 1h}\n  note: {run: x, timeout: 1h}\nalways: [tidy, note]\n"

// O-06a: cancel_old skips nothing of a run that closes, however many runs take its place; the newest of them begins when
// all its always roles have ended. One that no process drives is driven to its end by what takes its place; where that is
// interrupted, it leaves the queue, and what closes goes on there later.
func TestO06aARunThatIsReplacedCloses(t *testing.T) {
	g := newGroupBench(t)
	yaml := fmt.Sprintf(tidyYAML, "cancel_old", false)
	step := func(id protocol.RunID, role string) string { return string(id) + ":" + role + "#1" }
	begins := func(id protocol.RunID, role string) {
		t.Helper()
		if got := g.c.next(t); got != step(id, role) {
			t.Fatalf("%s begins, not %s of %s", got, role, id)
		}
	}
	holder := g.mustBegin(yaml, nil)
	d := g.goOn(holder)
	begins(holder, "act")
	second := g.mustBegin(yaml, nil)
	s := g.other().goOn(second)
	begins(holder, "tidy")
	third := g.mustBegin(yaml, nil)
	w := g.other().goOn(third)
	g.until(second, protocol.Cancelled)

	<-s.over // what takes its place might drive it on else
	w.stop(protocol.ErrServeStopped)
	<-w.over
	d.stop(errors.New("enough")) // no process drives it any more
	<-d.over
	g.until(holder, protocol.Suspended)
	fourth := g.mustBegin(yaml, nil)
	f := g.other().goOn(fourth)
	begins(holder, "tidy")
	g.until(third, protocol.Cancelled)
	f.stop(errors.New("enough"))
	<-f.over
	if v := g.until(fourth, protocol.Suspended); v.Reason == "" {
		t.Error("the fourth is suspended without a reason")
	}
	g.until(holder, protocol.Suspended)
	g.wantGroup("g", []string{string(holder)}, nil)

	newest := g.mustBegin(yaml, nil)
	g.other().goOn(newest)
	for _, role := range []string{"tidy", "note"} {
		begins(holder, role)
		if v := g.view(newest); v.Status != protocol.Queued {
			t.Errorf("the newest is %s while the holder closes", v.Status)
		}
		g.c.letGo(step(holder, role))
	}
	for _, role := range []string{"act", "tidy", "note"} {
		begins(newest, role)
		g.c.letGo(step(newest, role))
	}
	g.until(newest, protocol.Done)
	if v := g.view(holder); v.Status != protocol.Cancelled || len(v.CleanupFailed) > 0 {
		t.Errorf("the holder is %s, %v", v.Status, v.CleanupFailed)
	}
}

// O-06a: the always roles of a run that has left its group run without a slot, and neither replace nor refuse what holds one.
func TestO06aARunThatLeftItsGroupCloses(t *testing.T) {
	for _, busy := range []string{"queue", "cancel_old", "refuse"} {
		t.Run(busy, func(t *testing.T) {
			g := newGroupBench(t)
			yaml := fmt.Sprintf(tidyYAML, busy, true)
			first := g.suspended(yaml)
			second := g.mustBegin(yaml, nil)
			g.goOn(second)
			g.c.next(t)
			closing, err := g.e.CancelSoon(t.Context(), first, "ada", "over")
			if err != nil || !slices.Equal(closing, []protocol.RunID{first}) {
				t.Fatal(closing, err)
			}
			g.other().goOn(first)
			for _, want := range []protocol.RunID{first, second} {
				for _, role := range []string{":tidy#1", ":note#1"} {
					if got := g.c.next(t); got != string(want)+role {
						t.Fatalf("%s begins", got)
					}
					g.c.letGo(string(want) + role)
				}
				if want == second {
					break
				}
				if v := g.until(first, protocol.Cancelled); len(v.CleanupFailed) > 0 {
					t.Error(v.CleanupFailed)
				}
				g.c.letGo(act(second))
			}
			g.until(second, protocol.Done)
			g.checked(first)
		})
	}
}

// slowEnd is a crew with commands that take their time to end when they are stopped.
type slowEnd struct {
	*crew
	end chan struct{}
}

func (s *slowEnd) Perform(ctx context.Context, t protocol.Turn, e roles.Emit) (protocol.Conclusion, error) {
	c, err := s.crew.Perform(ctx, t, e)
	if ctx.Err() != nil {
		<-s.end
	}
	return c, err
}

// A run that waits for a person, undriven, holds its slot; a run that takes its place begins at once.
func TestO03bARunThatWaitsHoldsItsSlotAndIsReplaced(t *testing.T) {
	g := newGroupBench(t)
	const yaml = "wf: 1\nname: gate\nconcurrency: {group: g, on_busy: cancel_old}\nroles: {ok: {ask: \"Go?\"}}\n"
	first := g.mustBegin(yaml, nil)
	if v := g.drive(first); v.Status != protocol.Waiting {
		t.Fatal(v.Status)
	}
	g.wantGroup("g", []string{string(first)}, nil)
	second := g.mustBegin(yaml, nil)
	if v := g.drive(second); v.Status != protocol.Waiting {
		t.Fatal(v.Status)
	}
	if v := g.view(first); v.Status != protocol.Cancelled {
		t.Errorf("the first is %s", v.Status)
	}
	g.wantGroup("g", []string{string(second)}, nil)
}

// Suspended runs keep their slots, unless they say otherwise.
func TestO03bASuspendedRunAndItsSlot(t *testing.T) {
	for _, release := range []bool{false, true} {
		t.Run(fmt.Sprintf("release %v", release), func(t *testing.T) {
			g := newGroupBench(t)
			yaml := fmt.Sprintf("wf: 1\nname: one\nconcurrency: {group: g, release_on_suspend: %v}\nroles: {act: {run: x, timeout: 1h}}\n", release)
			first := g.suspended(yaml)
			second := g.mustBegin(yaml, nil)
			if !release {
				g.wantGroup("g", []string{string(first)}, []string{string(second)})
				return
			}
			g.wantGroup("g", []string{string(second)}, nil)
			g.goOn(first)
			g.until(first, protocol.Queued)
			g.goOn(second)
			g.c.letGo(g.c.next(t))
			if got := g.c.next(t); got != act(first) {
				t.Fatalf("%s begins", got)
			}
			g.c.letGo(act(first))
			g.until(first, done)
		})
	}
}

// A queued run that is interrupted leaves the queue; one whose daemon stops keeps its ticket.
func TestO03bTheWaitForATurnEnds(t *testing.T) {
	g := newGroupBench(t)
	holder := g.mustBegin(deployYAML, nil)
	for _, c := range []struct {
		cause error
		want  protocol.RunStatus
	}{{errors.New("interrupt"), protocol.Suspended}, {protocol.ErrServeStopped, protocol.Queued}} {
		id := g.mustBegin(deployYAML, nil)
		d := g.goOnInLine(id)
		d.stop(c.cause)
		<-d.over
		if v := g.view(id); v.Status != c.want {
			t.Errorf("%v: the run is %s, want %s", c.cause, v.Status, c.want)
		}
		_, queue := g.group("deploy-prod")
		if got := slices.Contains(queue, string(id)); got != (c.want == protocol.Queued) {
			t.Errorf("%v: in the queue: %v", c.cause, got)
		}
		if c.want == protocol.Suspended {
			d = g.goOn(id)
			g.until(id, protocol.Queued)
			d.stop(errors.New("interrupt"))
			<-d.over
		}
		if err := g.e.Cancel(context.Background(), id, "test", ""); err != nil {
			t.Fatal(err)
		}
	}
	g.wantGroup("deploy-prod", []string{string(holder)}, nil)
}

// A run whose process was killed keeps its slot until it is driven or cancelled; what waits without a process is passed.
func TestO03bWhatAProcessLeftBehind(t *testing.T) {
	g := newGroupBench(t)
	killed := g.mustBegin(deployYAML, nil)
	idle := g.mustBegin(deployYAML, nil) // no process waits with it
	last := g.mustBegin(deployYAML, nil)
	g.goOn(last)
	g.until(last, protocol.Queued)
	g.wantGroup("deploy-prod", []string{string(killed)}, []string{string(idle), string(last)})
	if err := g.e.Cancel(context.Background(), killed, "test", ""); err != nil {
		t.Fatal(err)
	}
	if got := g.c.next(t); got != act(last) {
		t.Fatalf("%s begins", got)
	}
	g.wantGroup("deploy-prod", []string{string(last)}, []string{string(idle)})
	d := g.goOn(idle)
	g.c.letGo(act(last))
	if got := g.c.next(t); got != act(idle) {
		t.Fatalf("%s begins", got)
	}
	g.c.letGo(act(idle))
	<-d.over
	g.wantGroup("deploy-prod", nil, nil)
}

// A sub-workflow enters the slot of its root; the root holds a slot that only its sub-workflow asks for as long as that acts.
func TestO03bSubWorkflowsEnterTheSlotOfTheirRoot(t *testing.T) {
	g := newGroupBench(t)
	child := "wf: 1\nname: child\nconcurrency: g\nroles: {act: {run: x, timeout: 1h}}\n"
	if err := os.WriteFile(filepath.Join(g.dir, "child.yaml"), []byte(child), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, own := range []string{"concurrency: g\n", ""} {
		parent := "wf: 1\nname: parent\n" + own + "roles: {sub: {workflow: child.yaml}, after: {run: x, timeout: 1h}}\n"
		id := g.mustBegin(parent, nil)
		other := g.mustBegin(child, nil)
		if held := g.view(other).Status == protocol.Queued; held != (own != "") {
			t.Fatalf("with %q the other run is queued: %v", own, held)
		}
		if own == "" {
			g.goOn(other)
			g.c.letGo(g.c.next(t))
			g.until(other, done)
		}
		g.goOn(id)
		sub := g.c.next(t)
		slots, _ := g.group("g")
		if want := 1 + min(1, len(own)); len(slots) != want {
			t.Fatalf("with %q the group is held by %v", own, slots)
		}
		g.c.letGo(sub)
		after := g.c.next(t)
		if slots, _ := g.group("g"); len(slots) != min(1, len(own)) {
			t.Fatalf("with %q the group is held by %v behind the sub-workflow", own, slots)
		}
		g.c.letGo(after)
		g.until(id, done)
		if own != "" {
			g.goOn(other)
			g.c.letGo(g.c.next(t))
			g.until(other, done)
		}
	}
}

const fanYAML = `
wf: 1
name: fan
inputs: {n: {type: integer, default: 6}}
roles:
  list: {set: {items: "${{ map(1..inputs.n, #) }}"}}
  act: {run: x, timeout: 1h, concurrency: {group: gpu, max: 2}, retry: {attempts: 2, delay: 1ms}}
  free: {run: x, timeout: 1h}
edges:
  - {from: START, to: [list, free]}
  - {from: list, to: act, for_each: output.items}
  - {from: [act, free], to: END}
`

// The attempts of a role take turns, also those of one run; other roles go on meanwhile, and a failed attempt asks again.
func TestO03bAttemptsOfARoleTakeTurns(t *testing.T) {
	g := newGroupBench(t)
	a, b := g.mustBegin(fanYAML, nil), g.mustBegin(fanYAML, nil)
	p := g.other()
	g.goOn(a)
	p.goOn(b)
	free, left := 0, 12
	failed := map[string]bool{}
	for left > 0 || free < 2 {
		name := g.c.next(t)
		if name == string(a)+":free#1" || name == string(b)+":free#1" {
			free++
			continue
		}
		if slots, _ := g.group("gpu"); len(slots) > 2 || !slices.Contains(slots, name) {
			t.Fatalf("%s acts while %v hold the group", name, slots)
		}
		if len(failed) < 2 && !failed[name] {
			failed[name] = true
			g.c.gate(name) <- &protocol.Failure{ErrorInfo: protocol.ErrorInfo{Code: "x", Phase: "run", Message: "no"}}
			continue
		}
		left--
		g.c.letGo(name)
	}
	for _, id := range []protocol.RunID{a, b} {
		g.c.letGo(string(id) + ":free#1")
		v := g.until(id, done)
		if v.ActiveMS < 0 {
			t.Error(v.ActiveMS)
		}
	}
	if g.c.most > 4 {
		t.Errorf("%d acted at once", g.c.most)
	}
	g.wantGroup("gpu", nil, nil)
}

// A role's slot is given back when the attempt waits for a person, and when the run is interrupted or cancelled; a visit
// that waits for a slot is not cut off by that.
func TestO03bAnAttemptGivesItsSlotBack(t *testing.T) {
	g := newGroupBench(t)
	const yaml = "wf: 1\nname: one\nroles: {act: {run: x, timeout: 1h, once: true, concurrency: gpu}}\n"
	holder, waits := g.mustBegin(yaml, nil), g.mustBegin(yaml, nil)
	h := g.goOn(holder)
	g.c.next(t)
	p := g.other()
	w := p.goOn(waits)
	g.await(func() bool { _, queue := g.group("gpu"); return len(queue) == 1 }, func() string { return "no attempt waits" })
	w.stop(errors.New("interrupt"))
	<-w.over
	g.wantGroup("gpu", []string{act(holder)}, nil)
	w = p.goOn(waits)
	h.stop(errors.New("interrupt"))
	<-h.over
	if got := g.c.next(t); got != act(waits) {
		t.Fatalf("%s begins", got)
	}
	g.wantGroup("gpu", []string{act(waits)}, nil)
	if err := g.e.Cancel(context.Background(), waits, "test", ""); err != nil {
		t.Fatal(err)
	}
	<-w.over
	g.wantGroup("gpu", nil, nil)
	if v := g.view(waits); v.Status != protocol.Cancelled || len(v.Waiting) > 0 {
		t.Error(v.Status, v.Waiting)
	}
}

// A fork asks for a slot by itself, and so does a run that came from another store.
func TestO03bForksAndImportsWaitForTheirOwnTurn(t *testing.T) {
	g := newGroupBench(t)
	id := g.mustBegin(deployYAML, nil)
	fork, err := g.e.Fork(context.Background(), id, engine.ForkOptions{At: 2, By: "test"})
	if err != nil {
		t.Fatal(err)
	}
	g.wantGroup("deploy-prod", []string{string(id)}, nil)
	g.goOn(fork)
	g.until(fork, protocol.Queued)
	g.goOn(id)
	g.c.letGo(g.c.next(t))
	if got := g.c.next(t); got != act(fork) {
		t.Fatalf("%s begins", got)
	}
	g.c.letGo(act(fork))
	g.until(fork, done)

	// A store that has the journal and not the group.
	far := newGroupBench(t)
	id = g.mustBegin(deployYAML, nil)
	copyRun(t, inDir(g.e), inDir(far.e), id)
	other := far.mustBegin(deployYAML, nil)
	far.goOn(id)
	far.until(id, protocol.Queued)
	far.goOn(other)
	far.c.letGo(far.c.next(t))
	if got := far.c.next(t); got != act(id) {
		t.Fatalf("%s begins", got)
	}
	far.c.letGo(act(id))
	far.until(id, done)
	report, err := far.e.Check(context.Background(), id, nil)
	if err != nil || len(report.Findings) > 0 {
		t.Errorf("%v %+v", err, report)
	}
}

func copyRun(t *testing.T, from, to *cas.Store, id protocol.RunID) {
	t.Helper()
	var archive bytes.Buffer
	if _, err := cas.Export(context.Background(), &archive, from, cas.ExportOptions{}, id); err != nil {
		t.Fatal(err)
	}
	if _, err := cas.Import(context.Background(), &archive, to, cas.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestO03bAnAttemptIsRefused(t *testing.T) {
	g := newGroupBench(t)
	yaml := "wf: 1\nname: one\nroles: {act: {run: x, timeout: 1h, concurrency: {group: gpu, on_busy: refuse}}}\n"
	holder, refused := g.mustBegin(yaml, nil), g.mustBegin(yaml, nil)
	g.goOn(holder)
	g.c.next(t)
	if v := g.drive(refused); v.Status != protocol.Failed && v.Status != protocol.Suspended || v.Steps[0].Error == nil || v.Steps[0].Error.Code != "group_busy" {
		t.Fatalf("%s (%s) %+v", v.Status, v.Reason, v.Steps[0])
	}
	g.c.letGo(act(holder))
	g.until(holder, done)
	g.wantGroup("gpu", nil, nil)
}

// BenchmarkO03bATurn is the time from the end of one run of a group to the moment at which the next one has its slot, each
// driven over a store of its own; queued is how many more wait.
func BenchmarkO03bATurn(b *testing.B) {
	for _, queued := range []int{0, 100, 1000} {
		b.Run(fmt.Sprintf("queued=%d", queued), func(b *testing.B) {
			g := &groupBench{bench: newBench(b), c: newCrew()}
			g.e.Performers[protocol.ActRun] = g.c
			ids := []protocol.RunID{g.mustBegin(deployYAML, nil)}
			for range b.N {
				ids = append(ids, g.mustBegin(deployYAML, nil))
			}
			for range queued {
				g.mustBegin(deployYAML, nil)
			}
			d := g.goOn(ids[0])
			<-g.c.began
			var waited time.Duration
			b.ResetTimer()
			for _, next := range ids[1:] {
				n := g.other().goOnInLine(next)
				name := ids[0]
				ended := time.Now()
				g.c.letGo(act(name))
				<-g.c.began
				waited += time.Since(ended)
				<-d.over
				d, ids = n, ids[1:]
			}
			b.StopTimer()
			g.c.letGo(act(ids[0]))
			<-d.over
			b.ReportMetric(float64(waited.Microseconds())/float64(b.N), "µs/turn")
		})
	}
}
