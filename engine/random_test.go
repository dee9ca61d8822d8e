package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/engine/lang"
	"wf/engine/rules/rulestest"
	"wf/protocol"
	"wf/roles"
)

// promptSizes are around what an event holds in place and what a prompt may be long.
var promptSizes = []int{0, 0, 0, protocol.InlineMax - 30, protocol.InlineMax, protocol.InlineMax + 1, protocol.EdgePromptMax - 40, protocol.EdgePromptMax + 1, 3 * protocol.EdgePromptMax}

// oracle performs a visit as a pure function of what the visit is, in an arbitrary time. It
// says something without waiting, and then waits, as before an effect.
type oracle struct {
	durable *events
	hasty   *atomic.Int64 // visits that went on although not all they said was durable
}

// events counts those that became durable, by step.
type events struct {
	mu   sync.Mutex
	seen map[string]int
}

func (e *events) of(step string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.seen[step]
}

func (e *events) watch(n api.Update) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n.Entry != nil && n.Entry.Type == protocol.EvText {
		e.seen[n.Step]++
	}
}

func (o oracle) Perform(ctx context.Context, turn protocol.Turn, emit roles.Emit) (protocol.Conclusion, error) {
	step := turn.Step.String()
	before := o.durable.of(step)
	n := rand.IntN(4)
	for i := range n {
		if err := emit(roles.Soon(ctx), protocol.TextSaid{Content: protocol.NewText(fmt.Sprint(i))}); err != nil {
			return protocol.Conclusion{}, err
		}
	}
	if rand.IntN(2) == 0 {
		if err := emit(ctx); err != nil {
			return protocol.Conclusion{}, err
		}
		if o.durable.of(step) != before+n {
			o.hasty.Add(1)
		}
	}
	h := fnv.New64a()
	fmt.Fprint(h, turn.Role.Name, turn.Visit, turn.EdgePrompt, string(turn.Values))
	if turn.Item != nil {
		fmt.Fprint(h, turn.Item.Index, string(turn.Item.Value))
	}
	r := rand.New(rand.NewPCG(h.Sum64(), 1))
	items := []int{}
	for range r.IntN(4) {
		items = append(items, r.IntN(3))
	}
	if turn.Role.Name == rulestest.Breaks {
		return protocol.Conclusion{}, &protocol.Failure{ErrorInfo: protocol.ErrorInfo{Code: "bad", Phase: "run", Message: "breaks"}}
	}
	if strings.HasPrefix(turn.EdgePrompt, "risky") && r.IntN(3) > 0 {
		return protocol.Conclusion{}, &protocol.Failure{ErrorInfo: protocol.ErrorInfo{Code: "bad", Phase: "run", Message: "drawn"}}
	}
	data, err := json.Marshal(map[string]any{"again": r.IntN(2) == 0, "items": items, "n": r.IntN(1000)})
	for range rand.IntN(20) { // let others finish first, now and then
		runtime.Gosched()
	}
	return protocol.Conclusion{Data: data}, err
}

// errCrash takes the place of every operation on disk once the process is as good as dead.
var errCrash = errors.New("the process is gone")

// crashing opens the store anew, as a process that dies before its n-th operation on disk.
func (b *bench) crashing(n int) {
	b.open()
	if err := inDir(b.e).Close(); err != nil {
		b.t.Fatal(err)
	}
	var mu sync.Mutex
	ops := 0
	s, err := cas.Open(context.Background(), filepath.Join(b.dir, ".wf"), cas.Options{Before: func(cas.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if ops++; ops > n {
			return errCrash
		}
		return nil
	}})
	if err != nil {
		b.open() // it died while opening: the next one does not
		return
	}
	b.t.Cleanup(func() { s.Close() })
	b.e.Store = s
}

// crashes counts them, to know that the property is not vacuous.
var crashes, hasty atomic.Int64

// conclusions are what must not depend on timing: the records, as a set, and the result.
func conclusions(v *api.Run) []string {
	var out []string
	for _, s := range v.Steps {
		if s.CID != nil {
			out = append(out, s.Role+" "+*s.CID)
		}
	}
	sort.Strings(out)
	if v.Result != nil {
		out = append(out, "result "+*v.Result)
	}
	return append(out, string(v.Status))
}

// The same for random definitions, timings and interruptions: W-18.
func TestW18CompletionOrderNeverChangesARecord(t *testing.T) {
	ran := map[protocol.RunStatus]int{}
	rapid.Check(t, func(rt *rapid.T) {
		inDir := func() *bench { return newBench(t) }
		concludeAlike(rt, ran, []random{{"", inDir}, {"interrupt", inDir}, {"crash", inDir}, {"crash", inDir}})
	})
	t.Logf("%v, %d crashes", ran, crashes.Load())
	if n := hasty.Load(); n > 0 {
		t.Errorf("%d emits returned before what was said was durable", n)
	}
	if crashes.Load() == 0 {
		t.Error("no run was cut off by a crash")
	}
}

