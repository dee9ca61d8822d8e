package cas

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ipfs/go-cid"

	"wf/protocol"
)

// heap is evidence that a test makes by hand.
type heap map[blockName][]byte

func (h heap) Moves(context.Context, Head) (*Moves, error) { return nil, nil }

func (h heap) Block(_ context.Context, l protocol.Link) ([]byte, error) {
	n, _ := nameOf(l)
	if data, ok := h[n]; ok {
		return data, nil
	}
	return nil, fmt.Errorf("block %s: %w", n, protocol.ErrNotFound)
}

// put adds a block of any value, also one that Encode would refuse.
func (h heap) put(t *testing.T, v any) protocol.Link {
	t.Helper()
	data, err := encMode.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	l := linkTo(cid.DagCBOR, data)
	n, _ := nameOf(l)
	h[n] = data
	return l
}

// event adds an event behind prev.
func (h heap) event(t *testing.T, prev Head, data any, typ protocol.EventType) Head {
	t.Helper()
	l := h.put(t, map[string]any{"kind": "event", "v": 1, "prev": prev.Link, "seq": prev.Seq + 1, "ts": 1, "type": typ, "step": nil, "data": data})
	return Head{Name: "run/one", Link: l, Seq: prev.Seq + 1, TS: 1}
}

// found lists the findings of a run as "kind where".
func (h heap) found(t *testing.T, head Head, moves []ReflogLine) []string {
	t.Helper()
	v := NewVerifier(VerifyOptions{}, h)
	var noted *Moves
	if moves != nil {
		noted = &Moves{Lines: moves}
	}
	if err := v.run(t.Context(), head, noted); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range v.report.Findings {
		out = append(out, f.Kind+" "+f.Where)
	}
	slices.Sort(out)
	return out
}

func want(t *testing.T, have []string, want ...string) {
	t.Helper()
	slices.Sort(want)
	if d := cmp.Diff(want, have); d != "" {
		t.Errorf("findings (-want +have):\n%s", d)
	}
}

// One fault does not hide another: verify goes on behind each.
func TestVerifyNamesEveryFaultOfARun(t *testing.T) {
	gone := func(s string) protocol.Link { return Raw([]byte(s)).Link }
	t.Run("two events", func(t *testing.T) {
		h := heap{}
		var head Head
		var moves []ReflogLine
		for i := range 9 {
			typ := protocol.EvResumed
			if i == 0 {
				typ = protocol.EvRunStarted
			}
			old := head
			head = h.event(t, head, map[string]any{"start": nil, "source": nil}, typ)
			moves = append(moves, ReflogLine{Old: old.Link, New: head.Link, Seq: head.Seq, TS: 1})
		}
		for _, seq := range []int{3, 7} {
			n, _ := nameOf(moves[seq-1].New)
			delete(h, n)
		}
		want(t, h.found(t, head, moves), "missing one/3", "missing one/7")
	})
	t.Run("two payloads of one record", func(t *testing.T) {
		h := heap{}
		start := h.put(t, protocol.Start{Kind: protocol.KindStart, V: 1, Workflow: gone("workflow"), Inputs: gone("inputs")})
		head := h.event(t, Head{}, map[string]any{"start": start}, protocol.EvRunStarted)
		want(t, h.found(t, head, nil), "missing one/1/data.start.inputs", "missing one/1/data.start.workflow")
	})
	t.Run("a record that is none, and what comes after it", func(t *testing.T) {
		h := heap{}
		chunks := h.put(t, map[string]any{"kind": protocol.KindChunks, "v": 1})
		start := h.put(t, protocol.Start{Kind: protocol.KindStart, V: 1, Workflow: gone("workflow"), Inputs: chunks})
		head := h.event(t, Head{}, map[string]any{"start": start}, protocol.EvRunStarted)
		want(t, h.found(t, head, nil), "missing one/1/data.start.workflow", "not_a_record one/1/data.start.inputs")
	})
	t.Run("what an event links behind its predecessor", func(t *testing.T) {
		h := heap{}
		first := h.event(t, Head{}, map[string]any{"start": nil}, protocol.EvRunStarted)
		l := h.put(t, map[string]any{"kind": "event", "v": 1, "prev": first.Link, "seq": 2, "ts": 1, "type": "resumed", "step": nil,
			"data": map[string]any{}, "of a later version": gone("later")})
		want(t, h.found(t, Head{Name: "run/one", Link: l, Seq: 2}, nil), "missing one/2/of a later version")
	})
}

// Of a long way from the event to a block both ends are given.
func TestVerifyShortensALongWay(t *testing.T) {
	h := heap{}
	l := Raw([]byte("gone")).Link
	for i := range 12 {
		l = h.put(t, map[string]any{fmt.Sprintf("k%d", i): l})
	}
	head := h.event(t, Head{}, map[string]any{"start": l}, protocol.EvRunStarted)
	want(t, h.found(t, head, nil), "missing one/1/data.start.k11.k10.k9.….k3.k2.k1.k0")
}

// A Start may name a record twice, and what it continues leads to more of them.
func TestVerifyKnowsAllThatAStartContinues(t *testing.T) {
	h := heap{}
	flow, inputs := h.put(t, map[string]any{"a": "flow"}), h.put(t, map[string]any{"b": "inputs"})
	begin := func(continues ...protocol.Link) protocol.Link {
		return h.put(t, protocol.Start{Kind: protocol.KindStart, V: 1, Workflow: flow, Inputs: inputs, Continues: continues})
	}
	step := func(role string, start protocol.Link, parents ...protocol.Link) protocol.Link {
		return h.put(t, protocol.StepRecord{Kind: protocol.KindStep, V: 1, Start: start, Parents: parents, Role: role, Status: protocol.StepOK})
	}
	old := begin()
	x, y := step("x", old, old), step("y", old, old)
	start := begin(x, y, y)
	head := h.event(t, Head{}, map[string]any{"start": start}, protocol.EvRunStarted)
	head = h.event(t, head, map[string]any{"record": step("z", start, x, y), "result": nil, "status": "ok"}, protocol.EvStepCompleted)
	want(t, h.found(t, head, nil))
	stray := step("stray", old, old)
	head = h.event(t, head, map[string]any{"record": step("z", start, x, stray), "result": nil, "status": "ok"}, protocol.EvStepCompleted)
	want(t, h.found(t, head, nil), "record one/3/data.record.parents[1]")
}

// The path of every link of a block is the one by which a person finds it.
func TestFieldAtNamesThePathOfEveryLink(t *testing.T) {
	link := func(s string) protocol.Link { return Raw([]byte(s)).Link }
	h := heap{}
	paths := map[string]protocol.Link{"a": link("1"), "b[0]": link("2"), "b[2].c": link("3"), "b[2].d[1]": link("4"), "e.f.g": link("5"), "e.h": link("6")}
	l := h.put(t, map[string]any{"a": paths["a"], "b": []any{paths["b[0]"], "text", map[string]any{"c": paths["b[2].c"], "d": []any{nil, paths["b[2].d[1]"]}}},
		"e": map[string]any{"f": map[string]any{"g": paths["e.f.g"]}, "h": paths["e.h"]}, "long text": strings.Repeat("x", 300), "n": -70000})
	n, _ := nameOf(l)
	nd := examine(n.codec, h[n])
	if len(nd.links) != len(paths) {
		t.Fatalf("%d links of %d", len(nd.links), len(paths))
	}
	for _, r := range nd.links {
		if path := fieldAt(h[n], r.at); paths[path] != r.to.link() {
			t.Errorf("the link %s stands at %q", r.to, path)
		}
	}
}
