package service

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/api"
)

func TestM03RangesOfASweep(t *testing.T) {
	for _, x := range []struct {
		text string
		want []string
		ok   bool
	}{
		{"1..3", []string{"1", "2", "3"}, true},
		{"3..1", []string{"3", "2", "1"}, true},
		{"-1..1", []string{"-1", "0", "1"}, true},
		{"7..7", []string{"7"}, true},
		{"9223372036854775806..9223372036854775807", []string{"9223372036854775806", "9223372036854775807"}, true},
		{"1..", nil, false},
		{"..3", nil, false},
		{"1.5..3", nil, false},
		{"a..b", nil, false},
		{"1..2..3", nil, false},
		{"1...3", nil, false},
		{"", nil, false},
	} {
		have, ok, err := SweepRange(x.text)
		if err != nil || ok != x.ok || !slices.Equal(have, x.want) {
			t.Errorf("%q: %v %v %v, want %v %v", x.text, have, ok, err, x.want, x.ok)
		}
	}
	for _, x := range []struct {
		n    int
		fits bool
	}{{sweepRangeMax - 1, true}, {sweepRangeMax, true}, {sweepRangeMax + 1, false}} {
		values, _, err := SweepRange(fmt.Sprintf("1..%d", x.n))
		if (err == nil) != x.fits || x.fits && len(values) != x.n {
			t.Errorf("a range of %d: %d values, %v", x.n, len(values), err)
		}
	}
	if _, _, err := SweepRange("-9223372036854775808..9223372036854775807"); err == nil {
		t.Error("all numbers are a range")
	}
}

// Trials are models × definitions × inputs × n.
func TestM03TheCellsOfASweep(t *testing.T) {
	cells := sweepCells([]SweepModel{{"", []string{"a", "b"}}, {"judge", []string{"c"}}}, 3, []SweepInput{{"k", []any{1, 2}}, {"topic", []any{"x", "y"}}})
	var have []string
	for _, c := range cells {
		have = append(have, fmt.Sprintf("%s %d %v%v", sweepModels(c.models), c.definition, c.inputs["k"], c.inputs["topic"]))
	}
	if len(have) != 2*1*3*4 {
		t.Fatalf("%d cells", len(have))
	}
	want := []string{"a judge=c 0 1x", "a judge=c 0 1y", "a judge=c 0 2x", "a judge=c 0 2y", "a judge=c 1 1x"}
	if d := cmp.Diff(want, have[:5]); d != "" {
		t.Errorf("cells (-want +have):\n%s", d)
	}
	if slices.Sort(have); len(slices.Compact(have)) != 24 {
		t.Error("cells are not distinct")
	}
	if alone := sweepCells(nil, 1, nil); len(alone) != 1 || len(alone[0].models) != 0 || len(alone[0].inputs) != 0 {
		t.Errorf("nothing that varies: %+v", alone)
	}
}

// One of each cell begins before the second of any. The first of a model has asked it before its other cells begin, and the
// first of a cell before its others.
func TestM03TheOrderOfTrials(t *testing.T) {
	cells := sweepCells([]SweepModel{{"", []string{"a", "b"}}}, 2, nil)
	trials := sweepTrials(cells, 3, func(cell int) bool { return cell != 3 })
	var have []string
	for _, x := range trials {
		have = append(have, fmt.Sprint(x.cell, x.n, x.after))
	}
	want := []string{"0 1 []", "1 1 [0]", "2 1 []", "3 1 []", "0 2 [0]", "1 2 [1]", "2 2 [2]", "3 2 []", "0 3 [0]", "1 3 [1]", "2 3 [2]", "3 3 []"}
	if d := cmp.Diff(want, have); d != "" {
		t.Errorf("trials (-want +have):\n%s", d)
	}
	q := newSweepQueue(trials, 100, 0)
	if have := begins(q); have != "0 2 3 7 11" {
		t.Errorf("at first begin %s", have)
	}
	q.ask(0)
	if have := begins(q); have != "1 4 8" {
		t.Errorf("then begin %s", have)
	}
	q.end(2, 0) // without a model that was asked
	if have := begins(q); have != "6 10" {
		t.Errorf("then begin %s", have)
	}
	q.ask(1)
	if have := begins(q); have != "5 9" || len(q.left()) != 0 {
		t.Errorf("at last begin %s, and %v are left", have, q.left())
	}
}

func begins(q *sweepQueue) string {
	var out []string
	for {
		i, _ := q.next()
		if i < 0 {
			return strings.Join(out, " ")
		}
		q.begin(i)
		out = append(out, fmt.Sprint(i))
	}
}

// What a trial costs at most is its limit, or its share.
func TestM03TheGreatestCostOfATrial(t *testing.T) {
	for _, x := range []struct {
		own, shared, each, all int64
		trials                 int
		want                   int64
	}{
		{0, 0, 0, 0, 4, 0},
		{0, 0, 0, 1000, 4, 250},
		{0, 0, 0, 3, 4, 1},
		{0, 500, 300, 1000, 4, 300},
		{900, 500, 0, 1000, 4, 400},
		{900, 500, 399, 1000, 4, 399},
		{900, 500, 400, 1000, 4, 400},
		{900, 500, 401, 1000, 4, 400},
		{900, 900, 0, 1000, 4, 1},
		{900, 950, 0, 0, 4, 1},
		{0, 0, 0, 1000, 0, 1000},
	} {
		if have := sweepMost(x.own, x.shared, x.each, x.all, x.trials); have != x.want {
			t.Errorf("%+v: %d", x, have)
		}
	}
}

