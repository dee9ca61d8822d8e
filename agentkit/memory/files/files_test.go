package files_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wf/agentkit/memory"
	"wf/agentkit/memory/files"
	"wf/agentkit/memory/memorytest"
)

// tree writes files below a new directory.
func tree(t testing.TB, content map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range content {
		write(t, dir, name, text)
	}
	return dir
}

func write(t testing.TB, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, l *memorytest.Ledger) *memory.Store {
	t.Helper()
	m, err := memory.Open(t.Context(), memory.Config{Scope: "code", Journal: l, Vectors: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// shelf keeps pieces in a memory of this process.
type shelf struct{ *memory.Store }

func (s shelf) Placed(ctx context.Context) (list []files.Placed, err error) {
	err = s.View(ctx, func(st *memory.State) {
		for m := range st.Newest() {
			if m.Place != nil {
				list = append(list, files.Placed{ID: m.ID, Place: *m.Place, Sum: m.Sum()})
			}
		}
	})
	return list, err
}

func (s shelf) Remember(ctx context.Context, notes []memory.Note) error {
	_, err := s.Store.Remember(ctx, notes...)
	return err
}

func (s shelf) Edit(ctx context.Context, targets []memory.Target) error {
	return s.EditAll(ctx, targets, memory.Origin{})
}

func index(t testing.TB, m *memory.Store, dir string) files.Report {
	t.Helper()
	r, err := files.Index(t.Context(), shelf{m}, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// found are the places of the hits of a question, file:line-line.
func found(t testing.TB, m *memory.Store, question string, n int) []string {
	t.Helper()
	hits, err := m.Recall(t.Context(), memory.Query{Text: question, Limit: n})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, h := range hits {
		out = append(out, fmt.Sprintf("%s:%d-%d", h.Place.File, h.Place.Line, h.Place.End))
	}
	return out
}

// A question finds the file that answers it among the first three pieces, with the lines.
func TestK14AQuestionFindsTheRightFileInTheTopThree(t *testing.T) {
	l := &memorytest.Ledger{}
	m := open(t, l)
	r := index(t, m, "testdata/project")
	if r.Files < 12 || r.Added != r.Pieces {
		t.Fatalf("%+v", r)
	}
	for question, want := range map[string]string{
		"how often is a failed request retried?":               "http/retry.go",
		"Retry-After header of the response":                   "http/retry.go",
		"where are sessions stored":                            "session/store.go",
		"when does a session expire":                           "session/store.go",
		"check a password against its hash":                    "auth/password.go",
		"which users may delete an invoice?":                   "auth/policy.go",
		"sum of an invoice with tax":                           "billing/invoice.go",
		"rounding of cents":                                    "billing/money.go",
		"send an email when an invoice is overdue":             "billing/reminder.go",
		"connect to the database and run migrations":           "db/migrate.go",
		"parse command line flags":                             "cmd/server/main.go",
		"rate limit of the API per client":                     "http/limit.go",
		"log line as JSON":                                     "log/json.go",
		"wie wird das Projekt gebaut und gestartet? make run":  "README.md",
		"TLS certificate of the server reload":                 "http/tls.go",
		"what happens to the queue when a worker dies (lease)": "queue/worker.go",
	} {
		got := found(t, m, question, 3)
		hit := false
		for _, place := range got {
			hit = hit || strings.HasPrefix(place, want+":")
		}
		if !hit {
			t.Errorf("%q wants %s, found %v", question, want, got)
		}
	}
	if got := found(t, m, "func expired(s Session, now time.Time) bool", 1); !cmp.Equal(got, []string{"session/store.go:25-46"}) {
		t.Errorf("the place of a function is %v", got)
	}
}

func TestIndexingAgainTakesInWhatChanged(t *testing.T) {
	long := "package a\n\n" + strings.Repeat("// First does one thing.\nfunc First() {\n\tprintln(1)\n}\n\n", 1) + strings.Repeat("// line\n", 30) + "func Second() {}\n"
	dir := tree(t, map[string]string{"a.go": long, "b.md": "# Title\n\nText of b.\n"})
	l := &memorytest.Ledger{}
	m := open(t, l)
	first := index(t, m, dir)
	if first.Files != 2 || first.Added != first.Pieces || first.Removed != 0 {
		t.Fatalf("%+v", first)
	}
	note, err := m.Remember(t.Context(), memory.Note{Content: "not of a file"})
	if err != nil {
		t.Fatal(err)
	}
	events := len(l.Entries())
	if r := index(t, m, dir); r.Added+r.Moved+r.Removed != 0 || len(l.Entries()) != events {
		t.Errorf("nothing changed, but %+v", r)
	}
	write(t, dir, "a.go", "// Package a is one.\n"+long)
	write(t, dir, "b.md", "# Title\n\nOther text.\n")
	r := index(t, m, dir)
	if r.Added != 2 || r.Moved != first.Pieces-2 || r.Removed != 2 {
		t.Errorf("after two edits %+v of %+v", r, first)
	}
	if err := os.Remove(filepath.Join(dir, "a.go")); err != nil {
		t.Fatal(err)
	}
	if r := index(t, m, dir); r.Removed != first.Pieces-1 {
		t.Errorf("after a file is gone %+v", r)
	}
	if _, there, err := m.Get(t.Context(), note[0]); !there || err != nil {
		t.Error("indexing removed what is of no file", err)
	}
}

// What is in a tree may hold keys, long lines and names that no one would choose.
func TestAHostileTreeIsIndexedOnce(t *testing.T) {
	const key = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	dir := tree(t, map[string]string{
		".env": "TOKEN=" + key + "\n", "one\nline].txt": "a name of two lines", "long.txt": strings.Repeat("x", 700_000),
		"twice/a.txt": "the same text", "twice/b.txt": "the same text", "esc.txt": "\x1b[2Jcleared",
	})
	l := &memorytest.Ledger{}
	m := open(t, l)
	var told []int
	r, err := files.Index(t.Context(), shelf{m}, dir, func(files, pieces int) { told = append(told, files, pieces) })
	if err != nil || r.Files != 6 || r.Added != 6 || !cmp.Equal(told[len(told)-2:], []int{6, 6}) {
		t.Fatalf("%+v, told %v, %v", r, told, err)
	}
	for _, e := range l.Entries() {
		if strings.Contains(string(e.Data), key) {
			t.Errorf("event %d holds the key", e.Seq)
		}
	}
	if r := index(t, m, dir); r.Added+r.Moved+r.Removed != 0 {
		t.Errorf("again: %+v", r)
	}
	hits, err := m.Recall(t.Context(), memory.Query{Text: "a name of two lines", Limit: 1})
	if err != nil || len(hits) != 1 {
		t.Fatal(hits, err)
	}
	if place := memory.PlaceText(*hits[0].Place); place != `"one\nline].txt":1-1` {
		t.Errorf("its place is %s", place)
	}
}

func TestWhatIsLeftOut(t *testing.T) {
	dir := tree(t, map[string]string{
		".gitignore": "*.log\n/build/\n", "a.txt": "a", "x.log": "x", "build/out.txt": "x", "sub/.gitignore": "!keep.log\n", "sub/keep.log": "kept",
		".git/config": "x", ".wf/store": "x", "empty": " \n", "blob": "a\x00b", "latin": "caf\xe9", "big": strings.Repeat("x\n", files.MaxFile),
	})
	if err := os.Symlink("a.txt", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	var got []string
	skipped, err := files.Walk(t.Context(), dir, func(f files.File) error {
		got = append(got, f.Name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{".gitignore", "a.txt", "sub/.gitignore", "sub/keep.log"}, got); d != "" {
		t.Error(d)
	}
	var names []string
	for _, s := range skipped {
		names = append(names, s.Name)
	}
	if d := cmp.Diff([]string{"big", "blob", "latin"}, names); d != "" {
		t.Error(d)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := files.Walk(ctx, dir, func(files.File) error { return nil }); err == nil {
		t.Error("a cancelled walk goes on")
	}
}

// Every line that says something is in exactly one piece, in order, whatever the file.
func TestPiecesCoverAFile(t *testing.T) {
	line := rapid.SampledFrom([]string{"", "  ", "func f() {", "}", "// comment", "text", "\tindented", strings.Repeat("long ", 500), "package p"})
	rapid.Check(t, func(rt *rapid.T) {
		lines := rapid.SliceOfN(line, 0, 300).Draw(rt, "lines")
		name := rapid.SampledFrom([]string{"a.go", "b.md"}).Draw(rt, "name")
		at := 0
		for _, p := range files.Pieces(files.File{Name: name, Text: strings.Join(lines, "\n")}) {
			for ; at < p.Line-1; at++ {
				if strings.TrimSpace(lines[at]) != "" {
					rt.Fatalf("line %d is in no piece", at+1)
				}
			}
			if p.Line-1 < at || p.End > len(lines) || p.Text != strings.Join(lines[p.Line-1:p.End], "\n") {
				rt.Fatalf("piece %d-%d holds %q", p.Line, p.End, p.Text)
			}
			at = p.End
		}
		for ; at < len(lines); at++ {
			if strings.TrimSpace(lines[at]) != "" {
				rt.Fatalf("line %d is in no piece", at+1)
			}
		}
	})
}

func TestAPieceIsWhatBelongsTogether(t *testing.T) {
	body := strings.Repeat("\tprintln()\n", 15)
	got := files.Pieces(files.File{Name: "a.go", Text: "// Package a.\npackage a\n\nimport \"fmt\"\n\n// A does.\nfunc A() {\n" + body + "}\n\n// B is.\ntype B struct {\n" + body + "}\n"})
	var places []string
	for _, p := range got {
		first, _, _ := strings.Cut(p.Text, "\n")
		places = append(places, fmt.Sprintf("%d-%d %s", p.Line, p.End, first))
	}
	if d := cmp.Diff([]string{"1-23 // Package a.", "25-42 // B is."}, places); d != "" {
		t.Error(d)
	}
}
