package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/agentkit"
	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/engine/lang"
	"wf/protocol"
	"wf/roles"
	"wf/service/proof"
)

// compacting is a file of a workflow with an agent that compacts its conversation before visit 3 and inside
// of visit 4, and there the work of the visit too; replies.yaml is what its model says.
func compacting(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../../service/query/testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var errDead = errors.New("the process is gone")

// dying opens a store as a process that is gone n operations on disk after the first
// compaction was announced; n < 0 never is.
func dying(t *testing.T, dir string, n int) (s *cas.Store, arm func()) {
	t.Helper()
	var mu sync.Mutex
	armed, left := false, n
	s, err := cas.Open(t.Context(), dir, cas.Options{Before: func(cas.Op) error {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case !armed || n < 0:
			return nil
		case left <= 0:
			return errDead
		}
		left--
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, func() {
		mu.Lock()
		defer mu.Unlock()
		armed = true
	}
}

// TestB06AgentsKilledAroundCompactions kills the whole of agent, engine and store at points
// from the end of the second visit on: what is concluded, compacted and sent is the same.
func TestB06AgentsKilledAroundCompactions(t *testing.T) {
	t.Parallel()
	p, diags := lang.Load(compacting(t, "compacting.yaml"), lang.Options{File: "compacting.yaml"})
	if p == nil {
		t.Fatal(diags)
	}
	in, err := p.Inputs(nil)
	if err != nil {
		t.Fatal(err)
	}
	type result struct {
		Records, Summaries []string
		Calls              int
	}
	play := func(kill int) (out result, killed bool) {
		dir := t.TempDir()
		write(t, dir, "replies.yaml", string(compacting(t, "replies.yaml")))
		work := filepath.Join(dir, "work")
		if err := os.Mkdir(work, 0o777); err != nil {
			t.Fatal(err)
		}
		s, arm := dying(t, filepath.Join(dir, ".wf"), kill)
		e := &engine.Engine{Store: s, Performers: map[protocol.Action]roles.Performer{protocol.ActPrompt: agentkit.Agent{}, protocol.ActSet: roles.Set{}}}
		e.Watch = func(n api.Update) {
			if n.Entry != nil && n.Entry.Type == protocol.EvStepCompleted && n.Step == "coder#2" {
				arm()
			}
		}
		id, _, err := e.Begin(t.Context(), engine.Launch{Program: p, Source: compacting(t, "compacting.yaml"), Inputs: in,
			Workspace: work, File: filepath.Join(dir, "compacting.yaml")})
		if err != nil {
			t.Fatal(err)
		}
		_, err = e.Drive(t.Context(), id, engine.DriveOptions{})
		if killed = errors.Is(err, errDead); err != nil && !killed {
			t.Fatal(err)
		}
		s.Close() // whether or not it died under the drive, it may do so later
		e.Store, _ = dying(t, filepath.Join(dir, ".wf"), -1)
		if killed {
			if _, err := e.Drive(t.Context(), id, engine.DriveOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		r, err := e.Check(context.Background(), id, proof.Rebuilt)
		if err != nil || !r.OK() {
			t.Fatalf("killed after %d: %v %+v", kill, err, r)
		}
		v, err := e.View(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range v.Steps {
			if step.CID == nil {
				t.Fatalf("killed after %d: %s is %s (%s)", kill, step.ID, step.Status, v.Reason)
			}
			out.Records = append(out.Records, step.ID+" "+*step.CID)
			for _, c := range step.Compactions {
				out.Summaries = append(out.Summaries, step.ID+" "+string(c.Scope)+" "+c.Summary)
			}
		}
		out.Calls = v.Usage.Calls
		return out, killed
	}

	want, _ := play(-1)
	if d := cmp.Diff([]string{
		"coder#3 conversation ## Summary of the conversation so far\n\nOne try.",
		"coder#4 conversation ## Summary of the conversation so far\n\nTwo tries.",
		"coder#4 visit Both were written.",
	}, want.Summaries); d != "" {
		t.Fatal(d)
	}
	kills, stride := 0, 3
	if testing.Short() {
		stride = 7
	}
	for n := 0; n < 80; n += stride {
		got, killed := play(n)
		if killed {
			kills++
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("killed after %d: %s", n, d)
		}
	}
	if kills < 30/stride {
		t.Errorf("only %d runs were killed", kills)
	}
}
