package query

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/api"
	"wf/protocol"
	"wf/protocol/tree"
)

// A grove makes trees of files with texts, and keeps their blocks.
type grove map[protocol.Link][]byte

func (g grove) put(b tree.Block) error { g[b.Link] = b.Data; return nil }

func (g grove) read(l protocol.Link) ([]byte, error) {
	if b, ok := g[l]; ok {
		return b, nil
	}
	return nil, protocol.ErrNotFound
}

func (g grove) tree(t *testing.T, files map[string]string) string {
	t.Helper()
	var entries []tree.Entry
	for _, name := range slices.Sorted(maps.Keys(files)) {
		e := tree.Entry{Name: name, Mode: tree.File, Size: int64(len(files[name]))}
		var err error
		if e.Link, err = tree.Content(strings.NewReader(files[name]), e.Size, g.put); err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	blocks, err := tree.Encode(entries)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks {
		g[b.Link] = b.Data
	}
	return blocks[len(blocks)-1].Link.String()
}

// A mergedRun is a run in which a merge took over what visits did.
type mergedRun struct {
	grove
	l *api.Looks
}

// newMergedRun has a base, what each visit left in its copy, and what the merge found in the workspace, nil for the base. from are the
// visits from whose copies others went on.
func newMergedRun(t *testing.T, base map[string]string, found map[string]string, merged []string, from map[string]string, left map[string]map[string]string) *mergedRun {
	t.Helper()
	r := &mergedRun{grove{}, &api.Looks{Run: "R", Recorded: true}}
	b := r.tree(t, base)
	before := b
	if found != nil {
		before = r.tree(t, found)
	}
	var sides []protocol.Link
	for _, step := range slices.Sorted(maps.Keys(left)) {
		v := api.OwnVisit{Step: step, Seq: 5, Base: b, Tree: r.tree(t, left[step]), From: from[step]}
		r.l.Own = append(r.l.Own, v)
	}
	link := func(text string) protocol.Link {
		l, err := protocol.ParseLink(text)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	for _, step := range merged {
		if v := r.l.OwnOf(step); v != nil {
			sides = append(sides, link(v.Tree))
		}
	}
	root, _, err := tree.ThreeWay(r.read, r.put, link(b), sides)
	if err != nil {
		t.Fatal(err)
	}
	r.l.Own = append(r.l.Own, api.OwnVisit{Step: "merge#1", Seq: 9, Base: b, Tree: root.String(), Merged: merged})
	after := root.String()
	if found != nil { // what is not as in the base stays
		edits := map[string]tree.Entry{}
		for c, err := range tree.Diff(r.read, link(b), root) {
			if err != nil {
				t.Fatal(err)
			}
			if is, _ := tree.Find(r.read, link(before), c.Path); is.Link == c.Before.Link {
				edits[c.Path] = c.After
			}
		}
		l, err := tree.Edit(r.read, link(before), edits, r.put)
		if err != nil {
			t.Fatal(err)
		}
		after = l.String()
	}
	r.l.Looks = []api.Look{
		{Seq: 1, Phase: api.LookStart, By: []string{}, Tree: b},
		{Seq: 7, Phase: protocol.FilesBefore, Step: "merge#1", By: []string{api.Outside}, Tree: before},
		{Seq: 8, Phase: protocol.FilesAfter, Step: "merge#1", By: []string{"merge#1"}, Tree: after},
	}
	return r
}

func (r *mergedRun) blamed(t *testing.T, path string) string {
	t.Helper()
	b, err := Blame(r.read, r.l, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, l := range b.Lines {
		out = append(out, fmt.Sprintf("%s %s", l.Text, strings.Join(l.By, "|")))
	}
	return strings.Join(out, "; ")
}

// C-4: a line that a merge took over is blamed on the visit that wrote it; where that cannot be told, on the merge.
func TestC04MergedLinesAreBlamedOnTheirVisits(t *testing.T) {
	base := map[string]string{"f": "1\n2\n3\n4\n5\n", "g": "g\n"}
	left := map[string]map[string]string{
		"a#1[0]": {"f": "one\n2\n3\n4\n5\n", "g": "g\n", "n": "mine\n"},
		"a#1[1]": {"f": "1\n2\n3\n4\nfive\n", "g": "g\n", "n": "yours\n"},
		"a#1[2]": {"f": "1\n2\n3\n4\n5\n"},
		"a#1[3]": {"f": "one\n2\n3\n4\n5\n", "g": "g\n", "last": "x\n"},
	}
	all := []string{"a#1[0]", "a#1[1]", "a#1[2]", "a#1[3]"}
	r := newMergedRun(t, base, nil, all, nil, left)
	for path, want := range map[string]string{
		"f":    "one a#1[0]; 2 outside; 3 outside; 4 outside; five a#1[1]",
		"n":    "mine a#1[0]", // the other one is a conflict
		"last": "x a#1[3]",
	} {
		if d := cmp.Diff(want, r.blamed(t, path)); d != "" {
			t.Errorf("%s: %s", path, d)
		}
	}

	// The workspace changed meanwhile: what the merge left alone is not its work, and the rest is told.
	r = newMergedRun(t, base, map[string]string{"f": "1\n2\nthree\n4\n5\n", "g": "g\n"}, all, nil, left)
	for path, want := range map[string]string{"f": "1 outside; 2 outside; three outside; 4 outside; 5 outside", "n": "mine a#1[0]"} {
		if d := cmp.Diff(want, r.blamed(t, path)); d != "" {
			t.Errorf("%s, changed meanwhile: %s", path, d)
		}
	}

	// Another visit went on from the copy of the first.
	r = newMergedRun(t, base, nil, []string{"b#1"}, map[string]string{"b#1": "a#1"}, map[string]map[string]string{
		"a#1": {"f": "one\n2\n3\n4\n5\n", "g": "g\n"},
		"b#1": {"f": "one\n2\n3\n4\nfive\n", "g": "g\n"},
	})
	if d := cmp.Diff("one a#1; 2 outside; 3 outside; 4 outside; five b#1", r.blamed(t, "f")); d != "" {
		t.Error(d)
	}

	// What the visits left is not kept, or is not what was merged: nothing is guessed.
	for name, spoil := range map[string]func(*mergedRun){
		"dropped": func(r *mergedRun) {
			l, _ := protocol.ParseLink(r.l.Own[0].Tree)
			delete(r.grove, l)
		},
		"another": func(r *mergedRun) { r.l.Own[0].Tree = r.tree(t, map[string]string{"f": "other\n", "n": "other\n"}) },
		"unknown": func(r *mergedRun) { r.l.OwnOf("merge#1").Merged = []string{""} },
	} {
		r = newMergedRun(t, base, nil, all[:2], nil, left)
		spoil(r)
		if d := cmp.Diff("one merge#1; 2 outside; 3 outside; 4 outside; five merge#1", r.blamed(t, "f")); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}

	// Beside another visit it is one of them.
	r = newMergedRun(t, base, nil, all, nil, left)
	r.l.Looks[2].By = []string{"merge#1", "x#1"}
	if d := cmp.Diff("mine merge#1|x#1", r.blamed(t, "n")); d != "" {
		t.Error(d)
	}
}

// C-4: the files of a visit with an own copy are those that it found and left there.
func TestC04FilesOfOwnCopiesAreListed(t *testing.T) {
	r := newMergedRun(t, map[string]string{"f": "1\n", "g": "g\n"}, nil, []string{"a#1"}, nil, map[string]map[string]string{"a#1": {"f": "2\n", "n": "n\n"}})
	list, err := r.l.Files(r.read, "a#1", false)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range list.Files {
		got = append(got, strings.TrimSpace(f.Path+" "+f.Change+" "+strings.Join(f.By, "|")))
	}
	if d := cmp.Diff([]string{"f changed a#1", "g removed a#1", "n added a#1"}, got); d != "" {
		t.Error(d)
	}
	r.l.Own[0].Tree = "" // it has not ended, or not well
	if _, err := r.l.Of("a#1"); protocol.CodeOf(err) != protocol.ErrNotFound.Code || !strings.Contains(err.Error(), "recorded where it ends well") {
		t.Errorf("%v", err)
	}
	r.l.Looks = nil // nothing is recorded of the workspace
	if _, err := r.l.Of(""); !strings.Contains(fmt.Sprint(err), "but those of visits with own copies") {
		t.Errorf("%v", err)
	}
	if _, err := r.l.Of("merge#1"); err != nil {
		t.Errorf("%v", err)
	}
}

// C-3: which call changed a file cannot be told where the look before this one failed.
func TestC03ACallBehindALookThatFailedIsNotTold(t *testing.T) {
	l, read := versions(t, "1\n", "2\n", "3\n")
	l.Looks[1].Phase, l.Looks[1].Call, l.Looks[1].Tool, l.Looks[1].Tree, l.Looks[1].Failed = protocol.FilesCall, "c1", "shell", "", "no room"
	l.Looks[2].Phase, l.Looks[2].Call, l.Looks[2].Tool = protocol.FilesCall, "c2", "write_file"
	b, err := Blame(read, l, "f", nil)
	if err != nil || b.Lines[0].Tool != "" || b.Lines[0].Call != "" || len(b.Lines[0].By) != 2 {
		t.Errorf("%+v, %v", b, err)
	}
}
