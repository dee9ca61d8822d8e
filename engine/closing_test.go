package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/engine/rules"
	"wf/protocol"
	"wf/roles"
)

// closer performs set roles: work waits until it is let go, or fails; cleanups note what they see.
type closer struct {
	saw    []string
	refuse map[string]error // by role
	hold   map[string]bool  // roles that go on until they are stopped
	at     chan string      // a held role runs
}

func newCloser() *closer {
	return &closer{refuse: map[string]error{}, hold: map[string]bool{}, at: make(chan string, 10)}
}

func (c *closer) Perform(ctx context.Context, turn protocol.Turn, emit roles.Emit) (protocol.Conclusion, error) {
	name := turn.Role.Name
	if turn.Verdict != nil {
		c.saw = append(c.saw, fmt.Sprintf("%s saw %s %s %q %s", name, turn.Verdict.Status, turn.Verdict.Code, turn.Verdict.Message, turn.Values))
	}
	if c.hold[name] {
		c.at <- name
		<-ctx.Done()
		return protocol.Conclusion{}, ctx.Err()
	}
	if err := c.refuse[name]; err != nil {
		return protocol.Conclusion{}, err
	}
	return protocol.Conclusion{Data: turn.Values}, nil
}

func fails(code string) error {
	return &protocol.Failure{ErrorInfo: protocol.ErrorInfo{Code: code, Phase: "run", Message: "it broke"}}
}

const closingYAML = `
wf: 1
name: closes
roles:
  work: {set: {n: 1}}
  tidy: {set: {saw: "${{ run.verdict.status }}/${{ steps.work?.output?.n ?? 'no work' }}"}}
  report: {set: {saw: "${{ steps.tidy?.output?.saw ?? 'no tidy' }}"}}
edges:
  - {from: START, to: work}
  - {from: work, to: END}
  - {from: work, to: FAIL, on: failure}
always: [tidy, report]
outputs: {n: "${{ steps.work?.output?.n }}"}
`

// closingBench is a bench whose set roles a closer performs.
func closingBench(t testing.TB) (*bench, *closer) {
	b, c := newBench(t), newCloser()
	b.e.Performers[protocol.ActSet] = c
	return b, c
}

// checked verifies what a fold of the whole journal says, and that the run is as it was driven.
func (b *bench) checked(id protocol.RunID) {
	b.t.Helper()
	ctx := context.Background()
	if rep, err := b.e.Check(ctx, id, nil); err != nil || !rep.OK() {
		b.t.Errorf("check: %v %+v", err, rep)
	}
	if f, err := b.e.Refold(ctx, id); err != nil || f != nil {
		b.t.Errorf("fold: %v %+v", err, f)
	}
	if r, err := cas.Verify(ctx, inDir(b.e), cas.VerifyOptions{}); err != nil || !r.OK {
		b.t.Errorf("verify: %v %+v", err, r)
	}
}

// O-06a: whatever the verdict is, always roles see it and run in their order, and change nothing of it.
func TestO06aAlwaysRolesRunHoweverARunEnds(t *testing.T) {
	results := map[protocol.RunStatus]string{}
	for _, c := range []struct {
		work, tidy error
		status     protocol.RunStatus
		saw        []string
		failed     []string
	}{
		{nil, nil, protocol.Done, []string{`tidy saw done  "" {"saw":"done/1"}`, `report saw done  "" {"saw":"done/1"}`}, nil},
		{nil, fails("bad"), protocol.Done, []string{`tidy saw done  "" {"saw":"done/1"}`, `report saw done  "" {"saw":"no tidy"}`}, []string{"tidy#1 bad it broke"}},
		{fails("bad"), nil, protocol.Failed, []string{`tidy saw failed bad "work#1 led to FAIL" {"saw":"failed/no work"}`, `report saw failed bad "work#1 led to FAIL" {"saw":"failed/no work"}`}, nil},
		{fails("bad"), fails("worse"), protocol.Failed, nil, []string{"tidy#1 worse it broke"}},
	} {
		b, cl := closingBench(t)
		cl.refuse["work"], cl.refuse["tidy"] = c.work, c.tidy
		id, v := b.run(closingYAML, nil)
		if v.Status != c.status || v.Closing != "" {
			t.Fatalf("%s, closing %q: %s", v.Status, v.Closing, b.types(id))
		}
		if c.saw != nil && strings.Join(cl.saw, "\n") != strings.Join(c.saw, "\n") {
			t.Errorf("%s\nwant\n%s", strings.Join(cl.saw, "\n"), strings.Join(c.saw, "\n"))
		}
		if got := cleanups(v); strings.Join(got, "\n") != strings.Join(c.failed, "\n") {
			t.Errorf("%s: cleanup failed: %v, want %v", c.status, got, c.failed)
		}
		if before := results[c.status]; before != "" && before != *v.Result {
			t.Errorf("%s: a cleanup changed the result", c.status)
		}
		results[c.status] = *v.Result
		result := resultOf(t, b, *v.Result)
		if len(result.Parents) != 1 || result.Parents[0].String() != *v.Steps[0].CID {
			t.Errorf("%s: the result follows %v, not work", c.status, result.Parents)
		}
		want := "run_started, step_started work#1, step_completed work#1, closing, step_started tidy#1, step_completed tidy#1, step_started report#1, step_completed report#1, done"
		if c.work == nil && c.tidy == nil && b.types(id) != want {
			t.Errorf("%s\nwant\n%s", b.types(id), want)
		}
		b.checked(id)
	}
}

