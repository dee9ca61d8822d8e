package servicetest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"wf/api"
	"wf/protocol"
)

// searches finds runs by what was said in them, and by numbers.
func searches(t *testing.T, suite Suite) {
	s := suite.open(t)
	rails, roads := begin(t, s, "rails of Ångström"), begin(t, s, "roads")
	must(s.Answer(t.Context(), rails, api.Answer{Text: "yes, with zeppelins"}))(t)
	park(t, s, rails)
	list := func(q api.Query) *api.Page { t.Helper(); return must(s.List(t.Context(), q))(t) }
	found := func(q api.Query) (ids []protocol.RunID) {
		for _, row := range list(q).Items {
			ids = append(ids, row.ID)
		}
		return ids
	}
	for _, c := range []struct {
		search string
		want   []protocol.RunID
	}{
		{"rails", []protocol.RunID{rails}},
		{"ANGSTR", nil},
		{"ångstr", []protocol.RunID{rails}},
		{"zeppelins rails", []protocol.RunID{rails}},
		{"zeppelins roads", nil},
		{"go on", []protocol.RunID{rails, roads}},
		{"ra", nil},
		{"ra*", []protocol.RunID{rails}},
		{"about ro*", []protocol.RunID{roads}},
	} {
		if got := found(api.Query{Search: c.search}); !slices.Equal(got, c.want) {
			t.Errorf("%q is said in %v, want %v", c.search, got, c.want)
		}
	}
	p := list(api.Query{Search: "zeppelin"})
	if len(p.Items) != 1 || len(p.Items[0].Hits) != 1 || p.Searched == nil || p.Searched.Runs != 2 || p.Searched.Behind != 0 || p.Searched.UpTo == "" {
		t.Fatalf("%+v, searched %+v", p.Items, p.Searched)
	}
	if h := p.Items[0].Hits[0]; h != (api.Hit{Step: "gate#1", Kind: "answer", Text: "yes, with zeppelins"}) {
		t.Errorf("the hit is %+v", h)
	}
	_, err := s.List(t.Context(), api.Query{Search: "?!"})
	fails(t, "a search without a word", err, protocol.ErrBadRequest)

	p = list(api.Query{Status: protocol.Done, Counts: true})
	if len(p.Items) != 1 || p.Searched != nil || len(p.Counts) != 2 || p.Counts[protocol.Done] != 1 || p.Counts[protocol.Waiting] != 1 {
		t.Errorf("%d runs, %v", len(p.Items), p.Counts)
	}
	if p := list(api.Query{Search: "roads", Status: protocol.Done, Counts: true}); len(p.Items) != 0 || len(p.Counts) != 1 || p.Counts[protocol.Waiting] != 1 {
		t.Errorf("%d runs, %v", len(p.Items), p.Counts)
	}
	if p := list(api.Query{Tag: "none has it", Counts: true}); p.Counts == nil || len(p.Counts) != 0 {
		t.Errorf("counts of none are %v", p.Counts)
	}
	if p := list(api.Query{Counts: true, Limit: 1}); len(p.Counts) != 2 || p.Next == nil || len(list(api.Query{Counts: true, Limit: 1, Before: *p.Next}).Counts) != 0 {
		t.Errorf("counts of pages: %+v", p)
	}
	hour := time.Now().Add(-time.Hour).UnixMicro()
	for name, c := range map[string]struct {
		q    api.Query
		want int
	}{
		"since":      {api.Query{Since: hour}, 2},
		"until":      {api.Query{Until: hour}, 0},
		"tokens":     {api.Query{TokensMax: new(int64)}, 2},
		"few tokens": {api.Query{TokensMin: new(int64(1))}, 0},
		"cost":       {api.Query{CostMax: new(0.5)}, 2},
		"much cost":  {api.Query{CostMin: new(0.5)}, 0},
		"nobody":     {api.Query{Person: "a person that is not there"}, 0},
		"chats":      {api.Query{Type: protocol.ChatType}, 0},
	} {
		if got := found(c.q); len(got) != c.want {
			t.Errorf("%s: %d runs, want %d", name, len(got), c.want)
		}
	}
	talk, _, err := s.Start(t.Context(), api.Start{Workflow: "gate", Type: protocol.ChatType, Inputs: map[string]json.RawMessage{"topic": json.RawMessage(`"talk"`)}})
	if err != nil {
		t.Fatal(err)
	}
	park(t, s, talk)
	if got := found(api.Query{Type: protocol.ChatType}); !slices.Equal(got, []protocol.RunID{talk}) {
		t.Errorf("%v are chats, want %v", got, talk)
	}
	if got := found(api.Query{Type: protocol.ChatType, Search: "rails"}); len(got) != 0 {
		t.Errorf("%v are chats in which of rails was spoken", got)
	}
	if got := found(api.Query{Person: strings.ToUpper(answeredBy(t, s, rails))}); !slices.Contains(got, rails) {
		t.Errorf("%v were answered in by a person that answered in %s", got, rails)
	}

	fork := must(s.Fork(t.Context(), rails, api.Fork{Step: "last#1", Hold: true}))(t).ID
	if got := found(api.Query{Search: "zeppelins"}); !slices.Equal(got, []protocol.RunID{fork, rails}) {
		t.Errorf("what a fork shares is said in %v, want %v", got, []protocol.RunID{fork, rails})
	}
	must(s.Delete(t.Context(), rails, api.Delete{}))(t)
	if got := found(api.Query{Search: "zeppelins"}); !slices.Equal(got, []protocol.RunID{fork}) {
		t.Errorf("once its base is deleted: %v, want %v", got, fork)
	}
	if got := found(api.Query{Search: "roads", All: true}); !slices.Equal(got, []protocol.RunID{roads}) {
		t.Errorf("%v, want %v", got, roads)
	}
}

// answeredBy is the person that answered the gate of a run.
func answeredBy(t *testing.T, s Service, run protocol.RunID) (by string) {
	t.Helper()
	if err := s.Follow(t.Context(), run, api.Following{Until: api.Recorded}, func(u api.Update) error {
		if d, ok := u.Data.(protocol.Answered); ok {
			by = d.By
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return by
}
