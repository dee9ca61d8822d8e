package engine_test

import (
	order "cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"wf/api"
	"wf/engine"
	"wf/engine/lang"
	"wf/engine/rules"
	"wf/engine/rules/rulestest"
	"wf/protocol"
)

// pages reads a run page by page from its end, and gives all steps in their order.
func pages(t rapid.TB, e *engine.Engine, run protocol.RunID, limit, most int) []*api.Step {
	t.Helper()
	var out []*api.Step
	for before := protocol.Seq(0); ; {
		v, err := e.ViewWindow(context.Background(), run, api.Window{Limit: limit, Before: before, Bytes: most})
		if err != nil {
			t.Fatal(err)
		}
		if len(v.Steps) > limit || len(v.Steps) == 0 && v.Earlier > 0 {
			t.Fatalf("a page of %d steps, at most %d, earlier %d", len(v.Steps), limit, v.Earlier)
		}
		size := 0
		for _, st := range v.Steps {
			size += len(st.EdgePrompt) + len(st.Text) + len(st.Output)
		}
		if most > 0 && size > most && len(v.Steps) > 1 {
			t.Fatalf("a page of %d steps has %d bytes, at most %d", len(v.Steps), size, most)
		}
		out = append(append([]*api.Step{}, v.Steps...), out...)
		if v.Earlier == 0 {
			return out
		}
		before = v.Earlier
	}
}

var sameStep = cmp.Options{cmpopts.IgnoreUnexported(api.Step{}), cmp.Comparer(func(a, b protocol.Link) bool { return a == b })}

// Whatever a run did, its pages are together what the whole view shows: after a failed visit was
// tried again, a question answered, a fan-out cut off.
func TestPagesOfStepsAreTheWholeView(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p, _ := lang.Load([]byte(rulestest.Closing(rt, rulestest.Flow(rt))), lang.Options{File: "random.yaml"})
		if p == nil {
			rt.Skip("lint refuses it")
		}
		b := newBench(t)
		ctx := context.Background()
		id, _, err := b.e.Begin(ctx, engine.Launch{Program: p, Inputs: protocol.JSON("{}")})
		if err != nil {
			rt.Fatal(err)
		}
		v := b.drive(id)
		for range rapid.IntRange(0, 2).Draw(rt, "resumes") {
			if v.Status != protocol.Suspended {
				break
			}
			if _, err := b.e.Drive(ctx, id, engine.DriveOptions{By: "test"}); err != nil && !errors.Is(err, protocol.ErrFinal) {
				rt.Fatal(err)
			}
			v = b.view(id)
		}
		limit, most := rapid.IntRange(1, 5).Draw(rt, "limit"), rapid.IntRange(0, 100).Draw(rt, "bytes")
		if diff := cmp.Diff(v.Steps, pages(rt, b.e, id, limit, most), sameStep); diff != "" {
			rt.Errorf("pages of %d, of %d bytes (-whole +pages):\n%s", limit, most, diff)
		}
		last, err := b.e.ViewWindow(ctx, id, api.Window{Limit: limit})
		if err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(v.Mend, last.Mend); diff != "" {
			rt.Errorf("a page of %d is put right otherwise (-whole +page):\n%s", limit, diff)
		}
		outline, err := b.e.Outline(ctx, id)
		if err != nil {
			rt.Fatal(err)
		}
		without := cmp.Options{sameStep, cmpopts.IgnoreFields(api.Step{}, "EdgePrompt", "Text", "Output", "Error")}
		if diff := cmp.Diff(v.Steps, outline.Steps, without); diff != "" {
			rt.Errorf("the outline (-whole +outline):\n%s", diff)
		}
		for _, want := range v.Steps {
			one, err := b.e.ViewStep(ctx, id, want.ID)
			if err != nil {
				rt.Fatal(err)
			}
			if diff := cmp.Diff([]*api.Step{want}, one.Steps, sameStep); diff != "" {
				rt.Errorf("%s alone (-whole +alone):\n%s", want.ID, diff)
			}
		}
		if none, err := b.e.ViewStep(ctx, id, "unknown#7"); err != nil || len(none.Steps) != 0 {
			rt.Errorf("a step that is not there: %v, %v", none.Steps, err)
		}
		if len(v.Steps) > limit {
			roles, ways := pathOf(v.Steps)
			if diff := cmp.Diff(roles, last.Roles); diff != "" {
				rt.Errorf("roles (-steps +page):\n%s", diff)
			}
			if diff := cmp.Diff(ways, last.Ways); diff != "" {
				rt.Errorf("ways (-steps +page):\n%s", diff)
			}
		}
		role, state := rapid.SampledFrom(append([]string{""}, names(v.Steps, func(s *api.Step) string { return s.Role })...)).Draw(rt, "role"), rapid.SampledFrom(api.StepStates).Draw(rt, "state")
		chosen, err := b.e.ViewWindow(ctx, id, api.Window{Role: role, States: []string{state}})
		if err != nil {
			rt.Fatal(err)
		}
		fitting := slices.DeleteFunc(slices.Clone(v.Steps), func(s *api.Step) bool { return role != "" && s.Role != role || stateOf(s) != state })
		if diff := cmp.Diff(fitting, chosen.Steps, sameStep, cmpopts.EquateEmpty()); diff != "" || *chosen.Matching != len(fitting) {
			rt.Errorf("%d %s steps of %q (-whole +chosen):\n%s", *chosen.Matching, state, role, diff)
		}
		at := protocol.Seq(rapid.Int64Range(1, int64(v.Seq)).Draw(rt, "at"))
		was, err := b.e.ViewWindow(ctx, id, api.Window{At: at})
		if err != nil {
			rt.Fatal(err)
		}
		if was.Seq != at {
			rt.Errorf("the run as it was after event %d ends with event %d", at, was.Seq)
		}
		for i, st := range v.Steps {
			if began := st.Began <= at; began != (i < len(was.Steps)) {
				rt.Fatalf("%s began with event %d; after event %d there were %d steps", st.ID, st.Began, at, len(was.Steps))
			} else if began && st.Ended > 0 && st.Ended <= at && !cmp.Equal(st, was.Steps[i], sameStep) {
				rt.Errorf("%s as it was after event %d:\n%s", st.ID, at, cmp.Diff(st, was.Steps[i], sameStep))
			}
		}
	})
}