func cleanups(v *api.Run) (out []string) {
	for _, c := range v.CleanupFailed {
		step := c.Step
		if step == "" {
			step = "no " + c.Role
		}
		out = append(out, step+" "+c.Code+" "+c.Message)
	}
	return out
}

func resultOf(t testing.TB, b *bench, cid string) (r protocol.Result) {
	t.Helper()
	l, err := protocol.ParseLink(cid)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := b.e.Store.Block(context.Background(), l)
	if err == nil {
		err = cas.Decode(raw, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A run that is cancelled closes where it is driven. What runs is stopped before.
func TestO06aACancelledRunCloses(t *testing.T) {
	b, c := closingBench(t)
	c.hold["work"] = true
	id, _, over := b.begun(closingYAML, func(api.Update) bool { return false })
	<-c.at
	if err := b.e.Cancel(context.Background(), id, "ada", "enough"); err != nil {
		t.Fatal(err)
	}
	if err := <-over; err != nil {
		t.Fatal(err)
	}
	v := b.view(id)
	if v.Status != protocol.Cancelled || len(c.saw) != 2 || c.saw[0] != `tidy saw cancelled  "enough" {"saw":"cancelled/no work"}` {
		t.Errorf("%s: %v: %s", v.Status, c.saw, b.types(id))
	}
	if v.Steps[0].Status != "parked" {
		t.Errorf("work is %s", v.Steps[0].Status)
	}
	b.checked(id)
	if err := b.e.Cancel(context.Background(), id, "ada", ""); !errors.Is(err, protocol.ErrFinal) {
		t.Error(err)
	}
}

// One that no process drives is driven by what cancels it.
func TestO06aASuspendedRunThatIsCancelledCloses(t *testing.T) {
	b, c := closingBench(t)
	c.refuse["work"] = errors.New("no key")
	id, v := b.run(closingYAML, nil)
	if v.Status != protocol.Suspended || len(c.saw) > 0 {
		t.Fatalf("%s: a suspension is no end: %v", v.Status, c.saw)
	}
	if err := b.e.Cancel(context.Background(), id, "ada", "enough"); err != nil {
		t.Fatal(err)
	}
	if v := b.view(id); v.Status != protocol.Cancelled || v.Reason != "enough" || len(c.saw) != 2 {
		t.Errorf("%s %q: %v", v.Status, v.Reason, c.saw)
	}
	b.checked(id)
}

// Before anything was performed there is nothing to clean up.
func TestO06aARunInWhichNothingRanIsCancelledAtOnce(t *testing.T) {
	b, c := closingBench(t)
	id, _, err := b.e.Begin(t.Context(), engine.Launch{Program: b.load(closingYAML), Inputs: protocol.JSON("{}")})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.e.Cancel(t.Context(), id, "ada", "typo"); err != nil {
		t.Fatal(err)
	}
	if got := b.types(id); got != "run_started, cancelled" || len(c.saw) > 0 {
		t.Errorf("%s %v", got, c.saw)
	}
}

// To cancel a run that closes by itself changes nothing; to cancel it again skips what is left.
func TestO06aASecondCancelSkipsWhatIsLeft(t *testing.T) {
	b, c := closingBench(t)
	c.hold["tidy"] = true
	id, _, over := b.begun(closingYAML, func(api.Update) bool { return false })
	<-c.at
	v := b.view(id)
	if v.Status != protocol.Running || v.Closing != protocol.Done || v.Result != nil {
		t.Errorf("%s, closing %q", v.Status, v.Closing)
	}
	closing, err := b.e.CancelSoon(context.Background(), id, "ada", "stop")
	if err != nil || len(closing) != 1 {
		t.Fatal(closing, err)
	}
	if v := b.view(id); v.Closing != protocol.Done || len(v.CleanupFailed) > 0 || !strings.HasSuffix(b.types(id), ", cancel_asked") {
		t.Errorf("closing %q: %s", v.Closing, b.types(id))
	}
	if err := b.e.Cancel(context.Background(), id, "ada", "now"); err != nil {
		t.Fatal(err)
	}
	if err := <-over; err != nil {
		t.Fatal(err)
	}
	if v = b.view(id); v.Status != protocol.Done || v.Result == nil {
		t.Errorf("%s: the verdict stands", v.Status)
	}
	if got := strings.Join(cleanups(v), ", "); got != "tidy#1 cancelled now, no report cancelled now" {
		t.Error(got)
	}
	b.checked(id)
}

// A run that was interrupted while it closed goes on there.
func TestO06aAnInterruptionInClosingIsResumedThere(t *testing.T) {
	b, c := closingBench(t)
	c.hold["report"] = true
	p := b.load(closingYAML)
	id, _, err := b.e.Begin(t.Context(), engine.Launch{Program: p, Inputs: protocol.JSON("{}")})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	go func() { <-c.at; stop() }()
	if _, err := b.e.Drive(ctx, id, engine.DriveOptions{}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if v := b.view(id); v.Status != protocol.Suspended || v.Closing != protocol.Done {
		t.Fatalf("%s, closing %q", v.Status, v.Closing)
	}
	b.checked(id)
	c.hold["report"] = false
	b.open()
	b.e.Performers[protocol.ActSet] = c
	if v := b.drive(id); v.Status != protocol.Done || len(v.CleanupFailed) > 0 || len(c.saw) != 3 {
		t.Errorf("%s %v %v", v.Status, c.saw, cleanups(v))
	}
	b.checked(id)
}

// Together always roles have 10 attempts and 5 minutes.
func TestO06aTheBoundsOfClosing(t *testing.T) {
	b, c := closingBench(t)
	c.refuse["tidy"] = fails("bad")
	b.e.Performers[protocol.ActRun] = c
	id, v := b.run("wf: 1\nname: tries\nroles:\n  work: {set: {n: 1}}\n  tidy: {run: x, retry: {attempts: 20, delay: 1ms}}\n  report: {set: {n: 2}}\nalways: [tidy, report]\n", nil)
	if got := strings.Join(cleanups(v), "\n"); v.Status != protocol.Done || got != "tidy#1 closing_budget always roles have 10 attempts together\nno report closing_budget always roles have 10 attempts together" {
		t.Errorf("%s %s", v.Status, got)
	}
	if len(c.saw) != protocol.AlwaysMax {
		t.Errorf("%d attempts", len(c.saw))
	}
	b.checked(id)

	b, c = closingBench(t)
	c.hold["tidy"] = true
	var later atomic.Int64
	b.e.Now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	p := b.load(closingYAML)
	id, _, err := b.e.Begin(t.Context(), engine.Launch{Program: p, Inputs: protocol.JSON("{}")})
	if err != nil {
		t.Fatal(err)
	}
	b.e.Performers[protocol.ActSet] = performer(func(ctx context.Context, turn protocol.Turn, emit roles.Emit) (protocol.Conclusion, error) {
		if turn.Role.Name != "tidy" {
			return c.Perform(ctx, turn, emit)
		}
		later.Store(int64(protocol.ClosingTime * time.Microsecond))
		if err := emit(ctx, protocol.TextSaid{Content: protocol.NewText("still at it")}); err != nil { // the driver looks at the clock
			return protocol.Conclusion{}, err
		}
		<-ctx.Done()
		return protocol.Conclusion{}, ctx.Err()
	})
	if v = b.drive(id); v.Status != protocol.Done || len(v.CleanupFailed) != 2 || v.CleanupFailed[0].Code != protocol.SkippedByBudget || v.CleanupFailed[0].Message != "always roles have 5m0s together" {
		t.Errorf("%s %v: %s", v.Status, cleanups(v), b.types(id))
	}
	b.checked(id)
}

// An attempt that would come when the time of closing is over is not waited for.
func TestO06aAnAttemptBeyondTheTimeOfClosing(t *testing.T) {
	const yaml = "wf: 1\nname: waits\nroles:\n  work: {set: {n: 1}}\n  tidy: {run: x, retry: {attempts: 9, delay: 1h, max_delay: 1h}}\n  report: {set: {n: 2}}\nalways: [tidy, report]\n"
	b, c := closingBench(t)
	c.refuse["tidy"] = fails("bad")
	b.e.Performers[protocol.ActRun] = c
	id, v := b.run(yaml, nil)
	if got := strings.Join(cleanups(v), "\n"); got != "tidy#1 bad it broke" || len(c.saw) != 2 {
		t.Errorf("%s: %v", got, c.saw)
	}
	b.checked(id)
}

type performer func(context.Context, protocol.Turn, roles.Emit) (protocol.Conclusion, error)

func (p performer) Perform(ctx context.Context, turn protocol.Turn, emit roles.Emit) (protocol.Conclusion, error) {
	return p(ctx, turn, emit)
}

// An always role that asks, waits or cannot go on has failed; the next one runs.
func TestO06aNothingWaitsForAnAlwaysRole(t *testing.T) {
	for name, tidy := range map[string]performer{
		"cannot_ask": func(ctx context.Context, _ protocol.Turn, emit roles.Emit) (protocol.Conclusion, error) {
			err := emit(ctx, protocol.WaitingFor{Kind: protocol.WaitChoice, Question: protocol.NewText("May I?")})
			return protocol.Conclusion{}, errors.Join(err, protocol.ErrWaiting)
		},
		"cannot_go_on": func(context.Context, protocol.Turn, roles.Emit) (protocol.Conclusion, error) {
			return protocol.Conclusion{}, errors.New("no key")
		},
		"no_worker": func(context.Context, protocol.Turn, roles.Emit) (protocol.Conclusion, error) {
			return protocol.Conclusion{}, &protocol.Failure{Suspend: true, Err: errors.New("no key"), ErrorInfo: protocol.ErrorInfo{Code: "no_key", Phase: "x", Message: "no key"}}
		},
	} {
		b, c := closingBench(t)
		b.e.Performers[protocol.ActSet] = performer(func(ctx context.Context, turn protocol.Turn, emit roles.Emit) (protocol.Conclusion, error) {
			if turn.Role.Name == "tidy" {
				return tidy(ctx, turn, emit)
			}
			return c.Perform(ctx, turn, emit)
		})
		id, v := b.run(closingYAML, nil)
		if v.Status != protocol.Done || len(v.CleanupFailed) != 1 || len(c.saw) != 1 || v.Steps[1].Status != "failed" {
			t.Errorf("%s: %s %v %v: %s", name, v.Status, cleanups(v), c.saw, b.types(id))
		}
		if code := v.CleanupFailed[0].Code; name != "no_worker" && code != name {
			t.Errorf("%s: %s", name, code)
		}
		b.checked(id)
	}
}

// withoutMemory is a closer whose role tidy cannot begin.
type withoutMemory struct{ *closer }

func (withoutMemory) Prepare(_ context.Context, turn protocol.Turn) (roles.Preparation, error) {
	if turn.Role.Name == "tidy" {
		return roles.Preparation{}, errors.New("its memory is not there")
	}
	return roles.Preparation{}, nil
}

// What an always role needs and is not there fails that role alone.
func TestO06aAnAlwaysRoleThatCannotBeginFails(t *testing.T) {
	b, c := closingBench(t)
	b.e.Performers[protocol.ActSet] = withoutMemory{c}
	id, v := b.run(closingYAML, nil)
	if v.Status != protocol.Done || len(v.CleanupFailed) != 1 || v.CleanupFailed[0].Step != "tidy#1" || len(c.saw) != 1 {
		t.Errorf("%s %v %v", v.Status, cleanups(v), c.saw)
	}
	b.checked(id)
}

const effects = `
wf: 1
name: effects
roles:
  lock: {run: 'echo lock >> log'}
  work: {run: 'echo work >> log; exit 3', continue_on_error: true}
  unlock: {run: 'echo unlock >> log'}
  note: {run: 'echo note >> log', once: true}
always: [unlock, note]
outputs: {exit: "${{ steps.work?.exit_code }}"}
`

// A process that dies at any operation on disk leaves a run that closes once, as it would have.
func TestO06aCrashesInClosing(t *testing.T) {
	var want string
	crashed := 0
	for n := 1; n < 40; n++ {
		b := newBench(t)
		b.e.Parallel = 1
		id, _, err := b.e.Begin(t.Context(), engine.Launch{Program: b.load(effects), Inputs: protocol.JSON("{}"), Workspace: b.dir})
		if err != nil {
			t.Fatal(err)
		}
		b.crashing(n)
		if _, err := b.e.Drive(t.Context(), id, engine.DriveOptions{}); err != nil {
			if !errors.Is(err, errCrash) {
				t.Fatal(err)
			}
			crashed++
		}
		b.open()
		v := b.drive(id)
		log, err := os.ReadFile(filepath.Join(b.dir, "log"))
		if err != nil {
			t.Fatal(err)
		}
		if v.Status != protocol.Done || !strings.Contains(string(log), "unlock\n") || strings.Count(string(log), "note\n") != 1 && len(v.CleanupFailed) == 0 {
			t.Fatalf("after %d operations: %s %q %v: %s", n, v.Status, log, cleanups(v), b.types(id))
		}
		if strings.Count(string(log), "note\n") > 1 {
			t.Fatalf("after %d operations what runs once ran twice: %q", n, log)
		}
		if want == "" {
			want = *v.Result
		}
		if *v.Result != want {
			t.Fatalf("after %d operations: another result", n)
		}
		b.checked(id)
	}
	if crashed < 10 {
		t.Errorf("only %d crashes", crashed)
	}
}

// A cancel that another process records at any moment of a drive ends the run, and its always roles run once.
func TestO06aACancelAtAnyMoment(t *testing.T) {
	seen := map[protocol.RunStatus]int{}
	for nth := 1; ; nth++ {
		b, c := closingBench(t)
		id, _, err := b.e.Begin(t.Context(), engine.Launch{Program: b.load(closingYAML), Inputs: protocol.JSON("{}")})
		if err != nil {
			t.Fatal(err)
		}
		other, err := cas.Open(t.Context(), b.dir+"/.wf", cas.Options{})
		if err != nil {
			t.Fatal(err)
		}
		second := &engine.Engine{Store: other, Version: "test", Performers: b.e.Performers}
		calls, refused := 0, error(nil)
		b.e.Now = func() time.Time {
			if calls++; calls == nth {
				refused = second.Cancel(context.Background(), id, "ada", "enough")
			}
			return time.Now()
		}
		v := b.drive(id)
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
		if calls < nth {
			break
		}
		seen[v.Status]++
		if !v.Status.Final() || v.Closing != "" {
			t.Fatalf("call %d: %s: %s", nth, v.Status, b.types(id))
		}
		began := strings.Count(b.types(id), "step_started tidy#1")
		if began > 1 || len(v.CleanupFailed) > 0 || len(v.Steps) > 0 && len(c.saw) != 2 {
			t.Fatalf("call %d: %s, %v, cancel: %v: %v: %s", nth, v.Status, c.saw, refused, cleanups(v), b.types(id))
		}
		b.checked(id)
	}
	if seen[protocol.Cancelled] == 0 || seen[protocol.Done] == 0 {
		t.Errorf("%v", seen)
	}
}

const closingParent = `
wf: 1
name: parent
roles:
  sub: {workflow: child.yaml}
  after: {set: {saw: "${{ run.verdict.status }}"}}
always: after
`

// The runs of sub-workflows close too, before the run that they belong to.
func TestO06aSubWorkflowsClose(t *testing.T) {
	for _, parent := range []string{closingParent, "wf: 1\nname: parent\nroles:\n  sub: {workflow: child.yaml}\n"} {
		for _, driven := range []bool{true, false} {
			b, c := closingBench(t)
			if err := os.WriteFile(filepath.Join(b.dir, "child.yaml"), []byte(closingYAML), 0o600); err != nil {
				t.Fatal(err)
			}
			c.hold["work"] = true
			id, _, err := b.e.Begin(t.Context(), engine.Launch{Program: b.load(parent), Inputs: protocol.JSON("{}"), Workspace: b.dir})
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			over := make(chan error, 1)
			go func() {
				_, err := b.e.Drive(ctx, id, engine.DriveOptions{})
				over <- err
			}()
			<-c.at
			if !driven {
				stop()
				<-over
			}
			if err := b.e.Cancel(context.Background(), id, "ada", "enough"); err != nil {
				t.Fatal(err)
			}
			if driven {
				if err := <-over; err != nil {
					t.Fatal(err)
				}
			}
			stop()
			v := b.view(id)
			kid := b.view(protocol.RunID(v.Steps[0].Child))
			if v.Status != protocol.Cancelled || kid.Status != protocol.Cancelled || v.Closing+kid.Closing != "" {
				t.Fatalf("driven %v: %s, and its part %s", driven, v.Status, kid.Status)
			}
			if len(c.saw) < 2 || !strings.HasPrefix(c.saw[0], "tidy saw cancelled") || !strings.HasPrefix(c.saw[1], "report saw cancelled") ||
				parent == closingParent && (len(c.saw) != 3 || !strings.HasPrefix(c.saw[2], "after saw cancelled")) {
				t.Errorf("driven %v: %v", driven, c.saw)
			}
			b.checked(id)
			b.checked(kid.ID)
		}
	}
}

// A fork goes on with the graph, and closes by itself.
func TestO06aAForkClosesByItself(t *testing.T) {
	b, c := closingBench(t)
	id, v := b.run(closingYAML, nil)
	for _, at := range []protocol.Seq{3, 4, 6, v.Seq} {
		c.saw = nil
		fork, err := b.e.Fork(t.Context(), id, engine.ForkOptions{At: at})
		if err != nil {
			t.Fatal(err)
		}
		f := b.drive(fork)
		if f.Status != protocol.Done || *f.Result != *v.Result || len(c.saw) != 2 {
			t.Errorf("at %d: %s %v: %s", at, f.Status, c.saw, b.types(fork))
		}
		b.checked(fork)
	}
	plain := b.load("wf: 1\nname: closes\nroles:\n  work: {set: {n: 1}}\n  more: {set: {n: 2}}\nedges:\n  - {from: work, to: more}\n  - {from: more, to: END}\n")
	fork, err := b.e.Fork(t.Context(), id, engine.ForkOptions{At: 6, With: plain})
	if err != nil {
		t.Fatal(err)
	}
	if f := b.drive(fork); f.Status != protocol.Done || strings.Contains(b.types(fork)[strings.Index(b.types(fork), "forked"):], "tidy") {
		t.Errorf("%s: %s", f.Status, b.types(fork))
	}
	b.checked(fork)
}

// What the graph asked is asked no more once the run closes.
func TestO06aAQuestionOfARunThatClosesIsGone(t *testing.T) {
	b, c := closingBench(t)
	yaml := strings.Replace(closingYAML, "work: {set: {n: 1}}", "work: {ask: \"Go?\"}", 1)
	yaml = strings.ReplaceAll(strings.ReplaceAll(yaml, "output?.n ??", "output?.text ??"), "output?.n }}", "output?.text }}")
	id, v := b.run(yaml, nil)
	if v.Status != protocol.Waiting {
		t.Fatal(v.Status)
	}
	c.hold["tidy"] = true
	ended := make(chan error, 1)
	go func() { ended <- b.e.Cancel(context.Background(), id, "ada", "enough") }()
	<-c.at
	if v = b.view(id); v.Closing != protocol.Cancelled || len(v.Waiting) > 0 || v.Steps[0].Status != "parked" {
		t.Errorf("%q %v %s", v.Closing, v.Waiting, v.Steps[0].Status)
	}
	if _, err := b.e.Answer(context.Background(), id, engine.Reply{Text: "yes"}); !errors.Is(err, protocol.ErrNotWaiting) {
		t.Error(err)
	}
	if err := b.e.Cancel(context.Background(), id, "ada", "now"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if v = b.view(id); v.Status != protocol.Cancelled || v.Reason != "enough" {
		t.Errorf("%s %q", v.Status, v.Reason)
	}
	b.checked(id)
}

// A definition without always roles has the semantics, and so the CIDs, that it always had.
func TestO06aOnlyDefinitionsWithAlwaysRolesPinTheRule(t *testing.T) {
	b, _ := closingBench(t)
	with, without := b.load(closingYAML).Workflow, b.load("wf: 1\nname: plain\nroles:\n  work: {set: {n: 1}}\n").Workflow
	if got, was := rules.SemanticsOf(with), rules.SemanticsOf(without); got != 3 || was != 1 {
		t.Errorf("%d and %d", got, was)
	}
	if raw, err := json.Marshal(without); err != nil || strings.Contains(string(raw), "always") {
		t.Errorf("%v %s", err, raw)
	}
}

// A run that takes the place of another begins when that one has closed: its always roles hold the slot to the end.
func TestO06aARunThatIsReplacedClosesFirst(t *testing.T) {
	const yaml = "wf: 1\nname: gate\nconcurrency: {group: g, on_busy: cancel_old}\nroles: {ok: {ask: \"Go?\"}, tidy: {run: x}}\nalways: tidy\n"
	for _, driven := range []bool{false, true} {
		g := newGroupBench(t)
		yaml := yaml
		if driven {
			yaml = strings.Replace(yaml, "{ask: \"Go?\"}", "{run: x}", 1)
		}
		first := g.mustBegin(yaml, nil)
		d := g.goOn(first)
		if driven {
			g.c.next(t)
		} else {
			<-d.over
		}
		second := g.mustBegin(yaml, nil)
		p := g.other()
		p.goOn(second)
		if got := g.c.next(t); got != string(first)+":tidy#1" {
			t.Fatalf("driven %v: %s begins", driven, got)
		}
		if v := g.view(first); v.Closing != protocol.Cancelled || v.Status != protocol.Running {
			t.Errorf("%s, closing %q", v.Status, v.Closing)
		}
		g.wantGroup("g", []string{string(first)}, []string{string(second)})
		g.c.letGo(string(first) + ":tidy#1")
		g.until(first, protocol.Cancelled)
		if driven {
			if got := g.c.next(t); got != string(second)+":ok#1" {
				t.Fatalf("%s begins", got)
			}
			g.c.letGo(string(second) + ":ok#1")
			if got := g.c.next(t); got != string(second)+":tidy#1" {
				t.Fatalf("%s begins", got)
			}
			g.c.letGo(string(second) + ":tidy#1")
			g.until(second, done)
		} else {
			g.until(second, protocol.Waiting)
		}
	}
}

// A run that waits for its slot again is cancelled without waiting on.
func TestO06aAQueuedRunClosesWithoutASlot(t *testing.T) {
	g := newGroupBench(t)
	const yaml = "wf: 1\nname: one\nconcurrency: {group: g, release_on_suspend: true}\nroles: {act: {run: x, timeout: 1h}, tidy: {run: x}}\nalways: tidy\n"
	first := g.suspended(yaml)
	second := g.mustBegin(yaml, nil)
	g.goOn(second)
	g.c.next(t)
	d := g.goOn(first)
	g.until(first, protocol.Queued)
	if err := g.e.Cancel(context.Background(), first, "ada", "enough"); err != nil {
		t.Fatal(err)
	}
	if got := g.c.next(t); got != string(first)+":tidy#1" {
		t.Fatalf("%s begins", got)
	}
	g.c.letGo(string(first) + ":tidy#1")
	<-d.over
	if v := g.view(first); v.Status != protocol.Cancelled || d.err != nil {
		t.Errorf("%s %v", v.Status, d.err)
	}
	g.wantGroup("g", []string{string(second)}, nil)
}

// Which branch is the first to end changes no record of an always role.
func TestO06aTheOrderOfBranchesChangesNoRecordOfAnAlwaysRole(t *testing.T) {
	const yaml = `
wf: 1
name: branches
roles:
  a: {set: {n: 1}}
  b: {set: {n: 2}}
  x: {set: {n: "${{ output.n }}"}}
  tidy: {set: {saw: "${{ steps.x?.output?.n }} ${{ steps.a?.output?.n }}"}}
edges:
  - {from: START, to: [a, b]}
  - {from: a, to: x}
  - {from: b, to: x}
  - {from: x, to: END}
always: tidy
`
	var want []string
	for _, first := range []string{"a", "b", "a", "b"} {
		b := newBench(t)
		ended := make(chan struct{})
		end := sync.OnceFunc(func() { close(ended) })
		b.e.Performers[protocol.ActSet] = performer(func(_ context.Context, turn protocol.Turn, _ roles.Emit) (protocol.Conclusion, error) {
			switch name := turn.Role.Name; {
			case name == "x":
				end()
			case (name == "a" || name == "b") && name != first:
				<-ended
			}
			return protocol.Conclusion{Data: turn.Values}, nil
		})
		id, v := b.run(yaml, nil)
		got := conclusions(v)
		if want == nil {
			want = got
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") || v.Status != protocol.Done {
			t.Errorf("%s first: %s\n%v\nwant\n%v", first, v.Status, got, want)
		}
		b.checked(id)
	}
}

// Where it cannot be told whether a run may be driven here, nothing of its cleanup is skipped.
func TestO06aAnUnreadablePinSkipsNoCleanup(t *testing.T) {
	b, c := closingBench(t)
	state := t.TempDir()
	b.e.Pins = cas.NewPins(b.e.Store, state)
	c.refuse["work"] = errors.New("no key")
	id, v := b.run(closingYAML, nil)
	if v.Status != protocol.Suspended {
		t.Fatal(v.Status)
	}
	before := b.types(id)
	kept := map[string][]byte{}
	err := filepath.WalkDir(state, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasSuffix(path, ".lock") {
			return err
		}
		if kept[path], err = os.ReadFile(path); err != nil {
			return err
		}
		return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) // which is no file
	})
	if err != nil || len(kept) == 0 {
		t.Fatal(kept, err)
	}
	b.e.Pins = cas.NewPins(b.e.Store, state)
	if err := b.e.Cancel(t.Context(), id, "ada", "enough"); err == nil || b.types(id) != before {
		t.Errorf("%v: %s", err, b.types(id))
	}
	for path, raw := range kept {
		if err := errors.Join(os.Remove(path), os.WriteFile(path, raw, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.e.Cancel(t.Context(), id, "ada", "enough"); err != nil {
		t.Fatal(err)
	}
	if v := b.view(id); v.Status != protocol.Cancelled || len(c.saw) != 2 {
		t.Errorf("%s %v", v.Status, c.saw)
	}
	b.checked(id)
}

// What an agent or a person writes as the reason keeps no clean-up from having it in the environment of a command.
func TestO06aAnyReasonFitsTheEnvironmentOfACleanup(t *testing.T) {
	const yaml = "wf: 1\nname: why\ndefaults: {timeout: 1m}\nroles:\n  work: {set: {n: 1}}\n  wait: {ask: Go?}\n  tidy: {run: 'printf %s \"$WHY\" >why', env: {WHY: \"${{ run.verdict.message }}\"}}\nalways: tidy\n"
	for _, reason := range []string{"a\x00b\x00", strings.Repeat("é", 1<<20), "bad \xff\xfe"} {
		b := newBench(t)
		id, v := b.run(yaml, nil)
		if v.Status != protocol.Waiting {
			t.Fatal(v.Status)
		}
		if err := b.e.Cancel(t.Context(), id, "ada", reason); err != nil {
			t.Fatal(err)
		}
		why, err := os.ReadFile(filepath.Join(b.dir, "why"))
		if v := b.view(id); v.Status != protocol.Cancelled || len(v.CleanupFailed) > 0 || err != nil || len(why) == 0 || len(why) > protocol.EdgePromptMax {
			t.Errorf("%.20q: %s %v, %d bytes, %v", reason, v.Status, cleanups(v), len(why), err)
		}
		b.checked(id)
	}
}
