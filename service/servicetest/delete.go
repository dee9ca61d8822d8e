package servicetest

import (
	"encoding/json"
	"slices"
	"testing"

	"wf/api"
	"wf/protocol"
)

// deletions deletes runs that have ended, and no others.
func deletions(t *testing.T, suite Suite) {
	s := suite.open(t)
	const request = "request of the run"
	start := api.Start{Workflow: "gate", RequestID: request, Inputs: map[string]json.RawMessage{"topic": json.RawMessage(`"rails"`)}}
	run, fresh, err := s.Start(t.Context(), start)
	if err != nil || !fresh {
		t.Fatalf("%v, %v", fresh, err)
	}
	park(t, s, run)
	fails(t, "a run that waits", second(s.Delete(t.Context(), run, api.Delete{})), protocol.ErrNotFinal)
	fork := must(s.Fork(t.Context(), run, api.Fork{Step: "gate#1", Hold: true}))(t).ID
	fails(t, "a run that was never driven", second(s.Delete(t.Context(), fork, api.Delete{})), protocol.ErrNotFinal)
	fails(t, "no run", second(s.Delete(t.Context(), "NOTHERE", api.Delete{})), protocol.ErrUnknownRun)
	archive := exported(t, s, run)
	if err := s.Cancel(t.Context(), run, "enough"); err != nil {
		t.Fatal(err)
	}
	dry := must(s.Delete(t.Context(), run, api.Delete{DryRun: true}))(t)
	if !dry.DryRun || !slices.Equal(dry.Runs, []protocol.RunID{run}) || len(dry.Held) != 1 || dry.Held[0].Name != string(fork) || dry.Held[0].Bytes < 500 {
		t.Errorf("it would delete %+v", dry)
	}
	shown(t, s, run)
	d := must(s.Delete(t.Context(), run, api.Delete{Why: "old data"}))(t)
	if d.DryRun || d.ID != run || !slices.Equal(d.Runs, []protocol.RunID{run}) || d.At == "" || d.By == "" || d.Why != "old data" || len(d.Held) != 1 {
		t.Errorf("it deleted %+v", d)
	}
	gone := protocol.ErrRunDeleted
	fails(t, "to show it", second(s.Run(t.Context(), run, api.Window{})), gone)
	fails(t, "its name", second(s.Resolve(t.Context(), string(run))), gone)
	fails(t, "to delete it again", second(s.Delete(t.Context(), run, api.Delete{})), gone)
	fails(t, "to fork it", second(s.Fork(t.Context(), run, api.Fork{Step: "gate#1"})), gone)
	fails(t, "to import it again", second(imported(t.Context(), s, archive, api.ImportOptions{})), gone)
	fails(t, "to resume it", s.Resume(t.Context(), run, api.Resume{}), gone)
	fails(t, "to follow it", s.Follow(t.Context(), run, api.Following{}, func(api.Update) error { return nil }), gone)
	_, fresh, err = s.Start(t.Context(), start)
	if fresh || err != nil && protocol.CodeOf(err) != gone.Code { // a hub remembers that the request was done
		t.Errorf("its request: %v, %v", fresh, err)
	}
	if p, err := s.List(t.Context(), api.Query{}); err != nil || len(p.Items) != 1 || p.Items[0].ID != fork {
		t.Errorf("%+v, %v", p.Items, err)
	}
	if v := shown(t, s, fork); len(v.Steps) != 1 || v.Steps[0].ID != "first#1" {
		t.Errorf("the fork has %d steps", len(v.Steps))
	}
}
