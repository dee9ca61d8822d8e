package query

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/api"
	"wf/protocol"
	"wf/protocol/tree"
)

// versions are looks at a workspace with one file f, whose texts are given; "" is none, and a text that begins with ! omits it.
func versions(t *testing.T, texts ...string) (*api.Looks, tree.Read) {
	t.Helper()
	blocks := map[protocol.Link][]byte{}
	l := &api.Looks{Run: "R", Recorded: true}
	for i, text := range texts {
		e := tree.Entry{Name: "f", Mode: tree.File, Size: int64(len(text))}
		entries := []tree.Entry{e}
		switch {
		case text == "":
			entries = nil
		case text[0] == '!':
			entries[0] = tree.Entry{Name: "f", Mode: tree.Omitted, Size: 1, Why: text[1:]}
		default:
			link, err := tree.Content(strings.NewReader(text), e.Size, func(b tree.Block) error { blocks[b.Link] = b.Data; return nil })
			if err != nil {
				t.Fatal(err)
			}
			entries[0].Link = link
		}
		made, err := tree.Encode(entries)
		if err != nil {
			t.Fatal(err)
		}
		root := made[len(made)-1]
		blocks[root.Link] = root.Data
		x := api.Look{Seq: protocol.Seq(i + 1), Phase: protocol.FilesAfter, Step: fmt.Sprintf("s#%d", i), By: []string{fmt.Sprintf("s#%d", i)}, Tree: root.Link.String()}
		if i == 0 {
			x.Phase, x.Step, x.By = api.LookStart, "", []string{}
		}
		l.Looks = append(l.Looks, x)
	}
	return l, func(link protocol.Link) ([]byte, error) {
		if b, ok := blocks[link]; ok {
			return b, nil
		}
		return nil, protocol.ErrNotFound
	}
}

// C-3: each line belongs to the visit behind which it was there first.
func TestC03LinesAreBlamed(t *testing.T) {
	for _, x := range []struct {
		texts []string
		now   string
		want  string
	}{
		{[]string{"a\nb\n"}, "", "outside outside"},
		{[]string{"a\nb\nc\n", "a\nB\nc\n", "a\nB\nc\nd\n"}, "", "outside s#1 outside s#2"},
		{[]string{"a\nb\n", "x\na\nb\n", "a\nb\n"}, "", "outside outside"},
		{[]string{"", "a\nb", "a\nb\n"}, "", "s#1 s#2"}, // a line end is a part of its line
		{[]string{"a\n", "", "a\n"}, "", "s#2"},         // written anew
		{[]string{"a\nb\n", "!secret", "a\nc\n"}, "", "outside s#1+s#2"},
		{[]string{"a\n", "a\nb\n"}, "a\nb\nc\n", "outside s#1 outside"},
		{[]string{"a\n", "!size"}, "a\nb\n", "outside outside"},
		{[]string{"", "\x1b[31m\n"}, "", "s#1"},
	} {
		l, read := versions(t, x.texts...)
		var now []byte
		if x.now != "" {
			now = []byte(x.now)
		}
		b, err := Blame(read, l, "f", now)
		if err != nil {
			t.Errorf("%q: %v", x.texts, err)
			continue
		}
		var got []string
		for _, line := range b.Lines {
			got = append(got, strings.Join(line.By, "+"))
		}
		if d := cmp.Diff(x.want, strings.Join(got, " ")); d != "" {
			t.Errorf("%q: %s", x.texts, d)
		}
	}
}

func TestC03WhatHasNoLinesIsRefused(t *testing.T) {
	for _, x := range []struct {
		texts []string
		want  string
	}{
		{[]string{"a\x00b"}, "binary"}, {[]string{"\xff"}, "binary"}, {[]string{"", ""}, "recorded no file"}, {[]string{"a", ""}, "no longer there"}, {[]string{"!secret"}, "not recorded: secret"},
		{[]string{strings.Repeat("x\n", BlameMax/2) + "x"}, "lines are told apart up to"},
	} {
		l, read := versions(t, x.texts...)
		if _, err := Blame(read, l, "f", nil); !errors.Is(err, protocol.ErrUnknownArtifact) || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%.20q: %v", x.texts, err)
		}
	}
	l, _ := versions(t, "a\n")
	if _, err := Blame(func(protocol.Link) ([]byte, error) { return nil, protocol.ErrNotFound }, l, "f", nil); err == nil || !strings.Contains(err.Error(), "are not kept") {
		t.Errorf("files that were dropped: %v", err)
	}
}

// C-3: a diff is bounded, names what it cannot compare, and quotes names.
func TestC03FilesAreCompared(t *testing.T) {
	l, read := versions(t, "a\n-- b\n", "a\n")
	l2, read2 := versions(t, strings.Repeat("y\n", diffFileMax/2), strings.Repeat("y\n", diffFileMax/2)+"y", "a\x00", "!secret")
	side := func(l *api.Looks, i int) api.FilesSide { return api.FilesSide{Run: "R", Tree: l.Looks[i].Tree} }
	d, err := FilesDiff(read, side(l, 0), side(l, 1), nil)
	if err != nil || d.Added != 0 || d.Removed != 1 || d.Files[0].Unified != "--- a/f\n+++ b/f\n@@ -1,2 +1 @@\n a\n--- b\n" {
		t.Errorf("%+v, %v", d, err)
	}
	for i, want := range []string{"large", "large", "omitted"} {
		d, err := FilesDiff(read2, side(l2, i), side(l2, i+1), nil)
		if err != nil || len(d.Files) != 1 || d.Files[0].Note != want || d.Files[0].Unified != "" {
			t.Errorf("%+v, %v, want %s", d, err, want)
		}
	}
	l3, read3 := versions(t, "a\x00", "b")
	if d, err := FilesDiff(read3, side(l3, 0), side(l3, 1), nil); err != nil || d.Files[0].Note != "binary" {
		t.Errorf("%+v, %v", d, err)
	}
	if got := diffName("a/", "x\ny\"", tree.Entry{Mode: tree.File}); got != `"a/x\ny\""` {
		t.Error(got)
	}
}
