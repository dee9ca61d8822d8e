package servicetest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"wf/api"
	"wf/protocol"
)

// pages reads a list of runs in pages, while the run at the end of a page moves to its beginning: each of the others is
// listed once (F-50).
func pages(t *testing.T, suite Suite) {
	s := suite.open(t)
	var want []protocol.RunID
	for range 5 {
		want = slices.Insert(want, 0, begin(t, s, "roads"))
	}
	var got []protocol.RunID
	q := api.Query{Limit: 2}
	for {
		p := must(s.List(t.Context(), q))(t)
		for _, row := range p.Items {
			got = append(got, row.ID)
		}
		if p.Next == nil {
			break
		}
		q.Before = *p.Next
		must(s.Answer(t.Context(), got[len(got)-1], api.Answer{Text: "yes"}))(t)
		park(t, s, got[len(got)-1])
	}
	if !slices.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
	q.Before = "nowhere"
	_, err := s.List(t.Context(), q)
	fails(t, "a place that is none", err, protocol.ErrBadRequest)
}

// requests sends request ids again: with the same request, with others, and after one that was refused (F-51); and asks for
// what the run does not have (F-54).
func requests(t *testing.T, suite Suite) {
	s := suite.open(t)
	of := func(topic string) api.Start {
		return api.Start{Workflow: "gate", RequestID: "r", Title: "t", Inputs: map[string]json.RawMessage{"topic": json.RawMessage(topic)}}
	}
	_, _, err := s.Start(t.Context(), of(`7`))
	fails(t, "an input that does not fit", err, protocol.ErrInputs)
	run, fresh, err := s.Start(t.Context(), of(`"rails"`))
	if err != nil || !fresh {
		t.Fatalf("corrected under the same id: %s, %v, %v", run, fresh, err)
	}
	if again, fresh, err := s.Start(t.Context(), of(` "rails"`)); err != nil || fresh || again != run {
		t.Errorf("sent again: %s, %v, %v, want %s", again, fresh, err, run)
	}
	untitled := of(`"rails"`)
	untitled.Title = "" // what only people read may be left out
	if again, fresh, err := s.Start(t.Context(), untitled); err != nil || fresh || again != run {
		t.Errorf("sent again without its title: %s, %v, %v, want %s", again, fresh, err, run)
	}
	for differs, change := range map[string]func(*api.Start){
		"inputs.topic": func(x *api.Start) { x.Inputs["topic"] = json.RawMessage(`"roads"`) },
		"workflow":     func(x *api.Start) { x.Workflow = "other" },
		"title":        func(x *api.Start) { x.Title = "another" },
		"tags":         func(x *api.Start) { x.Tags = []string{"new"} },
	} {
		other := of(`"rails"`)
		change(&other)
		_, _, err := s.Start(t.Context(), other)
		fails(t, "another "+differs, err, protocol.ErrRequestReused)
		if err != nil && !strings.Contains(err.Error(), differs) {
			t.Errorf("%q does not name %s", err, differs)
		}
	}
	park(t, s, run)
	fails(t, "to suspend a run that waits", s.Suspend(t.Context(), run), protocol.ErrNotRunning)
	_, err = s.Step(t.Context(), run, "gate#7")
	fails(t, "a step that is none", err, protocol.ErrUnknownStep)
	if p := must(s.List(t.Context(), api.Query{}))(t); len(p.Items) != 1 {
		t.Errorf("there are %d runs, want one", len(p.Items))
	}
}
