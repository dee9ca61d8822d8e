package service

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/api"
	"wf/protocol"
	"wf/protocol/tree"
)

// recordedTexts are looks at a workspace with one file, which has a text at each of them; "" is a look that failed.
func recordedTexts(t *testing.T, texts ...string) (*api.Looks, map[protocol.Link][]byte) {
	t.Helper()
	blocks := map[protocol.Link][]byte{}
	l := &api.Looks{Run: "R", Recorded: true}
	for i, text := range texts {
		x := api.Look{Seq: protocol.Seq(i + 1), Phase: protocol.FilesAfter, Step: fmt.Sprintf("s#%d", i), By: []string{fmt.Sprintf("s#%03d", i)}}
		if i == 0 {
			x.Phase, x.Step, x.By = api.LookStart, "", []string{}
		}
		if text != "" {
			raw := tree.Raw([]byte(text))
			made, err := tree.Encode([]tree.Entry{{Name: "f", Mode: tree.File, Link: raw.Link, Size: int64(len(text))}})
			if err != nil {
				t.Fatal(err)
			}
			blocks[raw.Link], blocks[made[0].Link] = raw.Data, made[0].Data
			x.Tree = made[0].Link.String()
		}
		l.Looks = append(l.Looks, x)
	}
	return l, blocks
}

func newFilesSearch(made map[protocol.Link][]byte, b FilesBisector) *filesSearch {
	b.Run = "R"
	return &filesSearch{FilesBisector: &b, out: &api.BisectFiles{Run: "R", By: []string{}}, made: made, leftOut: map[string]bool{},
		read: func(l protocol.Link) ([]byte, error) {
			if data, ok := made[l]; ok {
				return data, nil
			}
			return nil, protocol.ErrNotFound
		}}
}

// M-4: only looks count whose files are others than before; both ends can be chosen.
func TestM04LooksWithOtherFilesAreBisected(t *testing.T) {
	for _, c := range []struct {
		name, good, bad string
		texts           []string
		want            string // seqs
		err             string
	}{
		{"all", "", "", []string{"a", "a", "b", "b", "c"}, "1 3 5", ""},
		{"back to what was", "", "", []string{"a", "b", "a"}, "1 2 3", ""},
		{"a look that failed", "", "", []string{"a", "", "b"}, "1 3", ""},
		{"two", "", "", []string{"a", "b"}, "1 2", ""},
		{"one", "", "", []string{"a", "a"}, "", "no file changed between the start of the run and s#1"},
		{"only one look", "", "", []string{"a"}, "", "no file changed in R"},
		{"from a step", "s#1", "", []string{"a", "b", "c", "d"}, "2 3 4", ""},
		{"to a step", "", "s#2", []string{"a", "b", "c", "d"}, "1 2 3", ""},
		{"between neighbours", "s#1", "s#2", []string{"a", "b", "c", "d"}, "2 3", ""},
		{"the same step", "s#1", "s#1", []string{"a", "b", "c"}, "", "s#1 comes behind s#1"},
		{"the other way round", "s#2", "s#1", []string{"a", "b", "c"}, "", "s#2 comes behind s#1"},
		{"no such step", "s#9", "", []string{"a", "b"}, "", "s#9 of run R recorded no files"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, made := recordedTexts(t, c.texts...)
			if c.good != "" || c.bad != "" {
				l = withBefore(l)
			}
			s := newFilesSearch(made, FilesBisector{Good: c.good, Bad: c.bad})
			err := s.between(l)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("%v, want %s", err, c.err)
				}
				return
			}
			var got []string
			for _, p := range s.points {
				got = append(got, fmt.Sprint(p.Seq))
			}
			if d := cmp.Diff(c.want, strings.Join(got, " ")); err != nil || d != "" {
				t.Errorf("%v\n%s", err, d)
			}
		})
	}
}

// withBefore has each step look at what it found too, which is what the look before it has.
func withBefore(l *api.Looks) *api.Looks {
	out := *l
	out.Looks = l.Looks[:1:1]
	for i, x := range l.Looks[1:] {
		before := l.Looks[i]
		before.Phase, before.Step, before.By = protocol.FilesBefore, x.Step, []string{api.Outside}
		out.Looks = append(out.Looks, before, x)
	}
	return &out
}

// M-4: an answer names all that may have done it, and so many of the looks that cannot be told.
func TestM04AnswersAreBounded(t *testing.T) {
	for _, untold := range []int{0, 1, untoldShown - 1, untoldShown, untoldShown + 1} {
		texts := []string{"start"}
		for i := range untold + 1 {
			texts = append(texts, fmt.Sprint("text ", i))
		}
		l, made := recordedTexts(t, texts...)
		s := newFilesSearch(made, FilesBisector{})
		if err := s.between(l); err != nil {
			t.Fatal(err)
		}
		s.points[len(s.points)-1].By = []string{"s#a", "s#b"}
		if err := s.answer(t.Context(), l, 0, len(s.points)-1); err != nil {
			t.Fatal(err)
		}
		if out := s.out; out.Untold != untold || len(out.Between) != min(untold, untoldShown) || len(out.By) != untold+2 || len(out.Diff.Files) != 1 || len(out.Diff.Files[0].By) != untold+1 {
			t.Errorf("%d: %d, %d, %v, %+v", untold, out.Untold, len(out.Between), out.By, out.Diff.Files)
		}
	}
	for _, n := range []int{0, leftOutShown - 1, leftOutShown, leftOutShown + 1} {
		s := newFilesSearch(nil, FilesBisector{})
		for i := range n {
			s.leaveOut(fmt.Sprint(i))
			s.leaveOut(fmt.Sprint(i))
		}
		if s.out.LeftOutCount != n || len(s.out.LeftOut) != min(n, leftOutShown) {
			t.Errorf("%d: %d, %d", n, s.out.LeftOutCount, len(s.out.LeftOut))
		}
	}
}

// M-4: what is carried is what globs want and a run does not record.
func TestM04WhatIsCarriedWasNotRecorded(t *testing.T) {
	globs := func(texts ...string) tree.Globs {
		g, err := tree.NewGlobs(texts)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	recorded, err := tree.NewIgnored(func(path string) ([]byte, error) {
		return map[string][]byte{".gitignore": []byte("deps\n*.o\n")}[path], nil
	}, globs("deps/kept"), globs("out"))
	if err != nil {
		t.Fatal(err)
	}
	top := complement{globs("deps", "src", "*.o", "out").Top(), recorded}
	for path, want := range map[string]bool{
		"deps/a": true, "deps/kept": false, "deps/b/c": true, "src/main.go": false, "src/main.o": true, "x.o": true, "y.c": false, "out/x": true, "other/x.o": false,
	} {
		var at tree.Chooser = top
		parts := strings.Split(path, "/")
		for _, dir := range parts[:len(parts)-1] {
			if at != nil {
				if at, err = at.Enter(dir); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got := at != nil && at.Takes(parts[len(parts)-1]); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}
