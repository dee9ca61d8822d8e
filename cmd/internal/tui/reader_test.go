package tui_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"wf/api"
	"wf/cmd/internal/tui"
	"wf/protocol"
)

// desk is a service with one run.
type desk struct {
	api.Service
	updates []api.Update
	follows []api.Following
	query   api.Query
}

var visit = &api.Step{ID: "a#1", Status: "failed", MS: 12, ToolCalls: 1, EdgePrompt: "go", Text: "so", Output: protocol.JSON(`{"n":1}`),
	Error: &protocol.ErrorInfo{Message: "it broke"}, Attempts: []api.Attempt{{Error: &protocol.ErrorInfo{Message: "at first"}}}}

func (s *desk) Run(_ context.Context, run protocol.RunID, _ api.Window) (*api.Run, error) {
	return &api.Run{ID: run, Workflow: "w", Status: protocol.Running, Driving: api.Driving{Idle: api.Interrupted}, Seq: 5000, Total: 12,
		Steps: []*api.Step{visit}, Waiting: []api.Waiting{{Step: "q#1", Question: "On?", Shown: "d"}}}, nil
}

func (s *desk) Step(context.Context, protocol.RunID, string) (*api.RunStep, error) {
	return &api.RunStep{Step: visit}, nil
}

func (s *desk) List(_ context.Context, q api.Query) (*api.Page, error) {
	s.query = q
	return &api.Page{Items: []api.Row{{ID: "R", Workflow: "w", Status: protocol.Waiting, Steps: 2}}}, nil
}

func (s *desk) Messages(_ context.Context, _ protocol.RunID, step string) (*api.Messages, error) {
	m := &api.Messages{Prompt: api.Prompt{Digest: "d", Messages: []protocol.Message{{Role: "user", Content: "what happened so far"}}}}
	if step == "c#1[7]" {
		m.Command = &api.Command{Run: "make \"$N\"", Env: []protocol.NamedTemplate{{Name: "N", Value: "${{ item }}"}}, Item: protocol.JSON(`"seven"`)}
	}
	return m, nil
}

func (s *desk) VisitDiff(context.Context, protocol.RunID, string) (*api.VisitDiff, error) {
	before := "a#0"
	return &api.VisitDiff{Previous: &before, Equal: true}, nil
}

func (s *desk) Cost(context.Context, protocol.RunID, string) (*api.Cost, error) {
	known := json.Number("0.5")
	return &api.Cost{Items: []*api.CostRow{{Name: "a#1", Calls: 2, Input: 30, CostUSD: &known, KnownUSD: known}}, Total: &api.CostRow{Calls: 2, Input: 30, KnownUSD: known}}, nil
}

func (s *desk) Verify(context.Context, protocol.RunID) (*protocol.Report, error) {
	return &protocol.Report{Findings: []protocol.Finding{{Kind: "block_missing", Where: "R/3", Expected: "x", Actual: "y", Fix: "restore"}}, NotProven: []string{"the clock"}}, nil
}

func (s *desk) Follow(_ context.Context, _ protocol.RunID, w api.Following, f func(api.Update) error) error {
	s.follows = append(s.follows, w)
	for _, u := range s.updates {
		if err := f(u); err != nil {
			return err
		}
	}
	return nil
}