// stateOf is the one of api.StepStates that a step has.
func stateOf(s *api.Step) string {
	var d struct {
		Exit int `json:"exit_code"`
	}
	switch err := json.Unmarshal(s.Output, &d); {
	case s.Status == api.StepRunning && s.Held != "":
		return api.StepHeld
	case s.Status != string(protocol.StepOK) || err != nil:
		return s.Status
	case s.Action == protocol.ActRun && d.Exit != 0:
		return api.StepNonzero
	case s.CutOff:
		return api.StepCutOff
	}
	return s.Status
}

// names are those of steps, each once.
func names(steps []*api.Step, of func(*api.Step) string) (all []string) {
	for _, s := range steps {
		if n := of(s); !slices.Contains(all, n) {
			all = append(all, n)
		}
	}
	return all
}

// pathOf is the path that all steps of a run tell.
func pathOf(steps []*api.Step) (roles []protocol.RoleEntered, ways []protocol.WayTaken) {
	visits, status, taken, met := map[string]int{}, map[string]string{}, map[protocol.Way]int{}, map[string]bool{}
	for _, st := range steps {
		visit, _, _ := strings.Cut(st.ID, "[")
		if status[st.Role] = st.Status; !met[visit] {
			met[visit] = true
			visits[st.Role]++
			if st.Via == protocol.ViaAlways {
				continue // by no edge
			}
			taken[protocol.Way{Edge: st.Edge, To: st.Role, Limit: st.Via == protocol.ViaLimit}]++
		}
	}
	for _, role := range slices.Sorted(maps.Keys(visits)) {
		roles = append(roles, protocol.RoleEntered{Role: role, Visits: visits[role], Status: status[role]})
	}
	for w, n := range taken {
		ways = append(ways, protocol.WayTaken{Way: w, Times: n})
	}
	slices.SortFunc(ways, func(a, b protocol.WayTaken) int {
		return order.Or(order.Compare(a.Edge, b.Edge), order.Compare(a.To, b.To), order.Compare(fmt.Sprint(a.Limit), fmt.Sprint(b.Limit)))
	})
	return roles, ways
}

