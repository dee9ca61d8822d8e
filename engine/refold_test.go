package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"wf/api"
	"wf/engine"
	"wf/protocol"
)

// countTo is a run of so many visits, with a snapshot now and then.
func countTo(n int) string {
	return fmt.Sprintf(`
wf: 1
name: count
limits: {steps: 100000}
roles:
  tick: {set: {n: "${{ (steps.tick?.output.n ?? 0) + 1 }}"}}
edges:
  - {from: START, to: tick}
  - {from: tick, to: END, when: output.n >= %d}
  - {from: tick, to: tick, limit: 100000}
`, n)
}

// F-42: a stored state that was edited in place is what every look at the run goes on from.
func TestAnEditedStateIsFoundByTheJournal(t *testing.T) {
	for name, c := range map[string]struct {
		edit  func(s map[string]any)
		field string
	}{
		"the status":      {func(s map[string]any) { s["status"] = "failed" }, "status"},
		"the step count":  {func(s map[string]any) { s["totals"].(map[string]any)["Steps"] = 7 }, "totals"},
		"an activation":   {func(s map[string]any) { s["acts"].([]any)[0].(map[string]any)["role"] = "other" }, "acts"},
		"what it waits":   {func(s map[string]any) { s["stopped"], s["status"] = false, "" }, "status"},
		"the title":       {func(s map[string]any) { s["info"].(map[string]any)["title"] = "another" }, "info"},
		"the next number": {func(s map[string]any) { s["next"] = 1 }, "next"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			b := newBench(t)
			id, _ := b.run(countTo(300), nil)
			before := asShown(b.view(id))
			if f, err := b.e.Refold(ctx, id); f != nil || err != nil {
				t.Fatalf("before the edit: %+v, %v", f, err)
			}
			if err := engine.EditState(ctx, b.e, id, c.edit); err != nil {
				t.Fatal(err)
			}
			f, err := b.e.Refold(ctx, id)
			if err != nil || f == nil {
				t.Fatalf("%+v, %v", f, err)
			}
			if f.Field != c.field || f.Journal == f.Stored {
				t.Errorf("%+v, want a fault in %s", f, c.field)
			}
			if err := b.e.DropState(ctx, id); err != nil {
				t.Fatal(err)
			}
			if f, err := b.e.Refold(ctx, id); f != nil || err != nil {
				t.Errorf("dropped: %+v, %v", f, err)
			}
			if got := asShown(b.view(id)); got != before {
				t.Errorf("dropped, the run is shown as\n%s\nand was\n%s", got, before)
			}
		})
	}
}

func asShown(v *api.Run) string {
	return fmt.Sprint(v.Status, v.Info.Title, len(v.Steps), strings.Join(steps(v), " "))
}

// BenchmarkRefold10000 is what verifying the state of a run costs, beside reading its journal.
func BenchmarkRefold10000(b *testing.B) {
	w := newBench(b)
	id, v := w.run(countTo(5000), nil)
	if v.Status != protocol.Done {
		b.Fatal(v.Status)
	}
	b.ResetTimer()
	b.Run("journal", func(b *testing.B) {
		for b.Loop() {
			for _, err := range w.e.Store.After(b.Context(), id, 0) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("refold", func(b *testing.B) {
		for b.Loop() {
			if f, err := w.e.Refold(b.Context(), id); f != nil || err != nil {
				b.Fatal(f, err)
			}
		}
	})
}