// random is a way to drive a random definition.
type random struct {
	trouble string // "interrupt", "crash", "cut" ends the sessions of a database; "" for none
	on      func() *bench
}

// concludeAlike draws a definition, and has it come to the same in all ways.
func concludeAlike(rt *rapid.T, ran map[protocol.RunStatus]int, ways []random) {
	yaml := rulestest.Closing(rt, rulestest.Flow(rt))
	p, diags := lang.Load([]byte(yaml), lang.Options{File: "random.yaml"})
	if p == nil {
		var codes []string
		for _, d := range diags {
			if d.Severity == "error" {
				codes = append(codes, d.Code+" "+d.Message)
			}
		}
		if slices.ContainsFunc(codes, func(c string) bool { return !strings.HasPrefix(c, "WF017") && !strings.HasPrefix(c, "WF013") }) {
			rt.Fatalf("%s\n%v", yaml, codes)
		}
		rt.Skip("lint refuses it")
	}
	inPlace := rapid.IntRange(0, 2).Draw(rt, "in place") == 0
	long := strings.Repeat("x", rapid.SampledFrom(promptSizes).Draw(rt, "bytes of a prompt"))
	var want []string
	for try, way := range ways {
		v := way.drive(rt, p, yaml, inPlace, long)
		ran[v.Status]++
		got := conclusions(v)
		if v.Status == protocol.Failed || strings.Contains(v.Reason, "limits.steps") {
			return // a subset of the one DAG
		}
		if inPlace && v.Status == protocol.Suspended {
			return // each further drive resumes it, and then it goes on
		}
		if want == nil {
			want = got
		} else if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatalf("try %d, in place %v, differs:\n%s\n%s\n%s", try, inPlace, diff, yaml, v.Reason)
		}
	}
}

func (way random) drive(rt *rapid.T, p *lang.Program, yaml string, inPlace bool, long string) *api.Run {
	b, trouble := way.on(), way.trouble
	b.e.Warn = func(err error) { rt.Errorf("%v\n%s", err, yaml) }
	durable := &events{seen: map[string]int{}}
	var performer roles.Performer = oracle{durable, &hasty}
	if inPlace {
		performer = roles.Set{}
	}
	b.e.Performers[protocol.ActSet] = performer
	ctx := context.Background()
	in, err := p.Inputs(map[string]any{"long": long})
	if err != nil {
		rt.Fatal(err)
	}
	id, _, err := b.e.Begin(ctx, engine.Launch{Program: p, Source: []byte(yaml), Inputs: in})
	if err != nil {
		rt.Fatal(err)
	}
	for crash := 0; ; crash++ {
		dctx, cancel := context.WithCancel(ctx)
		seen := 0
		after := rapid.IntRange(1, 12).Draw(rt, "events before the interruption")
		b.e.Watch = func(n api.Update) {
			durable.watch(n)
			switch seen++; {
			case seen != after || crash >= 4:
			case trouble == "interrupt":
				cancel()
			case trouble == "cut":
				b.cut()
			}
		}
		if trouble == "crash" {
			b.crashing(after * 3 * (1 + crash)) // later each time, so that it comes to an end
			b.e.Performers[protocol.ActSet], b.e.Watch = performer, durable.watch
		}
		_, err := b.e.Drive(dctx, id, engine.DriveOptions{})
		crashed := errors.Is(err, errCrash)
		if crashed {
			crashes.Add(1)
		}
		stopped := dctx.Err() != nil || crashed
		cancel()
		if err != nil && !stopped {
			rt.Fatalf("%v\n%s", err, yaml)
		}
		if !stopped {
			break
		}
	}
	if trouble != "cut" {
		b.open()
	}
	rep, err := b.e.Check(ctx, id, nil)
	if err != nil {
		rt.Fatalf("%v\n%s", err, yaml)
	}
	if !rep.OK() {
		rt.Fatalf("check: %+v\n%s", rep.Findings, yaml)
	}
	var entries []protocol.Entry
	for x, err := range b.e.Store.After(ctx, id, 0) {
		if err != nil {
			rt.Fatal(err)
		}
		entries = append(entries, x)
	}
	cut := rapid.IntRange(1, len(entries)).Draw(rt, "snapshot at")
	read := func(l protocol.Link) ([]byte, error) { return b.e.Store.Block(ctx, l) }
	if err := errors.Join(snapshotAgrees(entries, cut, read), endsByFailing(entries, read)); err != nil {
		rt.Fatalf("%v\n%s", err, yaml)
	}
	if err := engine.DrivenAgrees(ctx, b.e, id); err != nil {
		rt.Fatalf("%v\n%s", err, yaml)
	}
	return b.view(id)
}
