package main

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"wf/cmd/internal/render"
)

// What every command prints: stdout, stderr and the exit status, for a store in which there is a run of every
// kind. First as it is at the directory of the store, which is what testdata/commands holds (-update writes
// it anew), then the same commands through a socket, a port and a hub.
func TestCommands(t *testing.T) {
	h := newHouse(t)
	if !testing.Short() {
		h.startHub(t)
	}
	t.Run("directory", func(t *testing.T) {
		oneAfterAnother(t)
		h.atDirectory(t)
	})
	h.everywhere(t)
}

// atDirectory holds what commands print at the directory against the goldens.
func (h *house) atDirectory(t *testing.T) {
	h.open(t)
	here := h.fork()
	for _, b := range books(t, "read", "alone", "move") {
		t.Run(b.name, func(t *testing.T) {
			b.compare(t, b.performed(t, here, h.directory()))
		})
	}
}

// directory are the flags for the store itself.
func (h *house) directory() []string { return []string{"--store", filepath.Join(h.dir, ".wf")} }

// A book is a file of commands, with what each led to. A line with $ is a command, and before it stand the
// names of the runs that it begins; then come the lines of stdout, indented, those of stderr, marked with !,
// and the exit status.
type book struct {
	name, path string
	pages      []page
}

type page struct {
	note    string // lines above it
	command string // RUN_FORK1_ = wf fork RUN_LOOP__:coder#2
	printed
}

// A printed is what a command wrote, and its exit status.
type printed struct {
	stdout, stderr string
	exit           int
}

// books reads the files of some directories of testdata/commands.
func books(t *testing.T, dirs ...string) []*book {
	t.Helper()
	var out []*book
	for _, dir := range dirs {
		paths, err := filepath.Glob(filepath.Join(testdata, dir, "*.txt"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no commands in %s: %v", dir, err)
		}
		for _, path := range paths {
			b := &book{name: dir + "/" + strings.TrimSuffix(filepath.Base(path), ".txt"), path: path}
			b.parse(t, string(readGolden(t, path)))
			out = append(out, b)
		}
	}
	return out
}

// testdata is where the goldens are, from wherever a test is.
var testdata = func() string {
	dir, err := filepath.Abs("testdata/commands")
	if err != nil {
		panic(err)
	}
	return dir
}()

// Marks of the lines of a book.
const (
	markCommand = "$ "
	markOut     = "  "
	markErr     = "! "
	markExit    = "exit "
	markCut     = "\\" // the output ends without a newline
)

func (b *book) parse(t *testing.T, text string) {
	t.Helper()
	note := ""
	var into *string
	for line := range strings.Lines(text) {
		var p *page
		if len(b.pages) > 0 {
			p = &b.pages[len(b.pages)-1]
		}
		switch {
		case strings.HasPrefix(line, markCommand):
			b.pages = append(b.pages, page{note: note, command: strings.TrimSpace(line[len(markCommand):])})
			note = ""
		case p == nil || strings.HasPrefix(line, "#"):
			note += line
		case strings.HasPrefix(line, markOut):
			p.stdout += line[len(markOut):]
			into = &p.stdout
		case strings.HasPrefix(line, markErr):
			p.stderr += line[len(markErr):]
			into = &p.stderr
		case strings.HasPrefix(line, markCut):
			*into = strings.TrimSuffix(*into, "\n")
		case strings.HasPrefix(line, markExit):
			exit, err := strconv.Atoi(strings.TrimSpace(line[len(markExit):]))
			if err != nil {
				t.Fatalf("%s: %q: %v", b.name, line, err)
			}
			p.exit = exit
		case strings.TrimSpace(line) != "":
			t.Fatalf("%s: line %q has no mark", b.name, line)
		}
	}
}

// String is the book as it is written.
func (b *book) String() string {
	var s strings.Builder
	for _, p := range b.pages {
		s.WriteString(p.note + markCommand + p.command + "\n" + p.printed.String() + "\n")
	}
	return strings.TrimSuffix(s.String(), "\n")
}

// String is it as it is written in a book.
func (o printed) String() string {
	var s strings.Builder
	for _, stream := range []struct{ text, mark string }{{o.stdout, markOut}, {o.stderr, markErr}} {
		for line := range strings.Lines(stream.text) {
			s.WriteString(stream.mark + shortened(line))
		}
		if stream.text != "" && !strings.HasSuffix(stream.text, "\n") {
			s.WriteString("\n" + markCut + "\n")
		}
	}
	s.WriteString(markExit + strconv.Itoa(o.exit) + "\n")
	return s.String()
}

// performed is the book with what its commands lead to at a place, in their order.
func (b *book) performed(t *testing.T, h *house, place []string) *book {
	t.Helper()
	out := &book{name: b.name, path: b.path}
	for _, p := range b.pages {
		got, err := h.perform(t.Context(), place, p.command)
		if err != nil {
			t.Fatalf("%s: %v", p.command, err)
		}
		out.pages = append(out.pages, page{p.note, p.command, got})
	}
	return out
}

// perform runs a command of a book at a place, and masks what it writes.
func (h *house) perform(ctx context.Context, place []string, command string) (printed, error) {
	names, args := parseCommand(command)
	args, err := h.real(args)
	if err != nil {
		return printed{}, err
	}
	got := wfMain(slices.Concat(place, args)...)
	err = h.learn(ctx, names)
	if errors.Is(err, errNotBegun) && h.mask.place != "" { // what is not yet everywhere is begun beside it
		wfMain(slices.Concat(h.directory(), args)...)
		err = h.learn(ctx, names)
	}
	if err != nil {
		return got, errors.Join(err, errors.New(got.String()))
	}
	got.stdout, got.stderr = h.mask.text(got.stdout), h.mask.text(got.stderr)
	return got, nil
}

// parseCommand splits a command of a book into the names of the runs that it begins and its arguments.
func parseCommand(command string) (names, args []string) {
	before, after, ok := strings.Cut(command, " = wf")
	if ok {
		names = strings.Split(before, ",")
	} else {
		after = strings.TrimPrefix(command, "wf")
	}
	return names, shellWords(after)
}

// wfMain performs a command line in this process, as Main does.
func wfMain(args ...string) printed { return wfOn(&render.Screen{}, args...) }

// wfOn is wfMain with a stdout that is like a screen.
func wfOn(like *render.Screen, args ...string) printed {
	var out, err lockedBuffer
	a := newAppOn(strings.NewReader(""), &render.Screen{Writer: &out, TTY: like.TTY, Width: like.Width}, &render.Screen{Writer: &err})
	root := newRoot(a)
	root.SetArgs(latestRefs(root, args))
	root.SetOut(&out)
	root.SetErr(&err)
	failed := execute(context.Background(), root)
	if failed != nil && !a.started {
		failed = usage(failed)
	}
	exit := a.finish(failed)
	return printed{out.String(), err.String(), exit}
}
