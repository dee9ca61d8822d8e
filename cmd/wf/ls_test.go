package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"wf/api"
	"wf/cas"
	"wf/protocol"
)

// A run that cannot be read is told of, and hides none of the others.
func TestADamagedRunHidesNoOther(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	write(t, p.dir, "quick.yaml", "wf: 1\nname: quick\nroles: {quick: {run: echo quick, timeout: 1m}}\n")
	p.wf(0, "run", "quick.yaml", "-q")
	s, err := cas.Open(t.Context(), filepath.Join(p.dir, ".wf"), cas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	none := cas.Raw([]byte("no event"))
	err = s.Commit(t.Context(), cas.Batch{Blocks: []cas.Block{none}, Moves: []cas.Move{{
		Name: protocol.RunHead("BROKEN"), New: none.Link, Events: []cas.EventRef{{Seq: 1, CID: none.Link}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	if out := p.wf(7, "ls"); !strings.Contains(string(out), "quick") {
		t.Errorf("wf ls:\n%s", out)
	}
	if out := p.wf(0); !strings.Contains(string(out), "quick") {
		t.Errorf("wf:\n%s", out)
	}
	var list struct {
		Items []api.Row `json:"items"`
	}
	if err := json.Unmarshal(p.wf(7, "ls", "-o", "json"), &list); err != nil || len(list.Items) != 1 {
		t.Errorf("wf ls -o json: %+v, %v", list, err)
	}
	if out := p.wf(7, "verify"); !strings.Contains(string(out), "BROKEN") {
		t.Errorf("wf verify:\n%s", out)
	}
}
