package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"wf/cas"
	"wf/cas/castest"
	"wf/engine"
	"wf/pgstore"
	"wf/pgstore/pgtest"
	"wf/protocol"
)

// Runs that begin together are what they are when each begins for itself, in the order that was asked for, in a directory and in a database;
// what is there already, was deleted or comes twice begins nothing, and one that cannot begin is told with those before it alone begun.
func TestRunsThatBeginTogether(t *testing.T) {
	const queued = "wf: 1\nname: turns\nconcurrency: g\nroles: {a: {set: {n: 1}}}\n"
	for _, kind := range []string{"directory", "database"} {
		t.Run(kind, func(t *testing.T) {
			b, alone := newBench(t), newBench(t)
			if kind == "database" {
				srv := pgtest.Shared(t)
				b.on(newStore(t, srv), pgstore.Options{})
				alone.on(newStore(t, srv), pgstore.Options{})
			}
			launch := func(b *bench, yaml, request string) engine.Launch {
				return engine.Launch{Program: b.load(yaml), Source: []byte(yaml), Inputs: protocol.JSON("{}"), RequestID: request, Trigger: &protocol.Trigger{Kind: "github", Name: "gate"}}
			}
			var all []engine.Launch
			for i := range 100 {
				all = append(all, launch(b, gateYAML, fmt.Sprint("r", i)))
			}
			there := must2(b.e.Begin(t.Context(), all[7]))(t)
			gone := must2(b.e.Begin(t.Context(), all[50]))(t)
			if err := b.e.Cancel(t.Context(), gone, "ada", ""); err != nil {
				t.Fatal(err)
			}
			if _, _, err := b.e.Delete(t.Context(), gone, engine.Burial{By: "ada"}); err != nil {
				t.Fatal(err)
			}
			all = append(all, all[3], launch(b, queued, "q1"), launch(b, queued, "q2"), launch(b, gateYAML, "last"))
			begun, err := b.e.BeginAll(t.Context(), all)
			if err != nil || len(begun) != len(all) {
				t.Fatalf("%d of %d began: %v", len(begun), len(all), err)
			}
			newest := int64(0)
			for i, x := range begun {
				if x.Run != b.e.RequestRun(all[i].RequestID) || x.Fresh != !slices.Contains([]int{7, 50, 100}, i) {
					t.Errorf("launch %d: %+v", i, x)
				}
				if x.Run == there || x.Run == gone || !x.Fresh {
					continue
				}
				events := must(castest.Events(t.Context(), b.e.Store, x.Run, 0))(t)
				if events[0].TS < newest {
					t.Errorf("launch %d began before the one before it", i)
				}
				newest = events[0].TS
				one := must2(alone.e.Begin(t.Context(), launch(alone, string(all[i].Source), all[i].RequestID)))(t)
				want := must(castest.Events(t.Context(), alone.e.Store, one, 0))(t)
				had, wants := must(cas.DecodeData[protocol.RunStarted](&events[0].Event))(t), must(cas.DecodeData[protocol.RunStarted](&want[0].Event))(t)
				if len(events) != len(want) || had.Start != wants.Start || had.Source != wants.Source || had.RequestID != wants.RequestID || *had.Trigger != *wants.Trigger || one != x.Run {
					t.Errorf("launch %d is %+v, and for itself %+v", i, had, wants)
				}
			}
			if v := must(b.e.View(t.Context(), begun[102].Run))(t); v.Status != protocol.Queued {
				t.Errorf("behind a run of its group it is %s", v.Status)
			}

			refused := errors.New("not this one")
			b.e.Admit = func(c engine.Candidate) error {
				if c.Program.Workflow.Name == "turns" {
					return refused
				}
				return nil
			}
			some := []engine.Launch{launch(b, gateYAML, "s0"), launch(b, gateYAML, "s1"), launch(b, queued, "s2"), launch(b, gateYAML, "s3")}
			if begun, err = b.e.BeginAll(t.Context(), some); len(begun) != 2 || !errors.Is(err, refused) {
				t.Errorf("%+v, %v", begun, err)
			}
			for i, there := range []bool{true, true, false, false} {
				if _, _, err := b.e.Store.Tip(t.Context(), b.e.RequestRun(some[i].RequestID)); (err == nil) != there {
					t.Errorf("s%d is there: %v", i, err)
				}
			}
		})
	}
}

// must2 is must for what says of a run that it is fresh.
func must2(run protocol.RunID, fresh bool, err error) func(testing.TB) protocol.RunID {
	return func(t testing.TB) protocol.RunID {
		t.Helper()
		if err != nil || !fresh {
			t.Fatal(fresh, err)
		}
		return run
	}
}
