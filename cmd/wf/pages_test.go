package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/api"
	"wf/protocol"
)

// longRun runs 2,400 steps of a workflow in a directory of its own.
func longRun(t *testing.T) (dir string, run protocol.RunID) {
	t.Helper()
	dir = t.TempDir()
	yaml := `wf: 1
name: long
limits: {steps: 3000}
roles:
  tick: {set: {n: "${{ (steps.tick?.output.n ?? 0) + 1 }}"}}
edges:
  - {from: START, to: tick}
  - {from: tick, to: END, when: output.n >= 2400}
  - {from: tick, to: tick, limit: 3000}
`
	if err := os.WriteFile(filepath.Join(dir, "long.yaml"), []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := wfIn(dir, "run", "long.yaml", "--quiet", "-o", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var v api.Run
	if err := json.Unmarshal(out, &v); err != nil || len(v.Steps) != 2400 || v.Total != 0 || v.Earlier != 0 {
		t.Fatalf("%v: wf run -o json has %d steps, total %d, earlier %d", err, len(v.Steps), v.Total, v.Earlier)
	}
	return dir, v.ID
}

func ids(steps []*api.Step) []string {
	var out []string
	for _, s := range steps {
		out = append(out, s.ID)
	}
	return out
}

// The steps of a long run come in pages over HTTP, and all of them with wf show -o json, here and
// through a server.
func TestALongRunComesInPages(t *testing.T) {
	oneAfterAnother(t)
	t.Parallel()
	dir, run := longRun(t)
	wf := func(args ...string) string {
		out, err := wfIn(dir, args...).Output()
		if err != nil {
			t.Fatalf("wf %s: %v", strings.Join(args, " "), err)
		}
		return string(out)
	}
	s := startServe(t, dir)
	page := func(query string) (v api.Run) {
		if status := s.call("GET", "/v1/runs/"+string(run)+query, nil, &v); status != http.StatusOK {
			t.Fatalf("GET %s: %d", query, status)
		}
		return v
	}
	var want []string
	for i := range 2400 {
		want = append(want, fmt.Sprintf("tick#%d", i+1))
	}
	var got []string
	v := page("")
	for pages := 1; ; pages++ {
		if v.Total != 2400 || v.Status != protocol.Done {
			t.Errorf("page %d: %s, %d steps in all", pages, v.Status, v.Total)
		}
		got = append(ids(v.Steps), got...)
		if v.Earlier == 0 {
			if pages != 3 {
				t.Errorf("%d pages, want 3", pages)
			}
			break
		}
		v = page(fmt.Sprintf("?before=%d", v.Earlier))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("steps of all pages (-want +got):\n%s", diff)
	}
	if v := page("?limit=7"); cmp.Diff(want[2393:], ids(v.Steps)) != "" {
		t.Errorf("limit=7 gives %v", ids(v.Steps))
	}

	local, remote := wf("show", string(run), "-o", "json"), wf("show", string(run), "-o", "json", "--hub", s.said.Listen[0].URL)
	var a, b any
	if err := json.Unmarshal([]byte(local), &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(remote), &b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("wf show -o json (-here +through the server):\n%s", diff)
	}
	shown := wf("show", string(run))
	if n := strings.Count(shown, " tick#"); n != 200 || !strings.Contains(shown, "200 of 2400 steps") || strings.Contains(shown, "tick#2200 ") {
		t.Errorf("wf show has %d steps:\n%.500s", n, shown)
	}
	if remote := wf("show", string(run), "--hub", s.said.Listen[0].URL); unplaced(remote) != shown {
		t.Errorf("wf show here:\n%.500s\nthrough the server:\n%.500s", shown, remote)
	}
	_, rest, _ := strings.Cut(shown, "--before ")
	before, _, _ := strings.Cut(rest, " ")
	if earlier := wf("show", string(run), "--before", before, "--limit", "3"); strings.Count(earlier, " tick#") != 3 || !strings.Contains(earlier, "tick#2200 ") {
		t.Errorf("wf show --before %s --limit 3:\n%s", before, earlier)
	}
}
