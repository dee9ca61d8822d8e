package query

import (
	"slices"
	"testing"

	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/engine/rules"
	"wf/protocol"
)

func TestRunsAreChosenByTheirFacts(t *testing.T) {
	price := int64(5e11) // half a dollar a call
	e := &engine.Engine{Price: func(u protocol.Usage) *int64 {
		if u.Model != "known" {
			return nil
		}
		return &price
	}}
	f := Facts{Status: protocol.Done, Workflow: "talk", Title: "About Rails", Description: "none", RequestID: "req", Tags: []string{"night"},
		Calls: 1, Tokens: 100, Models: map[string]rules.Tokens{"known": {Calls: 1, Input: 90, Output: 10}}}
	unknown := f
	unknown.Models = map[string]rules.Tokens{"other": {Calls: 1}}
	child := f
	child.Parent = "PARENT"
	for name, c := range map[string]struct {
		f    Facts
		q    api.Query
		want bool
	}{
		"nothing asked":           {f, api.Query{}, true},
		"its tag":                 {f, api.Query{Tag: "night"}, true},
		"another tag":             {f, api.Query{Tag: "day"}, false},
		"its workflow":            {f, api.Query{Workflow: "talk"}, true},
		"another workflow":        {f, api.Query{Workflow: "tal"}, false},
		"a part of its title":     {f, api.Query{Text: "rail"}, true},
		"the beginning of its id": {f, api.Query{Text: "7k"}, true},
		"a part of its id":        {f, api.Query{Text: "k3"}, false},
		"as many tokens":          {f, api.Query{TokensMin: new(int64(100)), TokensMax: new(int64(100))}, true},
		"more tokens":             {f, api.Query{TokensMin: new(int64(101))}, false},
		"fewer tokens":            {f, api.Query{TokensMax: new(int64(99))}, false},
		"its cost":                {f, api.Query{CostMin: new(0.5), CostMax: new(0.5)}, true},
		"a higher cost":           {f, api.Query{CostMin: new(0.500001)}, false},
		"a lower cost":            {f, api.Query{CostMax: new(0.499999)}, false},
		"no cost is known":        {unknown, api.Query{CostMin: new(0.0)}, false},
		"a sub-workflow":          {child, api.Query{}, false},
		"sub-workflows too":       {child, api.Query{All: true}, true},
	} {
		if got := c.f.fit(e, &c.q, "7K3Q"); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestTheTimeOfTheNewestEventIsBounded(t *testing.T) {
	heads := []cas.Head{{Name: "run/e", TS: 50}, {Name: "run/c", TS: 30}, {Name: "run/d", TS: 30}, {Name: "run/b", TS: 20}, {Name: "run/a", TS: 10}}
	for _, c := range []struct {
		since, until int64
		want         string
	}{{0, 0, "ecdba"}, {30, 0, "ecd"}, {31, 0, "e"}, {51, 0, ""}, {0, 30, "cdba"}, {0, 29, "ba"}, {0, 9, ""}, {20, 30, "cdb"}, {10, 50, "ecdba"}, {30, 20, ""}, {21, 29, ""}} {
		got := ""
		for _, h := range within(slices.Clone(heads), c.since, c.until) {
			got += string(protocol.RunOf(h.Name))
		}
		if got != c.want {
			t.Errorf("since %d until %d: %q, want %q", c.since, c.until, got, c.want)
		}
	}
}
