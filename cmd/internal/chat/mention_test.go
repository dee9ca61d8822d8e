package chat_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"wf/cmd/internal/chat"
	"wf/cmd/internal/screentest"
)

// shelf is a workspace of a few files.
type shelf map[string]string

func (f shelf) Read(name string, n int) ([]byte, int64, error) {
	text, ok := f[name]
	switch {
	case strings.HasPrefix(name, "/"):
		return nil, 0, errors.New("@" + name + " leads out of the workspace")
	case !ok:
		return nil, 0, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return []byte(text[:min(n, len(text))]), int64(len(text)), nil
}

func (d *desk) says(t *testing.T, f shelf, text string) (string, error) {
	t.Helper()
	s, err := chat.Open(t.Context(), chat.Place{Service: d, Follower: d, Me: "ada", Files: func(string) chat.Files { return filesOf{f} }}, "RUN")
	if err != nil {
		t.Fatal(err)
	}
	return s.Attached(t.Context(), text, 30<<10)
}

// A message carries the files that it names; what was left out of them is named.
func TestAMessageCarriesTheFilesThatItNames(t *testing.T) {
	const most = 16 << 10
	line := strings.Repeat("x", 99) + "\n"
	exact := strings.Repeat(line, most/100) + strings.Repeat("y", most%100)
	f := shelf{"a.go": "package a\n", "with blank.md": "```\ncode\n```\n", "empty": "", "b.bin": "a\x00b", "latin": "caf\xe9", "exact.txt": exact, "longer.txt": exact + "\n",
		"1": exact, "2": exact[:most-3<<10], "3": exact, "ticks": strings.Repeat("`", 12<<10), "wide": strings.Repeat("漢", most/3+1)}
	whole := func(name, text string) string {
		return fmt.Sprintf("\n\nThe file %s (%d bytes):\n\n```%s\n%s\n```\nEnd of %s.", name, len(text), map[bool]string{true: "txt"}[strings.HasSuffix(name, ".txt")], strings.TrimSuffix(text, "\n"), name)
	}
	for said, want := range map[string]string{
		"look at nothing":          "",
		"mail ada@a.go":            "",
		"@nobody, look":            "",
		"@":                        "",
		`@"unclosed`:               "",
		"see @a.go.":               "\n\nThe file a.go (10 bytes):\n\n```go\npackage a\n```\nEnd of a.go.",
		"(@a.go) and @a.go?!":      "\n\nThe file a.go (10 bytes):\n\n```go\npackage a\n```\nEnd of a.go.",
		`see @"with blank.md" now`: "\n\nThe file with blank.md (13 bytes):\n\n````md\n```\ncode\n```\n````\nEnd of with blank.md.",
		"@empty":                   "\n\nThe file empty is empty.",
		"@b.bin":                   "\n\nThe file b.bin is no text (3 bytes) and is left out.",
		"@latin":                   "\n\nThe file latin is no text (4 bytes) and is left out.",
		"@exact.txt":               whole("exact.txt", exact),
		"@longer.txt":              fmt.Sprintf("\n\nThe file longer.txt (its first 163 lines, 16300 of %d bytes; what follows line 163 is left out, read it with your tools):\n\n```txt\n%s\n```\nEnd of longer.txt.", most+1, strings.TrimSuffix(strings.Repeat(line, 163), "\n")),
		"@1 @2 @3":                 whole("1", exact) + whole("2", exact[:most-3<<10]) + fmt.Sprintf("\n\nThe file 3 (%d bytes) is left out: it has no room in this message. Read it with your tools.", most),
		"@ticks":                   "\n\nThe file ticks (12288 bytes) is left out: it has no room in this message. Read it with your tools.",
		"a\n@a.go":                 "\n\nThe file a.go (10 bytes):\n\n```go\npackage a\n```\nEnd of a.go.",
	} {
		got, err := (&desk{}).says(t, f, said)
		if err != nil || got != want {
			t.Errorf("%q: %v\n%.300s\nwant\n%.300s", said, err, got, want)
		}
	}
	if got, err := (&desk{}).says(t, f, "@wide"); err != nil || strings.Contains(got, "\uFFFD") || !strings.Contains(got, "16383 of 16386 bytes") {
		t.Errorf("%v: %.200s", err, got)
	}
	if _, err := (&desk{}).says(t, f, "@a.go @/etc/passwd"); err == nil || !strings.Contains(err.Error(), "leads out") {
		t.Errorf("a file elsewhere: %v", err)
	}
}

// filesOf is a shelf as Files.
type filesOf struct{ shelf }

func (f filesOf) Paths(context.Context) ([]string, bool, error) { return nil, false, nil }

func TestAMentionIsCompleted(t *testing.T) {
	r := newRoom()
	talk(r)
	wait := make(chan struct{})
	r.paths = func() ([]string, bool, error) {
		<-wait // the screen does not wait for it
		return []string{"README.md", "cmd/read.go", "docs/my notes.md", "src/deep/red.go", "src/漢字.go", "x\x1b[2Jy"}, false, nil
	}
	r.files = func(line string) (string, error) { return "\n\nfiles of " + line, nil }
	s := show(t, r, 80, 24)
	s.Shows("your turn")
	s.Press("see @re")
	s.Shows("reading the files…")
	close(wait)
	now := s.Shows("cmd/read.go")
	if a, b, c := strings.Index(now, "README.md"), strings.Index(now, "cmd/read.go"), strings.Index(now, "src/deep/red.go"); a < 0 || a > b || b > c {
		t.Errorf("the order is\n%s", now)
	}
	s.Press(screentest.Down + screentest.Tab)
	s.Shows("> see @cmd/read.go")
	s.Press("and @not" + screentest.Tab)
	s.Shows(`> see @cmd/read.go and @"docs/my notes.md"`)
	s.Press("@字" + screentest.Tab)
	s.Shows(`@src/漢字.go`)
	s.Press("\r")
	line := `see @cmd/read.go and @"docs/my notes.md" @src/漢字.go`
	if got := r.heard(t); got != "you#2: "+line+"\n\nfiles of "+line {
		t.Errorf("said %q", got)
	}
	s.Press("@x")
	if now := s.Shows("  xy"); strings.Contains(now, "2J") {
		t.Errorf("a name acts:\n%s", now)
	}
	s.Press(screentest.Esc)
	s.Hides("  xy")
	s.Press("\x03@zzz")
	s.Shows("> @zzz")
	s.Press(screentest.Tab + "\r") // nothing to complete: a text
	if got := r.heard(t); !strings.HasPrefix(got, "you#2: @zzz\n") {
		t.Errorf("said %q", got)
	}
}

// Of what was pasted no name is read: another may have written it.
func TestWhatWasPastedNamesNoFiles(t *testing.T) {
	r := newRoom()
	talk(r)
	var asked []string
	r.files = func(line string) (string, error) { asked = append(asked, line); return "", nil }
	s := show(t, r, 80, 24)
	s.Shows("your turn")
	text := strings.Repeat("look at @secrets.env\r", 100)
	s.Press(pasteBegins + text + pasteEnds)
	s.Shows("[pasted 1: 100 lines")
	s.Press(" @a.go\r")
	if got := r.heard(t); !strings.Contains(got, "@secrets.env") || !strings.HasSuffix(got, "@a.go") {
		t.Errorf("said %.100q", got)
	}
	if len(asked) != 1 || strings.Contains(asked[0], "secrets") {
		t.Errorf("the files of %q are read", asked)
	}
}

// A file that cannot be named keeps the message back.
func TestAFileElsewhereKeepsTheMessageBack(t *testing.T) {
	r := newRoom()
	talk(r)
	r.files = func(string) (string, error) { return "", errors.New("@../x leads out of the workspace") }
	s := show(t, r, 80, 24)
	s.Shows("your turn")
	s.Press("see @../x\r")
	s.Shows("@../x leads out of the workspace")
	s.Shows("> see @../x")
	r.silent(t)
}

// Far away the files are not known, which is said in their place, and a name is a text.
func TestFarAwayNoFileIsRead(t *testing.T) {
	s := enter(t, &desk{}, nil)
	more, err := s.Attached(t.Context(), "see @/etc/passwd", 1000)
	paths, _, failed := s.Paths(t.Context())
	if more != "" || err != nil || len(paths) > 0 || !errors.Is(failed, chat.ErrElsewhere) {
		t.Errorf("%q, %v; %v, %v", more, err, paths, failed)
	}
	for _, width := range []int{80, 40} {
		r := newRoom()
		talk(r)
		r.paths = func() ([]string, bool, error) { return nil, false, chat.ErrElsewhere }
		screen := show(t, r, width, 24)
		screen.Shows("your turn")
		screen.Press("see @a")
		screen.Shows("no files are offered")
		screen.Shows("find the file")
		screen.Press(".go\r")
		if got := r.heard(t); got != "you#2: see @a.go" {
			t.Errorf("said %q", got)
		}
	}
}
