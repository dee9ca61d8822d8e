package castest

import (
	"fmt"
	"strings"
	"testing"

	"wf/cas"
	"wf/protocol"
)

// Sample writes a run as an engine does, of some visits and with its end, and gives its journal. output is what a visit answers; nil
// is a short text.
func Sample(t testing.TB, s cas.Backing, id protocol.RunID, visits int, output func(visit int) string) *cas.Journal {
	t.Helper()
	j, err := cas.OpenJournal(t.Context(), s, id)
	if err != nil {
		t.Fatal(err)
	}
	record := func(v any) cas.Block {
		b, err := cas.Encode(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	now := int64(Now)
	add := func(blocks []cas.Block, drafts ...cas.Draft) {
		t.Helper()
		now += 1000
		if _, err := j.Append(t.Context(), now, drafts, blocks); err != nil {
			t.Fatal(err)
		}
	}
	if output == nil {
		output = func(visit int) string {
			return fmt.Sprintf("run %s, visit %d: %s", id, visit, strings.Repeat("coder ", visit%50))
		}
	}
	flow := record(protocol.Workflow{Kind: protocol.KindWorkflow, V: 1, Name: "sample", Roles: []protocol.Role{{Name: "coder", Action: protocol.ActRun, Run: "true"}}, Edges: []protocol.Edge{{From: []string{"START"}, To: []string{"coder"}}}})
	inputs, source := cas.Raw([]byte(`{"package":"./..."}`)), cas.Raw([]byte("wf: 1\nname: sample\n"))
	start := record(protocol.Start{Kind: protocol.KindStart, V: 1, Workflow: flow.Link, Inputs: inputs.Link, Format: 1, Semantics: 1})
	add([]cas.Block{flow, inputs, source, start}, cas.Draft{Data: protocol.RunStarted{Start: start.Link, Source: source.Link, Title: string(id)}})
	parent, resumes := start.Link, protocol.Link{}
	for i := 1; i <= visits; i++ {
		step := fmt.Sprintf("coder#%d", i)
		add(nil, cas.Draft{Step: step, Data: protocol.StepStarted{Start: start.Link, Parents: []protocol.Link{parent}, Role: "coder", Visit: i, Via: protocol.ViaEdge, Attempt: 1}})
		text := output(i)
		root, blocks := cas.Payload([]byte(text))
		concluded := record(protocol.StepRecord{Kind: protocol.KindStep, V: 1, Start: start.Link, Parents: []protocol.Link{parent}, Role: "coder", Visit: i, Via: protocol.ViaEdge, EdgePrompt: "go on", Resumes: resumes, Output: root, Status: protocol.StepOK})
		add(append(blocks, concluded),
			cas.Draft{Step: step, Data: protocol.TextSaid{Content: protocol.NewText(text)}},
			cas.Draft{Step: step, Data: protocol.StepCompleted{Record: concluded.Link, MS: 5, Status: protocol.StepOK}})
		parent, resumes = concluded.Link, concluded.Link
	}
	result := record(protocol.Result{Kind: protocol.KindResult, V: 1, Start: start.Link, Parents: []protocol.Link{parent}, Status: protocol.Done})
	add([]cas.Block{result}, cas.Draft{Data: protocol.Finished{Status: protocol.Done, Result: result.Link}})
	return j
}
