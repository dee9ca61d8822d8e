package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"wf/api"
	"wf/cmd/internal/render"
	"wf/protocol"
)

// goldenExpected is what a golden led to: at its end, and where its store was kept.
type goldenExpected struct {
	Kept *goldenRun `json:"kept,omitempty"`
	End  *goldenRun `json:"end"`
}

// A goldenRun is what a run has concluded, and what its agents were sent.
type goldenRun struct {
	Run     string                 `json:"run,omitempty"`  // of a child "": that is by chance
	Head    string                 `json:"head,omitempty"` // likewise
	Status  protocol.RunStatus     `json:"status"`
	Result  string                 `json:"result,omitempty"`
	Outputs any                    `json:"outputs,omitempty"`
	Waiting []string               `json:"waiting,omitempty"` // step, kind and question
	Steps   map[string]*goldenStep `json:"steps"`
	order   []string               // of the steps, as they began
}

type goldenStep struct {
	Status string     `json:"status"`
	CID    string     `json:"cid,omitempty"`    // of its record; "" while it is open
	Prompt string     `json:"prompt,omitempty"` // digest of what an agent was sent first
	Bytes  int        `json:"bytes,omitempty"`  // of its text
	Child  *goldenRun `json:"child,omitempty"`  // of a sub-workflow
}

// withoutChildren is o where only the run itself is known.
func (o *goldenRun) withoutChildren() *goldenRun {
	own := *o
	own.Steps = map[string]*goldenStep{}
	for id, s := range o.Steps {
		step := *s
		step.Child = nil
		own.Steps[id] = &step
	}
	return &own
}

// A goldenPlace is a directory with a store of its own, and the program that works in it.
type goldenPlace struct {
	dir string
	wf  func(args ...string) (stdout, stderr string, exit int)
}

// wfHere performs a command line in this process.
func wfHere(args ...string) (stdout, stderr string, exit int) {
	var out, err lockedBuffer
	a := newAppOn(strings.NewReader(""), &render.Screen{Writer: &out}, &render.Screen{Writer: &err})
	root := newRoot(a)
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetArgs(latestRefs(root, args))
	exit = a.finish(root.Execute())
	return out.String(), err.String(), exit
}

// lockedBuffer takes what several goroutines write, as a file does.
type lockedBuffer struct {
	sync.Mutex
	b bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.Lock()
	defer l.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.Lock()
	defer l.Unlock()
	return l.b.String()
}

// must performs a command that has to succeed.
func (w *goldenPlace) must(t *testing.T, args ...string) string {
	t.Helper()
	stdout, stderr, exit := w.wf(args...)
	if exit != 0 {
		t.Fatalf("wf %s: exit %d\n%s%s", strings.Join(args, " "), exit, stdout, stderr)
	}
	return stdout
}

func (w *goldenPlace) json(t *testing.T, into any, args ...string) {
	t.Helper()
	answer := w.must(t, args...)
	if err := json.Unmarshal([]byte(answer), into); err != nil {
		t.Fatalf("wf %s: %v\n%s", strings.Join(args, " "), err, answer)
	}
}

// concluded asks the program for what a run has concluded.
func (w *goldenPlace) concluded(t *testing.T, run string, children bool) *goldenRun {
	t.Helper()
	var v api.Run
	w.json(t, &v, "show", run, "-o", "json")
	o := &goldenRun{Run: string(v.ID), Head: v.Head, Status: v.Status, Steps: map[string]*goldenStep{}}
	if v.Result != nil {
		o.Result = *v.Result
	}
	if err := json.Unmarshal(v.Outputs, &o.Outputs); len(v.Outputs) > 0 && err != nil {
		t.Fatal(err)
	}
	for _, q := range v.Waiting {
		o.Waiting = append(o.Waiting, fmt.Sprintf("%s %s %s", q.Step, q.Kind, q.Question))
	}
	for _, s := range v.Steps {
		step := &goldenStep{Status: s.Status, Bytes: len(s.Text)}
		if s.CID != nil {
			step.CID = *s.CID
		}
		if s.Action == protocol.ActPrompt {
			var m api.Prompt
			w.json(t, &m, "messages", string(v.ID)+":"+s.ID, "-o", "json")
			step.Prompt = m.Digest
		}
		if s.Child != "" && children {
			step.Child = w.concluded(t, string(s.Child), true)
			step.Child.Run, step.Child.Head = "", ""
		}
		o.Steps[s.ID] = step
		o.order = append(o.order, s.ID)
	}
	return o
}

// version names what the Start of the latest run pins: f1s1 is format 1 with semantics 1.
func (w *goldenPlace) version(t *testing.T) string {
	t.Helper()
	var journal struct {
		Items []struct{ Data struct{ Start protocol.Link } }
	}
	w.json(t, &journal, "replay", "-1", "-o", "json")
	var start struct {
		Node struct{ Format, Semantics int }
	}
	w.json(t, &start, "cas", "show", journal.Items[0].Data.Start.String(), "-o", "json")
	return fmt.Sprintf("f%ds%d", start.Node.Format, start.Node.Semantics)
}

// block is a record as JSON, nil where the store does not hold it.
func (w *goldenPlace) block(t *testing.T, cid string) any {
	t.Helper()
	t.Chdir(w.dir)
	stdout, _, exit := w.wf("cas", "show", cid, "-o", "json")
	var b struct{ Node any }
	if exit != 0 || json.Unmarshal([]byte(stdout), &b) != nil {
		return nil
	}
	return b.Node
}
