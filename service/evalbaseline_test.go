package service

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/api"
	"wf/protocol"
)

func evaluated(name string, v api.EvalVerdict, passed, n int, live bool, tokens int64, dollars float64) api.EvalCase {
	c := api.EvalCase{Name: name, Verdict: v, Rate: api.NewPassRate(passed, n, live), Tokens: tokens, CostUSD: &dollars}
	for range n {
		c.Runs = append(c.Runs, api.EvalRun{})
	}
	return c
}

func evaluation1(cases ...api.EvalCase) *api.Eval { return &api.Eval{Cases: cases} }

func kinds(list []api.EvalRegression) (out []string) {
	for _, r := range list {
		out = append(out, r.Case+" "+r.Kind)
	}
	return out
}

// Cost and tokens may grow by exactly what is allowed, for each run; one more is a regression.
func TestM03CostMayGrowByThePercentage(t *testing.T) {
	base := evaluation1(evaluated("a", api.EvalPassed, 2, 2, false, 2000, 0.02))
	for _, x := range []struct {
		tokens  int64
		dollars float64
		runs    int
		percent float64
		want    []string
	}{
		{2199, 0.0219, 2, 10, nil}, {2200, 0.022, 2, 10, nil}, {2201, 0.022, 2, 10, []string{"a tokens"}}, {2200, 0.02200001, 2, 10, []string{"a cost"}},
		{1100, 0.011, 1, 10, nil}, {1101, 0.012, 1, 10, []string{"a tokens", "a cost"}}, // of one run
		{2000, 0.02, 2, 0, nil}, {2001, 0.02, 2, 0, []string{"a tokens"}},
		{9e9, 9e9, 2, NoIncrease, nil},
	} {
		worse, _ := CompareEval(base, evaluation1(evaluated("a", api.EvalPassed, x.runs, x.runs, false, x.tokens, x.dollars)), x.percent, true)
		if d := cmp.Diff(x.want, kinds(worse)); d != "" {
			t.Errorf("%+v: %s", x, d)
		}
	}
	free := evaluation1(evaluated("a", api.EvalPassed, 1, 1, false, 0, 0))
	if worse, _ := CompareEval(free, evaluation1(evaluated("a", api.EvalPassed, 1, 1, false, 1, 0)), 1000, true); len(worse) != 1 {
		t.Errorf("from nothing: %v", worse)
	}
	now := evaluated("a", api.EvalPassed, 1, 1, false, 1000, 0)
	now.CostUSD = nil
	if worse, _ := CompareEval(base, evaluation1(now), 10, true); len(worse) != 0 {
		t.Errorf("an unknown cost: %v", worse)
	}
}

// A pass rate is lower where its interval lies below that of the baseline, from five runs of a live model on.
func TestM03PassRatesAreComparedByTheirIntervals(t *testing.T) {
	for _, x := range []struct {
		was, of, is, n int
		live           bool
		want           bool
	}{
		{10, 10, 4, 10, true, true}, {10, 10, 5, 10, true, false}, // 72–100 % against 17–69 % and 24–76 %
		{10, 10, 0, 4, true, false}, {5, 5, 0, 5, true, true}, {4, 4, 0, 5, true, false}, {10, 10, 0, 10, false, false},
		{4, 10, 10, 10, true, false},
	} {
		old, now := evaluated("a", api.EvalFailed, x.was, x.of, x.live, 0, 0), evaluated("a", api.EvalFailed, x.is, x.n, x.live, 0, 0)
		worse, _ := CompareEval(evaluation1(old), evaluation1(now), NoIncrease, true)
		if (len(worse) == 1 && worse[0].Kind == "rate") != x.want {
			t.Errorf("%+v: %v", x, worse)
		}
	}
}

func TestM03WhatPassedAndDoesNotNow(t *testing.T) {
	verdicts := []api.EvalVerdict{api.EvalPassed, api.EvalFailed, api.EvalError, api.EvalCut, api.EvalOpen}
	for _, was := range verdicts {
		for _, is := range verdicts {
			worse, _ := CompareEval(evaluation1(evaluated("a", was, 1, 1, false, 0, 0)), evaluation1(evaluated("a", is, 1, 1, false, 0, 0)), NoIncrease, true)
			want := was == api.EvalPassed && is != api.EvalPassed && is != api.EvalOpen
			if (len(worse) == 1) != want {
				t.Errorf("%s to %s: %v", was, is, worse)
			}
		}
	}
	old, now := evaluated("same", api.EvalPassed, 1, 1, false, 0, 0), evaluated("same", api.EvalPassed, 1, 1, false, 0, 0)
	old.Runs[0].Outputs, now.Runs[0].Outputs = protocol.JSON("{\n \"a\": 1 }"), protocol.JSON(`{"a":1}`)
	other := now
	other.Name, other.Runs = "other", []api.EvalRun{{Outputs: protocol.JSON(`{"a":2}`)}}
	before := old
	before.Name = "other"
	base, is := evaluation1(old, before, evaluated("gone", api.EvalFailed, 0, 1, false, 0, 0)), evaluation1(now, other, evaluated("new", api.EvalPassed, 1, 1, false, 0, 0))
	worse, changes := CompareEval(base, is, NoIncrease, true)
	if d := cmp.Diff([]string{"other outputs", "new new", "gone missing"}, kinds(changes)); d != "" || len(worse) != 0 {
		t.Error(d, worse)
	}
	if _, changes = CompareEval(base, is, NoIncrease, false); len(changes) != 2 {
		t.Errorf("of some cases: %v", changes)
	}
}

// Whatever runs reserve and use side by side, no more is spent than there is, but for what they use beyond what they reserved;
// each that waits goes on in the end.
func TestM03ThePurseIsNeverOverdrawn(t *testing.T) {
	for _, side := range []int{1, 3, 8} {
		p := newPurse(1000, side)
		var work sync.WaitGroup
		var mu sync.Mutex
		got := map[int64]int{}
		for range side {
			work.Go(func() {
				for {
					n, err := p.reserve(t.Context(), 7)
					if err != nil {
						t.Error(err)
					}
					if n == 0 {
						return
					}
					p.mu.Lock()
					if p.held+p.spent > p.most {
						t.Errorf("%d held and %d spent of %d", p.held, p.spent, p.most)
					}
					p.mu.Unlock()
					mu.Lock()
					got[n]++
					mu.Unlock()
					p.settle(n, min(n, 5))
				}
			})
		}
		work.Wait()
		if p.spent < 995 || p.spent > 1000 || p.held != 0 || p.holders != 0 || got[7] < 190 {
			t.Errorf("%d side by side: %d spent, %d held, %v", side, p.spent, p.held, got)
		}
	}
	// Without a bound of its own a run takes its share; what is left when the others are done is for it alone.
	p := newPurse(90, 3)
	var shares []string
	for range 3 {
		n, err := p.reserve(t.Context(), 0)
		shares = append(shares, fmt.Sprint(n, err))
	}
	if d := cmp.Diff([]string{"30 <nil>", "30 <nil>", "30 <nil>"}, shares); d != "" {
		t.Error(d)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := p.reserve(ctx, 0); n != 0 || err == nil {
		t.Errorf("of nothing that is left: %d, %v", n, err)
	}
	p.settle(30, 0)
	if n, err := p.reserve(t.Context(), 100); n != 30 || err != nil {
		t.Errorf("of what went back: %d, %v", n, err)
	}
	for range 3 {
		p.settle(30, 30)
	}
	if n, err := p.reserve(t.Context(), 1); n != 0 || err != nil {
		t.Errorf("of nothing: %d, %v", n, err)
	}
}
