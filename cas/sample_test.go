package cas

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"wf/protocol"
)

// openSample opens a store in a directory of its own.
func openSample(t testing.TB) *Store {
	t.Helper()
	s, err := Open(t.Context(), t.TempDir(), Options{Wait: 5 * time.Minute}) // however slow the machine
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// sampleRun writes a finished run of n visits of one role, each resuming the one before. Some
// outputs are long enough for blob files and chunks.
func sampleRun(t testing.TB, s *Store, id protocol.RunID, n int) *Journal {
	t.Helper()
	return sampleRunOf(t, s, id, n, func(i int) string {
		switch i {
		case 2:
			return randomText(200 << 10)
		case 3:
			return randomText(protocol.ChunkSize + 5000)
		}
		return fmt.Sprintf("run %s, visit %d: %s", id, i, strings.Repeat(fmt.Sprintf("coder#%d ", i), 20*i))
	})
}

// sampleRunOf is sampleRun with other outputs.
func sampleRunOf(t testing.TB, s *Store, id protocol.RunID, n int, output func(visit int) string) *Journal {
	t.Helper()
	ctx := t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	j, err := s.Journal(ctx, id)
	check(err)
	now := int64(1_700_000_000_000_000)
	add := func(blocks []Block, drafts ...Draft) {
		t.Helper()
		now += 1000
		_, err := j.Append(ctx, now, drafts, blocks)
		check(err)
	}
	flow := must(Encode(protocol.Workflow{Kind: protocol.KindWorkflow, V: 1, Name: "sample", Roles: []protocol.Role{{Name: "coder", Action: protocol.ActRun, Run: "true"}}, Edges: []protocol.Edge{{From: []string{"START"}, To: []string{"coder"}}}}))
	inputs, source := Raw([]byte(`{"package":"./..."}`)), Raw([]byte("wf: 1\nname: sample\n"))
	start := must(Encode(protocol.Start{Kind: protocol.KindStart, V: 1, Workflow: flow.Link, Inputs: inputs.Link, Format: 1, Semantics: 1}))
	add([]Block{flow, inputs, source, start}, Draft{Data: protocol.RunStarted{Start: start.Link, Source: source.Link, Title: string(id)}})
	parent, resumes := start.Link, protocol.Link{}
	for i := 1; i <= n; i++ {
		step := fmt.Sprintf("coder#%d", i)
		add(nil, Draft{Step: step, Data: protocol.StepStarted{Start: start.Link, Parents: []protocol.Link{parent}, Role: "coder", Visit: i, Via: protocol.ViaEdge, Attempt: 1}})
		text := output(i)
		root, blocks := Payload([]byte(text))
		record := must(Encode(protocol.StepRecord{Kind: protocol.KindStep, V: 1, Start: start.Link, Parents: []protocol.Link{parent}, Role: "coder", Visit: i, Via: protocol.ViaEdge, EdgePrompt: "go on", Resumes: resumes, Output: root, Status: protocol.StepOK}))
		add(append(blocks, record),
			Draft{Step: step, Data: protocol.TextSaid{Content: protocol.NewText(text)}},
			Draft{Step: step, Data: protocol.StepCompleted{Record: record.Link, MS: 5, Status: protocol.StepOK}})
		parent, resumes = record.Link, record.Link
	}
	result := must(Encode(protocol.Result{Kind: protocol.KindResult, V: 1, Start: start.Link, Parents: []protocol.Link{parent}, Status: protocol.Done}))
	add([]Block{result}, Draft{Data: protocol.Finished{Status: protocol.Done, Result: result.Link}})
	return j
}

// randomText does not compress below the limit of blob files.
func randomText(n int) string {
	b := make([]byte, n)
	x := uint64(88172645463325252)
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = ' ' + byte(x>>32)%95
	}
	return string(b)
}
