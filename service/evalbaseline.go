package service

import (
	"bytes"
	"fmt"

	"wf/api"
	"wf/protocol"
)

// The kinds of api.EvalRegression.
const (
	regressedPassed = "passed"
	regressedRate   = "rate"
	regressedCost   = "cost"
	regressedTokens = "tokens"
	changedOutputs  = "outputs"
	changedNew      = "new"
	changedMissing  = "missing"
)

// NoIncrease has CompareEval not look at cost and tokens.
const NoIncrease = -1

// CompareEval tells which cases are worse than in a baseline, and what else differs. Cost and tokens of a run may grow by
// so many percent; NoIncrease is by any. Cases that are not over are not compared; all tells whether those that the baseline
// has and now does not are missing, or were not chosen.
func CompareEval(base, now *api.Eval, percent float64, all bool) (worse, other []api.EvalRegression) {
	before := map[string]*api.EvalCase{}
	for i := range base.Cases {
		before[base.Cases[i].Name] = &base.Cases[i]
	}
	for i := range now.Cases {
		c := &now.Cases[i]
		old := before[c.Name]
		delete(before, c.Name)
		switch {
		case c.Verdict == api.EvalOpen:
		case old == nil:
			other = append(other, api.EvalRegression{Case: c.Name, Kind: changedNew, New: string(c.Verdict)})
		default:
			w, o := compareCase(old, c, percent)
			worse, other = append(worse, w...), append(other, o...)
		}
	}
	for i := range base.Cases {
		if c := &base.Cases[i]; all && before[c.Name] == c {
			other = append(other, api.EvalRegression{Case: c.Name, Kind: changedMissing, Old: string(c.Verdict)})
		}
	}
	return worse, other
}

func compareCase(old, now *api.EvalCase, percent float64) (worse, other []api.EvalRegression) {
	add := func(kind, was, is string) {
		worse = append(worse, api.EvalRegression{Case: now.Name, Kind: kind, Old: was, New: is})
	}
	switch {
	case old.Verdict == api.EvalPassed && now.Verdict != api.EvalPassed:
		add(regressedPassed, ofRate(old), ofRate(now))
	case old.Rate.Low != nil && now.Rate.High != nil && *now.Rate.High < *old.Rate.Low:
		add(regressedRate, ofRate(old), ofRate(now))
	}
	if percent >= 0 && old.Rate.N > 0 && now.Rate.N > 0 {
		factor := 1 + percent/100
		if was, is := perRun(float64(old.Tokens), old), perRun(float64(now.Tokens), now); is > was*factor {
			add(regressedTokens, fmt.Sprintf("%.0f per run", was), fmt.Sprintf("%.0f per run", is))
		}
		if old.CostUSD != nil && now.CostUSD != nil {
			if was, is := perRun(*old.CostUSD, old), perRun(*now.CostUSD, now); is > was*factor*(1+1e-9) {
				add(regressedCost, fmt.Sprintf("$%.4f per run", was), fmt.Sprintf("$%.4f per run", is))
			}
		}
	}
	if was, is := onlyOutputs(old), onlyOutputs(now); was != nil && is != nil && !bytes.Equal(was, is) {
		other = append(other, api.EvalRegression{Case: now.Name, Kind: changedOutputs, Old: string(was), New: string(is)})
	}
	return worse, other
}

// perRun is what a run of a case used. All of them count, those that were cut off too.
func perRun(sum float64, c *api.EvalCase) float64 { return sum / float64(max(len(c.Runs), 1)) }

// onlyOutputs are the outputs of a case with one run; of several that of none says more than the others.
func onlyOutputs(c *api.EvalCase) []byte {
	if len(c.Runs) != 1 {
		return nil
	}
	text, err := protocol.CanonicalizeJSON([]byte(c.Runs[0].Outputs))
	if err != nil {
		return nil // there are none
	}
	return []byte(text)
}

func ofRate(c *api.EvalCase) string {
	if len(c.Runs) < 2 {
		return string(c.Verdict)
	}
	text := fmt.Sprintf("%s, %d of %d", c.Verdict, c.Rate.Passed, c.Rate.N)
	if c.Rate.Low != nil && c.Rate.High != nil {
		text += fmt.Sprintf(" (%.0f–%.0f %%)", *c.Rate.Low*100, *c.Rate.High*100)
	}
	return text
}
