package service

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"wf/protocol"
)

// The plan of a sweep: which trials there are, in which order, and which of them may begin. All of it is pure.

// A SweepInput is an input with the values that it takes in turn.
type SweepInput struct {
	Name   string
	Values []any
}

// A SweepModel is a role, "" for every role, with the models that it takes in turn.
type SweepModel struct {
	Role   string
	Models []string
}

// sweepRangeMax bounds the values of a range.
const sweepRangeMax = 10_000

// SweepRange reads FROM..TO, two whole numbers, as all from one to the other; ok is false for any other text.
func SweepRange(text string) (values []string, ok bool, err error) {
	a, b, found := strings.Cut(text, "..")
	from, err1 := strconv.ParseInt(a, 10, 64)
	to, err2 := strconv.ParseInt(b, 10, 64)
	if !found || err1 != nil || err2 != nil {
		return nil, false, nil
	}
	step := int64(1)
	if to < from {
		step = -1
	}
	if n := math.Abs(float64(to)-float64(from)) + 1; n > sweepRangeMax {
		return nil, true, protocol.ErrUsage.With("name a smaller range", "the range %s has %.0f values, and may have %d", text, n, sweepRangeMax)
	}
	for at := from; ; at += step {
		values = append(values, strconv.FormatInt(at, 10))
		if at == to {
			return values, true, nil
		}
	}
}

// A sweepCell is a model for each role, a definition and inputs.
type sweepCell struct {
	models     map[string]string
	definition int
	inputs     map[string]any
}

// sweepCells are all combinations: models change last, inputs first.
func sweepCells(models []SweepModel, definitions int, inputs []SweepInput) []sweepCell {
	var out []sweepCell
	for _, m := range products(models, func(m SweepModel) (string, []string) { return m.Role, m.Models }) {
		for d := range definitions {
			for _, in := range products(inputs, func(in SweepInput) (string, []any) { return in.Name, in.Values }) {
				out = append(out, sweepCell{m, d, in})
			}
		}
	}
	return out
}

// products are all ways to choose a value of each axis; of the last one the values change first.
func products[A, V any](axes []A, of func(A) (string, []V)) []map[string]V {
	out := []map[string]V{{}}
	for _, a := range axes {
		name, values := of(a)
		var next []map[string]V
		for _, chosen := range out {
			for _, v := range values {
				one := map[string]V{name: v}
				for k, was := range chosen {
					one[k] = was
				}
				next = append(next, one)
			}
		}
		out = next
	}
	return out
}

// A sweepTrial is one run of a cell.
type sweepTrial struct {
	cell, n int   // n counts from 1 in its cell
	after   []int // trials that have asked their model once before this one begins: what they share is in its cache then
	most    int64 // micro-dollars that it costs at most; 0 is not known
}

// sweepTrials are the trials in the order in which they begin: one of each cell, then the second of each. The first of a model goes
// before its other cells, and the first of a cell before its other trials.
func sweepTrials(cells []sweepCell, n int, asks func(cell int) bool) []sweepTrial {
	var out []sweepTrial
	ofModel := map[string]int{}
	for k := 1; k <= n; k++ {
		for i, c := range cells {
			t := sweepTrial{cell: i, n: k}
			if asks(i) {
				model := sweepModels(c.models)
				first, known := ofModel[model]
				if !known {
					ofModel[model] = len(out)
				}
				if known && k == 1 {
					t.after = []int{first}
				}
				if k > 1 {
					t.after = []int{i}
				}
			}
			out = append(out, t)
		}
	}
	return out
}

// sweepModels names models: role=model, in order.
func sweepModels(models map[string]string) string {
	var parts []string
	for role, m := range models {
		if role != "" {
			m = role + "=" + m
		}
		parts = append(parts, m)
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

// sweepMost is what a trial costs at most, in micro-dollars: the smaller of the limit of its workflow, less what was spent until
// the fork point, and that of the user for each trial; without either its share of what all may cost. 0 is no bound.
func sweepMost(own, shared, each, all int64, trials int) int64 {
	most := each
	if own > 0 {
		left := max(1, own-shared)
		if most == 0 || left < most {
			most = left
		}
	}
	if most == 0 && all > 0 {
		most = max(1, all/int64(max(1, trials)))
	}
	return most
}

// A sweepQueue says which trial begins next.
type sweepQueue struct {
	trials   []sweepTrial
	parallel int
	max      int64 // micro-dollars for all; 0 is no bound

	began    []bool
	asked    []bool // its model was asked once, or it has ended
	ended    []bool
	under    int   // under way
	spent    int64 // by those that have ended
	reserved int64 // by those under way
}

func newSweepQueue(trials []sweepTrial, parallel int, most int64) *sweepQueue {
	return &sweepQueue{trials: trials, parallel: max(1, parallel), max: most,
		began: make([]bool, len(trials)), asked: make([]bool, len(trials)), ended: make([]bool, len(trials))}
}

// next is the trial that begins now. A negative one is none: more tells whether there is to be waited for others. What does not
// fit beside what others reserved waits until they have ended.
func (q *sweepQueue) next() (trial int, more bool) {
	if q.under >= q.parallel {
		return -1, true
	}
	for i := range q.trials {
		if q.began[i] {
			continue
		}
		if slices.ContainsFunc(q.trials[i].after, func(k int) bool { return !q.asked[k] }) {
			continue
		}
		if !q.fits(i) {
			if q.under > 0 {
				return -1, true // in its turn
			}
			continue
		}
		return i, true
	}
	return -1, q.under > 0
}

func (q *sweepQueue) fits(i int) bool {
	return q.max == 0 || q.spent+q.reserved+q.trials[i].most <= q.max
}

// begin reserves what a trial costs at most.
func (q *sweepQueue) begin(i int) {
	q.began[i] = true
	q.under++
	q.reserved += q.trials[i].most
}

// ask notes that the model of a trial was asked once.
func (q *sweepQueue) ask(i int) { q.asked[i] = true }

// end frees what a trial had reserved, and counts what it cost.
func (q *sweepQueue) end(i int, cost int64) {
	q.asked[i], q.ended[i] = true, true
	q.under--
	q.reserved -= q.trials[i].most
	q.spent += cost
}

// known counts a trial that was completed before.
func (q *sweepQueue) known(i int, cost int64) {
	q.began[i], q.asked[i], q.ended[i] = true, true, true
	q.spent += cost
}

// left are the trials that cannot begin any more.
func (q *sweepQueue) left() []int {
	var out []int
	for i, began := range q.began {
		if !began {
			out = append(out, i)
		}
	}
	return out
}

// scoreOf is the number in the last line that a check wrote: "0.75" or "score: 0.75".
func scoreOf(last string) *float64 {
	text := strings.TrimSpace(last)
	if rest, ok := strings.CutPrefix(text, "score:"); ok {
		text = strings.TrimSpace(rest)
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}
