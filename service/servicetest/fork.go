package servicetest

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"wf/api"
	"wf/protocol"
)

// forks makes forks of a run of the store's own.
func forks(t *testing.T, suite Suite) {
	s := suite.open(t)
	run := begin(t, s, "roads")
	held := must(s.Fork(t.Context(), run, api.Fork{Step: "gate#1", Note: "again", Hold: true, Limits: map[string]json.RawMessage{"steps": json.RawMessage("50"), "duration": json.RawMessage(`"30m"`)}}))(t)
	v := shown(t, s, held.ID)
	if v.Status != protocol.Running || v.Idle != api.NotStarted || v.Seq != held.Seq || v.Foreign || len(v.Steps) != 1 || v.Info.ForkedFrom == nil {
		t.Errorf("a fork that is held: %s %s at %d, want %d; %d steps, foreign is %v", v.Status, v.Idle, v.Seq, held.Seq, len(v.Steps), v.Foreign)
	}
	for _, text := range []string{"again", "steps", "duration"} {
		if !says(t, s, held.ID, text) {
			t.Errorf("no event of the fork says %q", text)
		}
	}
	if err := s.Resume(t.Context(), held.ID, api.Resume{}); err != nil {
		t.Fatal(err)
	}
	if v := park(t, s, held.ID); v.Status != protocol.Waiting || len(v.Waiting) != 1 || v.Waiting[0].Step != "gate#1" {
		t.Errorf("resumed it is %s", v.Status)
	}
	on := must(s.Fork(t.Context(), run, api.Fork{Step: "first#1", After: true}))(t)
	if v := park(t, s, on.ID); v.Status != protocol.Waiting || v.Seq <= on.Seq {
		t.Errorf("a fork that goes on is %s at %d, and began at %d", v.Status, v.Seq, on.Seq)
	}
	end := must(s.Fork(t.Context(), run, api.Fork{Hold: true}))(t)
	if v := shown(t, s, end.ID); len(v.Steps) != 1 || v.Info.ForkOf == nil || v.Info.ForkOf.Seq != shown(t, s, on.ID).Info.ForkOf.Seq {
		t.Errorf("a fork at the end is after event %+v, that after the step that ended last after %+v", v.Info.ForkOf, shown(t, s, on.ID).Info.ForkOf)
	}
	for _, test := range []struct {
		what string
		run  protocol.RunID
		fork api.Fork
		want *protocol.Error
	}{
		{"of no run", "NOTHERE", api.Fork{Step: "gate#1"}, protocol.ErrUnknownRun},
		{"at no step", run, api.Fork{Step: "gate#9"}, protocol.ErrUnknownStep},
		{"behind a step that waits", run, api.Fork{Step: "gate#1", After: true}, protocol.ErrUsage},
		{"with no limit", run, api.Fork{Step: "gate#1", Limits: map[string]json.RawMessage{"steps": json.RawMessage("0")}}, protocol.ErrUsage},
		{"with models for no agent", run, api.Fork{Step: "gate#1", Models: map[string]api.ModelList{"gate": {"m"}}}, protocol.ErrUsage},
	} {
		fails(t, "a fork "+test.what, second(s.Fork(t.Context(), test.run, test.fork)), test.want)
	}
	if p, err := s.List(t.Context(), api.Query{}); err != nil || len(p.Items) != 4 {
		t.Errorf("%d runs, %v", len(p.Items), err)
	}
}

// says reports whether an event of a run has a text in it.
func says(t *testing.T, s Service, run protocol.RunID, text string) (found bool) {
	t.Helper()
	err := s.Follow(t.Context(), run, api.Following{}, func(u api.Update) error {
		found = found || u.Entry != nil && bytes.Contains(u.Entry.Raw, []byte(text))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// foreign imports a run. It does not go on, and neither does a fork of it; it is forked to be shown.
func foreign(t *testing.T, suite Suite) {
	from, s := suite.open(t), suite.open(t)
	run := begin(t, from, "roads")
	must(imported(t.Context(), s, exported(t, from, run), api.ImportOptions{}))(t)
	fails(t, "resume it", s.Resume(t.Context(), run, api.Resume{}), protocol.ErrForeign)
	fails(t, "fork it and go on", second(s.Fork(t.Context(), run, api.Fork{Step: "gate#1"})), protocol.ErrForeign)
	made := must(s.Fork(t.Context(), run, api.Fork{Step: "gate#1", Hold: true}))(t)
	if v := shown(t, s, made.ID); !v.Foreign {
		t.Error("its fork is the user's own")
	}
	fails(t, "resume the fork", s.Resume(t.Context(), made.ID, api.Resume{}), protocol.ErrForeign)
}

// runs is a definition that runs a command, with a sub-workflow.
const runs = `wf: 1
name: gate
inputs: {topic: {type: string, default: roads}}
limits: {steps: 20}
defaults: {timeout: 1m}
roles:
  first: {set: {said: "x"}}
  gate: {ask: "Really?"}
  sub: {workflow: sub/calm.yaml}
  act: {run: "true"}
edges:
  - {from: START, to: first}
  - {from: first, to: gate}
  - {from: gate, to: sub}
  - {from: sub, to: act}
  - {from: act, to: END}
`

// definitions goes on under another definition. What a client brings is not trusted: a fork under one that runs
// commands is made, and does not go on.
func definitions(t *testing.T, suite Suite) {
	s := suite.open(t)
	run := begin(t, s, "roads")
	at := filepath.Join(t.TempDir(), "new.yaml")
	sub := filepath.Join(filepath.Dir(at), "sub", "calm.yaml")
	calm := &api.Definition{File: at, Source: strings.Replace(gate, "Go on?", "Really?", 1)}
	made := must(s.Fork(t.Context(), run, api.Fork{Step: "gate#1", With: calm}))(t)
	if v := park(t, s, made.ID); v.Status != protocol.Waiting || v.Waiting[0].Question != "Really?" || v.Info.File != at || v.Foreign {
		t.Errorf("a fork under what has no powers is %s, foreign is %v, file %s", v.Status, v.Foreign, v.Info.File)
	}
	acts := &api.Definition{File: at, Source: runs, Files: map[string]string{filepath.ToSlash(sub): "wf: 1\nname: calm\nroles: {one: {set: {a: 1}}}\n"}}
	held := must(s.Fork(t.Context(), run, api.Fork{Step: "gate#1", With: acts, Hold: true}))(t)
	if v := shown(t, s, held.ID); v.Foreign != suite.Remote {
		t.Errorf("a fork under what runs commands: foreign is %v", v.Foreign)
	}
	on, err := s.Fork(t.Context(), run, api.Fork{Step: "gate#1", With: acts})
	if suite.Remote {
		fails(t, "going on under what runs commands", err, protocol.ErrUntrusted)
		fails(t, "resuming it", s.Resume(t.Context(), held.ID, api.Resume{}), protocol.ErrForeign)
	} else if err != nil {
		t.Error(err)
	} else if v := park(t, s, on.ID); v.Status != protocol.Waiting {
		t.Errorf("it is %s", v.Status)
	}
	for what, x := range map[string]*api.Definition{
		"no workflow":                   {File: at, Source: "a: b"},
		"a file at no absolute path":    {File: "new.yaml", Source: gate},
		"a sub-workflow that is absent": {File: at, Source: runs},
	} {
		fails(t, what, second(s.Fork(t.Context(), run, api.Fork{Step: "gate#1", With: x, Hold: true})), protocol.ErrInvalid)
	}
}
