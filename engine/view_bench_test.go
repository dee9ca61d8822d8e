package engine_test

import (
	"context"
	"fmt"
	"testing"

	"wf/api"
	"wf/engine"
	"wf/protocol"
)

// A look at the newest step, or at a page of a suspended run, costs what it shows, and not what the
// run has: the whole view is beside it.
func BenchmarkLooks(b *testing.B) {
	for _, n := range []int{500, 5000} {
		w := newBench(b)
		id := begin(b, w, pingPong(n, 200))
		if err := suspended(w, id, n-10); err != nil {
			b.Fatal(err)
		}
		ctx := context.Background()
		whole, err := w.e.View(ctx, id)
		if err != nil || whole.Status != protocol.Suspended {
			b.Fatal(whole.Status, err)
		}
		newest := whole.Steps[len(whole.Steps)-1].ID
		for _, look := range []struct {
			name string
			do   func() (*api.Run, error)
		}{
			{"a page", func() (*api.Run, error) { return w.e.ViewWindow(ctx, id, api.Window{Limit: 10}) }},
			{"the newest step", func() (*api.Run, error) { return w.e.ViewStep(ctx, id, newest) }},
			{"outline", func() (*api.Run, error) { return w.e.Outline(ctx, id) }},
			{"whole", func() (*api.Run, error) { return w.e.View(ctx, id) }},
		} {
			b.Run(fmt.Sprintf("%s of %d steps", look.name, n), func(b *testing.B) {
				for b.Loop() {
					if v, err := look.do(); err != nil || len(v.Steps) == 0 {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// suspended drives a run until a limit of its steps.
func suspended(w *bench, id protocol.RunID, steps int) error {
	_, err := w.e.Drive(context.Background(), id, engine.DriveOptions{By: "test", Limits: []protocol.LimitChanged{{Limit: "steps", Max: int64(steps)}}})
	return err
}
