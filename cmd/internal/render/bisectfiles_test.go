package render

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"wf/api"
	"wf/protocol"
)

// told is what ShowBisectFiles writes.
func told(t *testing.T, b *api.BisectFiles) (out, err string) {
	t.Helper()
	var o, e bytes.Buffer
	p := &Printer{Out: &Screen{Writer: &o}, Err: &Screen{Writer: &e}}
	if err := p.ShowBisectFiles(b); err != nil {
		t.Fatal(err)
	}
	return o.String(), e.String()
}

// M-4: of the files that differ a screen shows some, and of their lines.
func TestM04AnswersFitAScreen(t *testing.T) {
	for _, c := range []struct {
		files, lines int // of each
		more         string
		shown        int
	}{
		{bisectFilesShown - 1, 1, "", bisectFilesShown - 1},
		{bisectFilesShown, 1, "", bisectFilesShown},
		{bisectFilesShown + 1, 1, "and 1 more", bisectFilesShown},
		{1, bisectLinesShown - 1, "", bisectLinesShown - 1},
		{1, bisectLinesShown, "", bisectLinesShown},
		{1, bisectLinesShown + 1, "…", bisectLinesShown},
		{3, bisectLinesShown, "", bisectLinesShown},
	} {
		d := &api.FilesDiff{}
		for i := range c.files {
			d.Files = append(d.Files, api.FileDiff{Path: fmt.Sprint("f", i), Change: "added", Unified: strings.Repeat("+line\n", c.lines)})
		}
		out, _ := told(t, &api.BisectFiles{Run: "R", Complete: true, By: []string{"a#1"}, Bad: api.Look{Step: "a#1"}, Diff: d})
		if n := strings.Count(out, "+line"); n != c.shown && c.lines > 1 || c.more != "" && !strings.Contains(out, c.more) || c.more == "" && (strings.Contains(out, "…") || strings.Contains(out, " more")) {
			t.Errorf("%d files of %d lines: %d lines in\n%s", c.files, c.lines, n, out)
		}
	}
}

// M-4: what cannot be told is said, and commands that could not work are not offered.
func TestM04AnswersSayWhatTheyKnow(t *testing.T) {
	good := api.Look{Phase: api.LookStart, Tree: "T"}
	bad := api.Look{Step: "a#1", Phase: protocol.FilesCall, Seq: 7, Attempt: 2}
	d := &api.FilesDiff{Files: []api.FileDiff{{Path: "\x1b[31m", Unified: "+x\n"}, {Path: "a\nb", Unified: "+x\n"}}}
	for want, b := range map[string]*api.BisectFiles{
		"✓ a#1 broke the check: its call of shell (event 7)\n": {By: []string{"a#1"}, Tool: "shell"},
		"✓ a#1 broke the check\n":                              {By: []string{"a#1"}},
		"✓ a change from outside broke the check, between the start of the run and a#1, after a tool call, attempt 2 (event 7)": {By: []string{api.Outside}},
		"✓ one of a#1, b#1 broke the check, between":                      {By: []string{"a#1", "b#1"}},
		"✓ b#1[2] broke the check, when m#1 took over its changes\n":      {By: []string{"b#1[2]"}, Merge: "m#1"},
		"2 looks between them cannot be told\n  it was one of a#1, b#1\n": {By: []string{"a#1", "b#1"}, Untold: 2},
	} {
		b.Run, b.Complete, b.Good, b.Bad, b.Diff, b.Check = "R", true, good, bad, d, "x"
		out, more := told(t, b)
		if !strings.Contains(out, want) {
			t.Errorf("want %q in\n%s", want, out)
		}
		if strings.Contains(more, "wf blame") || strings.ContainsAny(out+more, "\x1b") {
			t.Errorf("%q\n%q", out, more)
		}
		if step := len(b.By) == 1 && b.By[0] != api.Outside; strings.Contains(more, "wf diff") != step {
			t.Errorf("%v: %s", b.By, more)
		}
	}
	out, more := told(t, &api.BisectFiles{Good: good, Bad: bad})
	if !strings.HasPrefix(out, "not found yet: between the start of the run and a#1") || more != "" {
		t.Errorf("%s%s", out, more)
	}
}
