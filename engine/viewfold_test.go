package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"wf/api"
	"wf/protocol"
)

// F211: of a long fan-out a folded view reads the first item and some of those that want to be looked at, and counts all of them; steps
// beside it, before it and behind it are given as they are, and pages of lines have each line once.
func TestF211AFoldedViewReadsWhatIsShownOfAFanOut(t *testing.T) {
	b := newBench(t)
	id, v := b.run(`
wf: 1
name: fold
defaults: {timeout: 1m}
inputs: {n: {type: integer, default: 40}}
roles:
  list: {set: {items: "${{ 1..inputs.n }}"}, route: all}
  test: {run: 'exit $((I % 3))', env: {I: "${{ item }}"}, continue_on_error: true}
  few: {set: {n: "${{ item }}"}}
  beside: {set: {n: 1}}
  sum: {set: {n: 1}}
edges:
  - {from: START, to: list}
  - {from: list, to: test, for_each: output.items}
  - {from: list, to: beside}
  - {from: beside, to: few, for_each: "[1, 2, 3]"}
  - {from: few, to: END}
  - {from: test, to: sum}
  - {from: sum, to: END}
`, nil)
	if v.Status != protocol.Done {
		t.Fatalf("%s: %s", v.Status, v.Reason)
	}
	whole := map[string]*api.Step{}
	var lines []string // in the order in which they began
	for _, s := range v.Steps {
		whole[s.ID] = s
		if !strings.HasPrefix(s.ID, "test#1[") {
			lines = append(lines, s.ID)
		} else if s.ID == "test#1[0]" {
			lines = append(lines, "test#1")
		}
	}
	var paged []string
	for before := protocol.Seq(0); ; {
		p, err := b.e.ViewWindow(t.Context(), id, api.Window{Fold: 10, Limit: 2, Before: before})
		if err != nil {
			t.Fatal(err)
		}
		var page []string
		odd := 0
		for _, s := range p.Steps {
			if fmt.Sprint(*s) != fmt.Sprint(*whole[s.ID]) && s.Text != whole[s.ID].Text {
				t.Errorf("%s is %+v, want %+v", s.ID, s, whole[s.ID])
			}
			name, _, item := strings.Cut(s.ID, "[")
			switch {
			case !item || name != "test#1":
				page = append(page, s.ID)
			case s.ID == "test#1[0]":
				page = append(page, name)
				odd++ // 1 % 3
			default:
				odd++
			}
		}
		if odd > 0 && odd != api.FoldOdd {
			t.Errorf("%d items are given", odd)
		}
		i := slices.IndexFunc(p.Fans, func(f api.FanTally) bool { return f.ID == "test#1" })
		if f := p.Fans[i]; f.Items != 40 || f.States["ok"] != 13 || f.States[api.StepNonzero] != 27 || f.Exits["1"] != 14 || f.Exits["2"] != 13 || f.Began != whole["test#1[0]"].Began || f.Ended == 0 {
			t.Errorf("%+v", f)
		}
		paged = append(page, paged...)
		if before = p.Earlier; before == 0 {
			break
		}
	}
	if !slices.Equal(paged, lines) {
		t.Errorf("the pages have %v, want %v", paged, lines)
	}
}