func TestTheListAndTheRunAreThoseOfTheService(t *testing.T) {
	s := &desk{}
	src := tui.Reader{Service: s, Follower: s}
	page, err := src.Runs(t.Context(), "words", "R0")
	if err != nil || len(page.Items) != 1 || page.Items[0].Status != protocol.Waiting || s.query != (api.Query{Limit: 300, Text: "words", Before: "R0"}) {
		t.Errorf("%+v of %+v, %v", page, s.query, err)
	}
	v, err := src.Run(t.Context(), "R", api.Window{})
	if err != nil || v.Idle != api.Interrupted || v.Count() != 12 || len(v.Steps) != 1 || v.Waiting[0].Shown != "d" {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestThePagesOfAStep(t *testing.T) {
	step, other := "a#1", "b#1"
	entry := func(seq protocol.Seq, step *string) api.Update {
		u := api.Update{Entry: &protocol.Entry{Event: protocol.Event{Seq: seq, Type: protocol.EvText, Step: step}}, Data: protocol.TextSaid{Content: protocol.NewText("words")}}
		if step != nil {
			u.Step = *step
		}
		return u
	}
	s := &desk{updates: []api.Update{entry(4001, &step), entry(4002, &other), entry(4003, nil)}}
	src := tui.Reader{Service: s, Follower: s}
	for page, want := range map[tui.Page][]string{
		tui.Output: {"a#1  failed  12ms  1 tool call", "attempt 1: at first", "error: it broke", "── handed over\ngo", "── text\nso", "── output\n{\n  \"n\": 1\n}"},
		tui.Diff:   {"the same as a#0"},
		tui.Cost:   {"By Step", "a#1", "$0.5000", "≥ $0.5000"},
		tui.Verify: {"✗ R/3: block_missing", "fix      restore", "not proven: the clock"},
		tui.Events: {" 4001 ", " 4003 ", "said words"},
	} {
		x, err := src.Page(t.Context(), "R", tui.Step{ID: step, Newest: 5000}, page)
		text := x.Text
		for _, w := range want {
			if err != nil || !strings.Contains(text, w) {
				t.Errorf("%s: %v, no %q in\n%s", page, err, w, text)
			}
		}
		if page == tui.Events && strings.Contains(text, "4002") {
			t.Errorf("an event of another step is shown:\n%s", text)
		}
	}
	if s.follows[0] != (api.Following{From: 3000, To: 5000}) {
		t.Errorf("events are asked for as %+v", s.follows[0])
	}
	if x, err := src.Page(t.Context(), "R", tui.Step{}, tui.Output); x.Text != "" || err != nil {
		t.Errorf("a run without steps has an output: %q, %v", x.Text, err)
	}
}

// The events of a step are read where it began, and long ones in parts, below, at and beyond the length of one.
func TestEventsAreReadInParts(t *testing.T) {
	for _, x := range []struct {
		step    tui.Step
		want    api.Following
		earlier protocol.Seq
	}{
		{tui.Step{}, api.Following{From: 3000, To: 5000}, 3001},
		{tui.Step{Before: 3001}, api.Following{From: 1000, To: 3000}, 1001},
		{tui.Step{Before: 1001}, api.Following{From: 0, To: 1000}, 0},
		{tui.Step{Before: 2001}, api.Following{From: 0, To: 2000}, 0},
		{tui.Step{ID: "a#1", Began: 17, Ended: 40}, api.Following{From: 16, To: 40}, 0},
		{tui.Step{ID: "a#1", Began: 17, Ended: 2016}, api.Following{From: 16, To: 2016}, 0},
		{tui.Step{ID: "a#1", Began: 17, Ended: 2017}, api.Following{From: 17, To: 2017}, 18},
		{tui.Step{ID: "a#1", Began: 17, Ended: 2017, Before: 18}, api.Following{From: 16, To: 17}, 0},
		{tui.Step{ID: "a#1", Began: 4000}, api.Following{From: 3999, To: 5000}, 0},
	} {
		s := &desk{}
		x.step.Newest = 5000
		got, err := tui.Reader{Service: s, Follower: s}.Page(t.Context(), "R", x.step, tui.Events)
		if err != nil || s.follows[0] != x.want || got.Earlier != x.earlier {
			t.Errorf("%+v: %+v, earlier %d, %v", x.step, s.follows[0], got.Earlier, err)
		}
	}
}

// What is recorded, or taken back, is a move; live output is not.
func TestMovesAreTold(t *testing.T) {
	back := protocol.Seq(4)
	s := &desk{updates: []api.Update{{Whole: true}, {Entry: &protocol.Entry{}}, {Data: protocol.Delta{Text: "hal"}}, {Remark: "moved", Reset: &back}}}
	n := 0
	if err := (tui.Reader{Service: s, Follower: s}).Follow(t.Context(), "R", 5000, func() { n++ }); err != nil || n != 2 {
		t.Errorf("%d moves, %v", n, err)
	}
	if s.follows[0] != (api.Following{From: 5000, Until: api.Never}) {
		t.Errorf("it follows %+v", s.follows[0])
	}
}

// A command was sent nothing: its page shows what it was given, not the messages that an agent in its place would be sent.
func TestACommandWasSentNoMessages(t *testing.T) {
	r := tui.Reader{Service: &desk{}}
	for step, want := range map[string]string{
		"a#1": "digest d\n\n── user\nwhat happened so far\n",
		"c#1[7]": "c#1[7] is a command: no model was asked. It was given\n\n── item\nseven\n\n── run\nmake \"$N\"\n\n── env\nN=${{ item }}\n\n── stdin\n" +
			"its turn, wf.turn/v1: the inputs, what happened before, and the messages that an agent in its place would be sent; -o json shows those\n",
	} {
		got, err := r.Page(t.Context(), "R", tui.Step{ID: step}, tui.Messages)
		if err != nil || got.Text != want {
			t.Errorf("%s: %v\n%s", step, err, got.Text)
		}
	}
}
