package query

import (
	"slices"
	"strings"

	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/engine/rules"
	"wf/protocol"
)

// Facts are what runs are chosen by: those of a run after one of its events.
type Facts struct {
	Status      protocol.RunStatus
	Workflow    string
	Type        string
	Title       string
	Description string // "" for one over 1 KiB, which lies in a block
	RequestID   string
	Tags        []string
	Parent      protocol.RunID // of which it is a sub-workflow
	Calls       int
	Tokens      int64                   // input and output
	Models      map[string]rules.Tokens // what a price needs
}

// Known is what is kept of runs, so that they need not be folded to choose among them. It is safe for concurrent use.
type Known interface {
	// Facts are those of a run at its head; nil where they are not known.
	Facts(h cas.Head) *Facts
	// Note keeps facts that were found out.
	Note(h cas.Head, f *Facts)
}

// FactsOf are the facts of a state.
func FactsOf(st *rules.State) *Facts {
	f := &Facts{Status: st.Status(), Workflow: st.Program().Workflow.Name, Type: st.Info.Type, Title: st.Info.Title, Description: st.Info.Description.S, RequestID: st.Info.RequestID,
		Tags: st.Info.Tags, Calls: st.Totals.Calls, Tokens: st.Totals.Input + st.Totals.Output, Models: st.Totals.Models}
	if p := st.Info.Parent; p != nil {
		f.Parent = p.Run
	}
	return f
}

// fit reports whether a run fits a query, its status, what was said in it and by which person aside.
func (f *Facts) fit(e *engine.Engine, q *api.Query, run protocol.RunID) bool {
	switch {
	case !q.All && f.Parent != "",
		q.Tag != "" && !slices.Contains(f.Tags, q.Tag),
		q.Workflow != "" && f.Workflow != q.Workflow,
		q.Type != "" && f.Type != q.Type,
		q.TokensMin != nil && f.Tokens < *q.TokensMin, q.TokensMax != nil && f.Tokens > *q.TokensMax,
		!f.holds(q, run):
		return false
	case q.CostMin == nil && q.CostMax == nil:
		return true
	}
	cost, _ := e.Cost(rules.Totals{Calls: f.Calls, Models: f.Models})
	return cost != nil && (q.CostMin == nil || usd(*cost) >= *q.CostMin) && (q.CostMax == nil || usd(*cost) <= *q.CostMax)
}

// holds reports whether the text that is looked for stands in what a run says of itself. A
// description over 1 KiB lies in a block and is not searched.
func (f *Facts) holds(q *api.Query, run protocol.RunID) bool {
	if q.Text == "" || strings.HasPrefix(strings.ToLower(string(run)), q.Text) {
		return true
	}
	in := func(s string) bool { return strings.Contains(strings.ToLower(s), q.Text) }
	return in(f.Workflow) || in(f.Title) || in(f.Description) || in(f.RequestID) || slices.ContainsFunc(f.Tags, in)
}

// usd are the dollars of pico-dollars.
func usd(pico int64) float64 { return float64(pico) / 1e12 }
