package daemon_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"wf/api"
	"wf/daemon"
	"wf/hub/relay"
	"wf/protocol"
)

// A hub hears which runs came from elsewhere, and nothing of the requests that started them there; a sub-workflow is as
// the run that it is a part of.
func TestAHubHearsWhichRunsCameFromElsewhere(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"child.yaml":  "wf: 1\nname: child\nroles:\n  gate: {ask: \"Go on?\"}\n",
		"parent.yaml": "wf: 1\nname: parent\nroles:\n  sub: {workflow: child.yaml}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d := serving(t, dir)
	s := d.Service
	run, _, err := s.Start(t.Context(), api.Start{Workflow: "parent", RequestID: "job1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Follow(t.Context(), run, api.Following{Until: api.Parked}, func(api.Update) error { return nil }); err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if err := s.Export(t.Context(), run, api.ExportOptions{}, &archive); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Import(t.Context(), &archive, api.ImportOptions{Run: "copy"}); err != nil {
		t.Fatal(err)
	}
	runs, err := daemon.ToldToHubs(t.Context(), d)
	if err != nil || len(runs) != 3 {
		t.Fatalf("%v, %v", runs, err)
	}
	for _, r := range runs {
		want := relay.Run{ID: r.ID, HeadSeq: r.HeadSeq, HeadCID: r.HeadCID}
		switch r.ID {
		case protocol.RunID("copy"):
			want.Foreign = true
		case run:
			want.RequestID = "job1"
		}
		r.Busy = false
		if r != want {
			t.Errorf("told %+v, want %+v", r, want)
		}
	}
}
