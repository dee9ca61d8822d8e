package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"wf/api"
	"wf/cmd/internal/render"
	"wf/engine"
	"wf/protocol"
	"wf/service"
	"wf/store"
)

// A forkedGolden says where the run of a golden is forked, and what is changed for a fork under
// another definition.
type forkedGolden struct {
	golden, version string
	at              string // the step that is performed anew
	old, changed    string // a text of workflow.yaml
	goesOn, from    string // a visit of the fork whose messages begin with those of an inherited one
}

// Runs of every format and of each semantics are forked in their middle by today's program. The
// fork keeps the format that the run pins: what its agents read is, byte for byte, what they had
// read. Under the same definition it comes to the same records.
func TestAForkOfAnOldRunKeepsItsFormat(t *testing.T) {
	oneAfterAnother(t)
	for _, f := range []forkedGolden{
		{"agent", "f1s1", "coder#2", "Round ${{ edge.visit }}:", "Once more, round ${{ edge.visit }}:", "coder#2", "coder#1"},
		{"compaction", "f1s1", "coder#2", `"Round ${{ edge.visit }}."`, `"Turn ${{ edge.visit }}."`, "coder#2", "coder#1"},
		{"task", "f1s1", "a#2", "Write page", "Now write page", "", ""},
		{"fan-out-again", "f1s2", "end#2", "Another ${{ edge.visit }}.", "And another ${{ edge.visit }}.", "", ""},
		{"agent", "f2s1", "coder#2", "Round ${{ edge.visit }}:", "Once more, round ${{ edge.visit }}:", "coder#2", "coder#1"},
	} {
		t.Run(f.golden+"/"+f.version, func(t *testing.T) {
			g := openGolden(t, filepath.Join("..", "..", "testdata", "golden", f.golden))
			t.Run("as it is", func(t *testing.T) { f.asItIs(t, g) })
			t.Run("under another definition", func(t *testing.T) { f.changes(t, g) })
		})
	}
}

func (f forkedGolden) asItIs(t *testing.T, g *golden) {
	w := g.workspace(t)
	run := g.imported(t, w, f.version)
	want, got := w.concluded(t, run, true), w.concluded(t, w.forked(t, run, f.at), true)
	got.Run, got.Head = want.Run, want.Head
	g.same(t, "a fork at "+f.at, want, got, nil)
	w.holds(t)
}

func (f forkedGolden) changes(t *testing.T, g *golden) {
	w := g.workspace(t)
	run := g.imported(t, w, f.version)
	source := string(readGolden(t, filepath.Join(w.dir, "workflow.yaml")))
	if !strings.Contains(source, f.old) {
		t.Fatalf("the definition does not say %q", f.old)
	}
	write(t, w.dir, "other.yaml", strings.Replace(source, f.old, f.changed, 1))
	fork := w.forked(t, run, f.at, "--with", "other.yaml")

	before, after := w.concluded(t, run, true), w.concluded(t, fork, true)
	inherited := before.order[:slices.Index(before.order, f.at)]
	for _, step := range inherited {
		if a, b := before.Steps[step], after.Steps[step]; b == nil || a.CID != b.CID {
			t.Errorf("%s: the fork has %+v, the run %+v", step, b, a)
		}
		if before.Steps[step].Prompt == "" {
			continue
		}
		if a, b := w.must(t, "messages", run+":"+step, "-o", "json"), w.must(t, "messages", fork+":"+step, "-o", "json"); a != b {
			t.Errorf("%s was sent\n%s\nand in the fork it reads\n%s", step, a, b)
		}
	}
	fresh := after.Steps[f.at]
	if fresh == nil || fresh.CID == before.Steps[f.at].CID {
		t.Errorf("%s is %+v in the fork, as in the run", f.at, fresh)
	}
	old, now := w.start(t, before.Steps[f.at].CID), w.start(t, fresh.CID)
	if now.Format != old.Format || now.Semantics != old.Semantics || now.Workflow == old.Workflow {
		t.Errorf("the run pins %+v, the fork %+v", old, now)
	}
	if f.goesOn != "" {
		var a, b api.Prompt
		w.json(t, &a, "messages", run+":"+f.from, "-o", "json")
		w.json(t, &b, "messages", fork+":"+f.goesOn, "-o", "json")
		if len(b.Messages) <= len(a.Messages) || !slices.EqualFunc(a.Messages, b.Messages[:len(a.Messages)], equalMessages) {
			t.Errorf("%s was sent\n%v\nand %s of the fork goes on with\n%v", f.from, a.Messages, f.goesOn, b.Messages)
		}
	}
	w.holds(t)
}

func equalMessages(a, b protocol.Message) bool { return a.Role == b.Role && a.Content == b.Content }

// forked makes a fork, in which the step is performed anew, and goes on with it to its end.
func (w *goldenPlace) forked(t *testing.T, run, step string, args ...string) string {
	t.Helper()
	replies := filepath.Join(w.dir, "replies.yaml")
	if _, err := os.Stat(replies); err == nil && len(args) == 0 {
		return w.forkedWith(t, run, step, "script/"+replies)
	}
	var v api.Run
	w.json(t, &v, append([]string{"fork", "-o", "json", "--dir", w.dir, run + ":" + step}, args...)...)
	w.must(t, "store", "adopt", string(v.ID), "--yes") // as the run, it came from elsewhere
	w.must(t, "resume", string(v.ID))
	return string(v.ID)
}

// forkedWith is forked where the replies that the run names beside its own file are gone.
func (w *goldenPlace) forkedWith(t *testing.T, run, step, model string) string {
	t.Helper()
	a := newAppOn(strings.NewReader(""), &render.Screen{Writer: io.Discard}, &render.Screen{Writer: io.Discard})
	var id protocol.RunID
	err := a.WithStore(t.Context(), func(s store.Store) error {
		at, err := service.ForkPoint(t.Context(), s, protocol.RunID(run), step, false)
		if err != nil {
			return err
		}
		o := engine.ForkOptions{At: at, Dir: w.dir, By: "golden", Models: map[string][]string{"": {model}}}
		id, err = a.Engine(s, nil).Fork(t.Context(), protocol.RunID(run), o)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	w.must(t, "store", "adopt", string(id), "--yes") // as the run, it came from elsewhere
	w.must(t, "resume", string(id))
	return string(id)
}

// holds proves the whole store, and decides and renders its runs again.
func (w *goldenPlace) holds(t *testing.T) {
	t.Helper()
	w.must(t, "verify", "--all")
	for _, run := range []string{"-1", "-2"} {
		w.must(t, "replay", run, "--check")
	}
}

// pins is what the Start of a record says.
type pins struct {
	Format, Semantics int
	Workflow          protocol.Link
}

func (w *goldenPlace) start(t *testing.T, record string) pins {
	t.Helper()
	var step struct{ Node struct{ Start protocol.Link } }
	w.json(t, &step, "cas", "show", record, "-o", "json")
	var start struct{ Node pins }
	w.json(t, &start, "cas", "show", step.Node.Start.String(), "-o", "json")
	return start.Node
}
