package render

import (
	"bytes"
	"strings"
	"testing"

	"wf/api"
	"wf/protocol"
)

// Below a run stands where words of a search occur, whatever a server says there; and which runs are not searched yet.
func TestHitsStandBelowTheirRun(t *testing.T) {
	var out, err bytes.Buffer
	p := &Printer{Out: &Screen{Writer: &out}, Err: &Screen{Writer: &err}, Format: "human"}
	page := &api.Page{Items: []api.Row{
		{ID: "A", Workflow: "first", Status: protocol.Done, Hits: []api.Hit{{Step: "say#1", Kind: "answer", Text: "of \x1b[2Jzeppelins\nand more"}, {Kind: "title", Text: "Rails"}}},
		{ID: "B", Workflow: "second", Status: protocol.Done, Hits: []api.Hit{{Step: "say#1", Kind: "prompt", Text: strings.Repeat("long ", 100), Run: "C"}}},
	}, Searched: &api.Searched{Runs: 7, Behind: 3, UpTo: "2026-05-01T12:00:00.000000Z"}}
	if err := p.ShowRuns(page, true); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 6 || !strings.HasPrefix(lines[1], "A ") || !strings.HasPrefix(lines[4], "B ") || lines[3] != "    title: Rails" ||
		!strings.HasPrefix(lines[2], "    say#1 answer: of ") || !strings.HasPrefix(lines[5], "    C:say#1 prompt: long ") || len(lines[5]) > 230 || strings.Contains(out.String(), "\x1b") {
		t.Errorf("%q", lines)
	}
	if want := "searched up to 2026-05-01T12:00:00.000000Z; still to be indexed: 3 of 10 runs\n"; err.String() != want {
		t.Errorf("%q, want %q", err.String(), want)
	}
	err.Reset()
	for _, s := range []*api.Searched{nil, {Runs: 2}} {
		if e := p.ShowRuns(&api.Page{Items: page.Items, Searched: s}, true); e != nil || err.Len() > 0 {
			t.Errorf("%+v: %q, %v", s, err.String(), e)
		}
	}
	if e := p.ShowRuns(&api.Page{Searched: &api.Searched{Behind: 1}}, true); e != nil || !strings.HasPrefix(err.String(), "still to be indexed: 1 of 1 run\n") {
		t.Errorf("%q, %v", err.String(), e)
	}
}
