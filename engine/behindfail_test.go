package engine_test

import (
	"compress/gzip"
	"fmt"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/engine/lang"
	"wf/engine/rules"
	"wf/engine/rules/rulestest"
	"wf/protocol"
)

// F501: a visit that is skipped, as it has no items, and by which the run fails, is the last that begins, whatever was to begin beside it.
func TestF501NothingBeginsBehindASkippedVisitThatFails(t *testing.T) {
	for name, guard := range map[string]string{
		"by a condition": "{from: x, to: FAIL, when: len(output) == 0}",
		"by a bound":     "{from: x, to: list, limit: 1, on_limit: FAIL}",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			run, v := b.run(`
wf: 1
roles: {list: {set: {items: []}, route: all}, x: {set: {n: 1}}, y: {set: {n: 2}}, z: {set: {n: 3}}}
edges:
  - {from: START, to: list}
  - {from: list, to: x, for_each: output.items}
  - {from: list, to: [y, z]}
  - `+guard+`
  - {from: y, to: END}
  - {from: z, to: END}
`, nil)
			if v.Status != protocol.Failed {
				t.Fatalf("%s: %s", v.Status, v.Reason)
			}
			if rep, err := b.e.Check(t.Context(), run, nil); err != nil || !rep.OK() {
				t.Errorf("%+v, %v", rep, err)
			}
			last := slices.MaxFunc(v.Steps, func(a, b *api.Step) int { return int(a.Began - b.Began) })
			if last.Role != "x" {
				t.Errorf("%s began last", last.ID)
			}
		})
	}
}

// F501: what an older wf began behind such a visit is a part of its journal, and holds.
func TestF501WhatAnOlderWFBeganBehindItHolds(t *testing.T) {
	for _, file := range []string{"begun-after-fail", "begun-after-on-limit"} {
		b := newBench(t)
		f, err := os.Open("testdata/" + file + ".car.gz")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		car, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		in, err := cas.Import(t.Context(), car, inDir(b.e), cas.ImportOptions{})
		if err != nil || len(in.Runs) != 1 {
			t.Fatalf("%+v, %v", in, err)
		}
		if rep, err := b.e.Check(t.Context(), in.Runs[0], nil); err != nil || !rep.OK() || rep.Decisions.Checked < 4 {
			t.Errorf("%s: %+v, %v", file, rep, err)
		}
	}
}

// F501: whatever is skipped, bounded or failed beside what, each visit of a run is one that the rules ask for where it began.
func TestF501EachVisitIsAskedForWhereItBegan(t *testing.T) {
	ran := map[protocol.RunStatus]int{}
	rapid.Check(t, func(rt *rapid.T) {
		yaml := rulestest.Skipping(rt)
		p, _ := lang.Load([]byte(yaml), lang.Options{File: "random.yaml"})
		if p == nil {
			rt.Skip("lint refuses it")
		}
		v := random{on: func() *bench { return newBench(t) }}.drive(rt, p, yaml, true, "")
		ran[v.Status]++
	})
	t.Log(ran)
}

// endsByFailing tells where a visit began although the run had failed by the events before.
func endsByFailing(entries []protocol.Entry, read engine.Reader) error {
	s := rules.New(engine.Records(read))
	for i, x := range entries {
		if x.Type == protocol.EvStepStarted {
			p, err := s.Next()
			if err != nil {
				return err
			}
			if p.End != nil && p.End.Status == protocol.Failed {
				return fmt.Errorf("seq %d: %s began although the run had failed: %s", x.Seq, x.StepName(), p.End.Detail)
			}
		}
		if err := s.FoldMore(each(entries[i : i+1])); err != nil {
			return err
		}
	}
	return nil
}
