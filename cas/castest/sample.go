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

// Forked begins a run on event at of another one.
func Forked(t *testing.T, s cas.Keeper, run, fork protocol.RunID, at protocol.Seq) *cas.Journal {
	t.Helper()
	j := must(cas.OpenJournal(t.Context(), s, run))(t)
	for e, err := range s.Events(t.Context(), protocol.RunHead(run), string(run), at-1) {
		if err != nil {
			t.Fatal(err)
		}
		return must(j.Fork(t.Context(), e.TS+1, fork, e, []cas.Draft{{Data: protocol.Forked{Base: e.CID}}}, nil, nil))(t)
	}
	t.Fatalf("run %s has no event %d", run, at)
	return nil
}

// Buried deletes a run.
func Buried(t *testing.T, s cas.Keeper, run protocol.RunID) {
	t.Helper()
	h := must(s.Head(t.Context(), protocol.RunHead(run)))(t)
	d := must(cas.Bury(h, protocol.Tombstone{By: "someone", At: Now, Why: "a test"}))(t)
	if err := s.Commit(t.Context(), cas.Batch{Deletes: []cas.Deletion{d}}); err != nil {
		t.Fatal(err)
	}
}

// Kept has a store keep a tree of files for a run.
func Kept(t *testing.T, s cas.Keeper, run protocol.RunID, content string) protocol.Link {
	t.Helper()
	h := must(s.Head(t.Context(), protocol.FilesHead(run)))(t)
	file := cas.Raw([]byte(content))
	tree := must(cas.Encode(map[string]any{"a file": file.Link}))(t)
	keep := must(cas.Encode(protocol.FilesKept{Kind: protocol.KindFilesKept, V: 1, Prev: h.Link, Tree: tree.Link}))(t)
	err := s.Commit(t.Context(), cas.Batch{Blocks: []cas.Block{file, tree, keep}, Moves: []cas.Move{{Name: protocol.FilesHead(run), Old: h.Link, New: keep.Link, TS: Now}}})
	if err != nil {
		t.Fatal(err)
	}
	return keep.Link
}

// Remembered adds to a memory.
func Remembered(t *testing.T, s cas.Keeper, scope, what string) {
	t.Helper()
	m, h := must(cas.OpenMemory(s, scope))(t), must(s.Head(t.Context(), protocol.MemoryHead(scope)))(t)
	must(m.Append(t.Context(), Now, cas.EventRef{Seq: h.Seq, CID: h.Link}, []cas.Draft{{Data: protocol.Remembered{Content: protocol.NewText(what), Tags: []string{}}}}))(t)
}

// Many is a store with runs of all kinds: forks of forks, files, memories, a run that was deleted.
func Many(t *testing.T, s cas.Keeper) {
	t.Helper()
	Sample(t, s, "one", 6, func(visit int) string {
		if visit == 3 {
			return strings.Repeat("a long answer\n", protocol.ChunkSize/7)
		}
		return fmt.Sprint("answer ", visit)
	})
	Sample(t, s, "two", 3, nil)
	Forked(t, s, "one", "fork", 8)
	Append(t, Forked(t, s, "fork", "fork-of-fork", 9), 3)
	Forked(t, s, "fork-of-fork", "third", 5)
	Kept(t, s, "one", "first")
	Kept(t, s, "one", "second")
	Remembered(t, s, "notes", "a thing")
	Remembered(t, s, "notes", strings.Repeat("another thing ", 200))
	Sample(t, s, "gone", 2, nil)
	Kept(t, s, "gone", "its file")
	Buried(t, s, "gone")
}

// Longer adds n events to a run, each with a text that is a block of its own.
func Longer(t *testing.T, j *cas.Journal, n int) {
	t.Helper()
	begun, _ := j.Head()
	for at := 0; at < n; {
		var drafts []cas.Draft
		for ; len(drafts) < 250 && at < n; at++ {
			text := fmt.Sprintf("%s %d %s", begun, at, strings.Repeat("some words that are said ", 50))
			drafts = append(drafts, cas.Draft{Step: "a#1", Data: protocol.TextSaid{Content: protocol.NewText(text)}})
		}
		must(j.Append(t.Context(), Now, drafts, nil))(t)
	}
}
