package rules_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wf/cas"
	"wf/engine/lang"
	"wf/engine/rules"
	"wf/engine/rules/rulestest"
	"wf/protocol"
)

// drawn concludes a visit by a pure function of what the visit is.
func drawn(turn protocol.Turn) (protocol.JSON, protocol.StepStatus) {
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
	if strings.HasPrefix(turn.EdgePrompt, "risky") && r.IntN(3) > 0 {
		return nil, protocol.StepFailed
	}
	data, err := json.Marshal(map[string]any{"again": r.IntN(2) == 0, "items": items, "n": r.IntN(1000)})
	if err != nil {
		panic(err)
	}
	return data, protocol.StepOK
}

// Whatever finishes first, the records and the end are the same; what a fold of the journal plans is
// what the state that moved along plans; each visit that began is one that the rules ask for.
func TestTheOrderOfEventsNeverChangesAConclusion(t *testing.T) {
	seen := map[protocol.StepStatus]int{}
	rapid.Check(t, func(rt *rapid.T) {
		yaml := rulestest.Flow(rt)
		p, _ := lang.Load([]byte(yaml), lang.Options{File: "random.yaml"})
		if p == nil {
			rt.Skip("lint refuses it")
		}
		var want string
		for try := range 3 {
			w := worldOf(t, p, nil)
			w.conclude = drawn
			w.choose = func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "next") }
			if try == 0 {
				w.choose = nil
			}
			v := w.play()
			for _, r := range w.records {
				seen[r.Status]++
			}
			asksFor(rt, w, yaml)
			foldsTo(rt, w, rapid.IntRange(1, len(w.journal)).Draw(rt, "snapshot at"), yaml)
			if v.Status == protocol.Failed || v.Reason == protocol.ByLimit && w.s.Totals.Steps >= w.s.Limits.Steps {
				return // a subset of the one DAG
			}
			got := fmt.Sprint(w.conclusions(), "\n", v.Status, v.Parents, string(v.Outputs))
			if want == "" {
				want = got
			} else if diff := cmp.Diff(want, got); diff != "" {
				rt.Fatalf("try %d differs:\n%s\n%s\n%s", try, diff, yaml, v.Detail)
			}
		}
	})
	if testing.Short() {
		return // few workflows are drawn then, and not every one skips a visit
	}
	for _, status := range []protocol.StepStatus{protocol.StepOK, protocol.StepFailed, protocol.StepSkipped} {
		if seen[status] == 0 {
			t.Errorf("no visit is %s: %v", status, seen)
		}
	}
}

// asksFor decides again each visit of a journal at the point where it began.
func asksFor(rt *rapid.T, w *world, yaml string) {
	s := rules.New(w)
	for _, e := range w.journal {
		if d, ok := w.data[index(e)].(protocol.StepStarted); ok {
			asked, err := s.Asked(d, false)
			if err != nil {
				rt.Fatalf("%s: %v\n%s", e.StepName(), err, yaml)
			}
			if !slices.ContainsFunc(asked, func(x rules.Decision) bool {
				return x.Role == d.Role && slices.Equal(x.Parents, d.Parents) && sameItem(x.Item, d.Item) && x.Edge == d.Edge &&
					x.Via == d.Via && x.EdgePrompt == d.EdgePrompt.S && x.Resumes == d.Resumes && x.Visit == d.Visit
			}) {
				rt.Fatalf("%s is not among what the rules ask for: %+v\n%s", e.StepName(), asked, yaml)
			}
		}
		if err := s.FoldMore(each([]protocol.Entry{e})); err != nil {
			rt.Fatalf("%v\n%s", err, yaml)
		}
	}
}

func sameItem(a, b *protocol.Item) bool { return a == b || a != nil && b != nil && *a == *b }

// foldsTo folds a journal with a snapshot behind an event, and compares with the state that moved along.
func foldsTo(rt *rapid.T, w *world, cut int, yaml string) {
	s, err := rules.Fold(w, each(w.journal[:cut]))
	if err != nil {
		rt.Fatalf("%v\n%s", err, yaml)
	}
	var stored rules.Snapshot
	if err := cas.Decode(bytesOf(rt, s), &stored); err != nil {
		rt.Fatal(err)
	}
	again, err := stored.Restore(w)
	if err != nil {
		rt.Fatal(err)
	}
	for name, s := range map[string]*rules.State{"restored": again, "pruned": s} {
		if err := s.FoldMore(each(w.journal[cut:])); err != nil {
			rt.Fatalf("%s at %d: %v\n%s", name, cut, err, yaml)
		}
		if string(bytesOf(rt, s)) != string(bytesOf(rt, w.s)) {
			rt.Fatalf("the state that was %s at %d is another at the end\n%s", name, cut, yaml)
		}
	}
	stored = rules.Snapshot{}
	if err := cas.Decode(bytesOf(rt, w.s), &stored); err != nil {
		rt.Fatal(err)
	}
	journal, err := rules.Refold(w, each(w.journal), &stored)
	if err != nil {
		rt.Fatal(err)
	}
	if a, b := marshal(rt, journal), marshal(rt, &stored); string(a) != string(b) {
		rt.Fatalf("the journal gives another state than the stored one\n%s", yaml)
	}
}

func bytesOf(rt *rapid.T, s *rules.State) []byte { return marshal(rt, s.Snapshot()) }

func marshal(rt *rapid.T, v any) []byte {
	data, err := cas.Marshal(v)
	if err != nil {
		rt.Fatal(err)
	}
	return data
}