// A trial begins where what it costs at most fits beside what others spent and reserved: below the bound, and at it.
func TestM03MoneyIsReservedBeforeATrialBegins(t *testing.T) {
	four := func(most int64) []sweepTrial {
		return []sweepTrial{{most: most}, {most: most}, {most: most}, {most: most}}
	}
	for _, x := range []struct {
		max  int64
		want string
	}{{99, ""}, {100, "0"}, {199, "0"}, {200, "0 1"}, {201, "0 1"}, {400, "0 1 2 3"}, {0, "0 1 2 3"}} {
		if have := begins(newSweepQueue(four(100), 10, x.max)); have != x.want {
			t.Errorf("of %d begin %q, want %q", x.max, have, x.want)
		}
	}
	q := newSweepQueue(four(100), 10, 200)
	begins(q)
	if i, more := q.next(); i >= 0 || !more {
		t.Error("the third does not wait for the others")
	}
	q.end(0, 30) // it cost less than it had reserved
	if have := begins(q); have != "" {
		t.Errorf("%s begin beside 30 spent and 100 reserved of 200", have)
	}
	q.end(1, 70)
	if have := begins(q); have != "2" {
		t.Errorf("%s begin with 100 spent of 200", have)
	}
	q.end(2, 130) // it went beyond by one call
	if i, more := q.next(); i >= 0 || more || !slices.Equal(q.left(), []int{3}) {
		t.Errorf("with 230 spent of 200: %d %v, left %v", i, more, q.left())
	}
	known := newSweepQueue(four(100), 10, 250)
	known.known(1, 100)
	if have := begins(known); have != "0" {
		t.Errorf("with 100 spent before of 250 begin %s", have)
	}
	dear := newSweepQueue([]sweepTrial{{most: 300}, {most: 100}}, 10, 200)
	if have := begins(dear); have != "1" {
		t.Errorf("beside one that never fits begin %s", have)
	}
}

// No more trials are under way than may be.
func TestM03TrialsSideBySide(t *testing.T) {
	for _, x := range []struct {
		parallel int
		want     string
	}{{0, "0"}, {1, "0"}, {2, "0 1"}, {3, "0 1 2"}, {4, "0 1 2"}} {
		q := newSweepQueue(make([]sweepTrial, 3), x.parallel, 0)
		if have := begins(q); have != x.want {
			t.Errorf("%d at once: %s", x.parallel, have)
		}
	}
}

func TestM03TheScoreOfACheck(t *testing.T) {
	for text, want := range map[string]float64{"0.75": 0.75, "score: 3": 3, " score:-1e3 ": -1000, "7": 7} {
		if have := scoreOf(text); have == nil || *have != want {
			t.Errorf("%q: %v", text, have)
		}
	}
	for _, text := range []string{"", "ok", "score:", "3 of 4", "NaN", "score: Inf", "-Inf", "score 3", "1e999"} {
		if have := scoreOf(text); have != nil {
			t.Errorf("%q is %v", text, *have)
		}
	}
}

// Completed trials alone make the pass rate, with an interval from five, and none where a script answered; what they used is
// summed over all.
func TestM03TheSumsOfASweep(t *testing.T) {
	trial := func(state api.SweepState, cost *float64, score *float64, scripted bool) api.SweepTrial {
		return api.SweepTrial{State: state, Usage: api.SweepUsage{Calls: 1, Input: 10, Cached: 5, CostUSD: cost}, Score: score, MS: 100, Scripted: scripted}
	}
	passed := func(n int, scripted bool) (out []api.SweepTrial) {
		for range n {
			out = append(out, trial(api.SweepPassed, new(0.5), new(2.0), scripted))
		}
		return out
	}
	for _, x := range []struct {
		trials   []api.SweepTrial
		n        int
		interval bool
	}{
		{passed(4, false), 4, false},
		{passed(5, false), 5, true},
		{passed(6, false), 6, true},
		{passed(5, true), 5, false},
		{append(passed(4, false), trial(api.SweepError, new(0.5), nil, false)), 4, false},
		{append(passed(5, false), trial(api.SweepCut, new(0.5), nil, true)), 5, true},
	} {
		s := api.Sweep{Cells: make([]api.SweepCell, 1), Trials: x.trials}
		s.Sum()
		c := s.Cells[0]
		if c.Pass.N != x.n || c.Pass.Passed != x.n || (c.Pass.Low != nil) != x.interval {
			t.Errorf("%d trials: %+v", len(x.trials), c.Pass)
		}
		if *c.Usage.CostUSD != 0.5*float64(len(x.trials)) || c.Usage.Input != int64(10*len(x.trials)) || c.MeanMS != 100 || *c.Score != 2 || c.Scores != x.n {
			t.Errorf("%d trials: %+v", len(x.trials), c)
		}
		if s.Complete != (x.n == len(x.trials)) || c.Errors+c.Cut != len(x.trials)-x.n {
			t.Errorf("%d trials: complete %v, %d errors, %d cut", len(x.trials), s.Complete, c.Errors, c.Cut)
		}
	}
	s := api.Sweep{Cells: make([]api.SweepCell, 2), Trials: []api.SweepTrial{trial(api.SweepFailed, nil, nil, false), {Cell: 1, State: api.SweepOpen, Usage: api.SweepUsage{CostUSD: new(0.0)}}}}
	s.Sum()
	if s.Usage.CostUSD != nil || s.Cells[0].Usage.CostUSD != nil || *s.Cells[1].Usage.CostUSD != 0 || s.Cells[1].Open != 1 || s.Cells[0].Score != nil || math.Abs(float64(s.Cells[0].Pass.Passed)) > 0 {
		t.Errorf("an unknown cost: %+v", s)
	}
}