// A visit that waited is started a second time, thousands of events after the first: it belongs to
// the page where it began.
func TestAVisitIsOnThePageWhereItBegan(t *testing.T) {
	b := newBench(t)
	id, _ := b.run(`
wf: 1
name: long-wait
limits: {steps: 4000}
roles:
  first: {set: {n: 0}}
  gate: {ask: "go on?"}
  tick: {set: {n: "${{ (steps.tick?.output.n ?? 0) + 1 }}"}}
  last: {set: {n: 0}}
edges:
  - {from: START, to: first}
  - {from: first, to: [gate, tick]}
  - {from: tick, to: tick, when: output.n < 1500, limit: 2000}
  - {from: [tick, gate], to: last, when: steps.tick.output.n >= 1500}
  - {from: last, to: END}
`, nil)
	ctx := context.Background()
	if _, err := b.e.Answer(ctx, id, engine.Reply{Step: "gate#1", Text: "yes", By: "test"}); err != nil {
		t.Fatal(err)
	}
	v := b.drive(id)
	if v.Status != protocol.Done || len(v.Steps) < 1500 {
		t.Fatalf("%s (%s) after %d steps", v.Status, v.Reason, len(v.Steps))
	}
	if diff := cmp.Diff(v.Steps, pages(t, b.e, id, 100, 0), sameStep); diff != "" {
		t.Errorf("pages (-whole +pages):\n%s", diff)
	}
	for _, want := range []*api.Step{v.Steps[0], v.Steps[1], v.Steps[700], v.Steps[len(v.Steps)-1]} {
		one, err := b.e.ViewStep(ctx, id, want.ID)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]*api.Step{want}, one.Steps, sameStep); diff != "" {
			t.Errorf("%s alone (-whole +alone):\n%s", want.ID, diff)
		}
	}
	page, err := b.e.ViewWindow(ctx, id, api.Window{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	want, got := *v, *page
	if got.Total != len(v.Steps) || got.Earlier == 0 {
		t.Errorf("a page of 10 says %d steps, earlier %d; there are %d", got.Total, got.Earlier, len(v.Steps))
	}
	want.Steps, got.Steps, got.Total, got.Earlier = nil, nil, 0, 0
	got.Roles, got.Ways = nil, nil
	if diff := cmp.Diff(want, got, sameStep); diff != "" {
		t.Errorf("what is no step differs (-whole +page):\n%s", diff)
	}
}

// The sums of a run lie in its snapshot, and are those that its journal gives.
func TestUsageAndTimesAreThoseOfTheJournal(t *testing.T) {
	b := newBench(t)
	id, v := b.run(`
wf: 1
name: times
limits: {steps: 400}
roles:
  work: {run: "true"}
  next: {set: {n: "${{ (steps.next?.output.n ?? 0) + 1 }}"}}
edges:
  - {from: START, to: work}
  - {from: work, to: next}
  - {from: next, to: END, when: output.n >= 80}
  - {from: next, to: work, limit: 100}
`, nil)
	if v.Timing.ToolCalls != 80 {
		t.Errorf("%d commands ran, want 80", v.Timing.ToolCalls)
	}
	read := func(l protocol.Link) ([]byte, error) { return b.e.Store.Block(context.Background(), l) }
	folded, err := rules.Fold(engine.Records(read), b.e.Store.After(context.Background(), id, 0))
	if err != nil {
		t.Fatal(err)
	}
	s, err := b.e.State(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(s.Times(), folded.Times()); d != "" {
		t.Errorf("the snapshot and the journal tell other times (-snapshot +journal):\n%s", d)
	}
}

// A sub-workflow names its run in the view however long ago it was: also when the parent went on
// for thousands of steps.
func TestASubWorkflowNamesItsRunInALongRun(t *testing.T) {
	b := newBench(t)
	b.e.Performers[protocol.ActWorkflow] = b.e.SubWorkflow()
	child := "wf: 1\nname: child\nroles:\n  a: {set: {n: 1}}\nedges:\n  - {from: START, to: a}\n  - {from: a, to: END}\n"
	if err := os.WriteFile(filepath.Join(b.dir, "child.yaml"), []byte(child), 0o600); err != nil {
		t.Fatal(err)
	}
	_, v := b.run(`
wf: 1
name: parent
limits: {steps: 500}
roles:
  sub: {workflow: child.yaml}
  tick: {set: {n: "${{ (steps.tick?.output.n ?? 0) + 1 }}"}}
edges:
  - {from: START, to: sub}
  - {from: sub, to: tick}
  - {from: tick, to: END, when: output.n >= 300}
  - {from: tick, to: tick, limit: 400}
`, nil)
	if v.Status != protocol.Done || len(v.Steps) != 301 {
		t.Fatalf("%s (%s) after %d steps", v.Status, v.Reason, len(v.Steps))
	}
	if v.Steps[0].Child == "" {
		t.Fatal("sub#1 names no run")
	}
	if child := b.view(v.Steps[0].Child); child.Workflow != "child" {
		t.Errorf("sub#1 names a run of %s", child.Workflow)
	}
}

// One page of a run costs the same however long the run is.
func BenchmarkViewPage(b *testing.B) {
	for _, n := range []int{1_000, 50_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := newBench(b)
			id := begin(b, w, pingPong(n, 20))
			drive(b, w, id, protocol.Done)
			b.ResetTimer()
			for b.Loop() {
				e := &engine.Engine{Store: w.e.Store}
				v, err := e.ViewWindow(context.Background(), id, api.Window{Limit: 200})
				if err != nil || len(v.Steps) != 200 {
					b.Fatal(err, len(v.Steps))
				}
			}
		})
	}
}
