package appear

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"wf/protocol"
	"wf/roles/workspace"
	"wf/roles/workspace/control"
)

// A Watch knows what lies in one workspace, as of its last look. It may be used by several goroutines; their
// looks go one after the other.
type Watch struct {
	root   string // absolute, without links
	bounds bounds

	mu          sync.Mutex
	top         *dir
	dirs        int
	above       *state    // of the repository in which the workspace lies; nil is none
	left        allowance // of the look under way
	partial     bool
	active      map[*Span]bool
	lasting     int
	pending     protocol.Appeared // what no span has told yet
	unprotected int
}

// watchesMax is how many workspaces one process remembers.
const watchesMax = 8

var watches struct {
	sync.Mutex
	all []*Watch // the last used one last
}

// Of is the watch of a workspace, the same one for all of the process as long as it is used. An error is that
// of the path.
func Of(root string) (*Watch, error) {
	root, err := workspace.Real(root)
	if err != nil {
		return nil, err
	}
	watches.Lock()
	defer watches.Unlock()
	w := &Watch{root: root, bounds: defaultBounds, active: map[*Span]bool{}}
	if i := slices.IndexFunc(watches.all, func(w *Watch) bool { return w.root == root }); i >= 0 {
		w = watches.all[i]
		watches.all = slices.Delete(watches.all, i, i+1)
	}
	watches.all = append(watches.all, w)
	if len(watches.all) > watchesMax {
		watches.all = slices.Delete(watches.all, 0, 1)
	}
	return w, nil
}

// A Span is while a command or a call runs in a workspace: what is found until its end was made by it, or by
// something beside it.
type Span struct {
	w      *Watch
	beside bool
	ended  bool
}

// Look brings the watch up to date. What is found without a span is not told.
func (w *Watch) Look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refresh()
}

func (w *Watch) refresh() {
	w.look(len(w.active) > 0)
	if len(w.active) == 0 && w.lasting == 0 {
		w.pending = protocol.Appeared{Partial: w.pending.Partial}
	}
}

// Enter says that something works in the workspace until leave is called: what is found meanwhile, without a span, is told by the next one.
func (w *Watch) Enter() (leave func()) {
	w.Look()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lasting++
	return sync.OnceFunc(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.lasting--
	})
}

// Partial reports whether the workspace was not looked at as a whole.
func (w *Watch) Partial() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.partial
}

// Begin looks, and begins a span. What is found now was made before.
func (w *Watch) Begin() *Span {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refresh()
	s := &Span{w: w, beside: len(w.active) > 0}
	for other := range w.active {
		other.beside = true
	}
	w.active[s] = true
	return s
}

// End looks and ends the span. What was found since Begin, and not reported by another span, is reported by this one;
// nil is nothing. A second End is nothing, as is that of no span.
func (s *Span) End() *protocol.Appeared {
	if s == nil {
		return nil
	}
	w := s.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.ended {
		return nil
	}
	s.ended = true
	w.look(true)
	delete(w.active, s)
	a := w.pending
	w.pending = protocol.Appeared{}
	if len(a.Found) == 0 && !a.Partial && a.Unprotected == 0 {
		return nil
	}
	a.Beside = s.beside && len(a.Found) > 0
	slices.SortStableFunc(a.Found, func(x, y protocol.Found) int {
		return cmp.Or(strings.Compare(x.Path, y.Path), strings.Compare(string(x.Kind), string(y.Kind)))
	})
	return &a
}

// Unprotected has the next span tell how many repositories are not protected, unless that was told.
func (w *Watch) Unprotected(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n != w.unprotected {
		w.unprotected, w.pending.Unprotected = n, n
	}
}

// look finds what changed since the last look; made says whether commands made it.
func (w *Watch) look(made bool) {
	eye := control.At(w.root)
	root, err := openOurs(eye, w.root)
	if err != nil {
		w.pending.Partial = w.pending.Partial || !gone(err)
		return // of what is no directory any more nothing is known
	}
	defer unix.Close(root)
	if w.top == nil {
		w.top, w.dirs = &dir{name: ".", late: true}, 1
	}
	l := look{root: root, eye: eye, top: w.root, bounds: w.bounds, began: time.Now().UnixNano(), dirs: w.dirs, found: func(path string, changed bool, i *item) {
		i.made = i.made || made
		if i.kind == protocol.FoundWorkflow && !isWorkflow(root, path) {
			return
		}
		w.found(protocol.Found{Kind: i.kind, Path: path, Changed: changed})
	}}
	l.update(w.top)
	w.dirs = l.dirs
	l.partial = w.control(eye, made) || l.partial
	if l.partial && !w.partial {
		w.pending.Partial = true
	}
	w.partial = l.partial
}

// pathMax is how much of a path is reported, in bytes.
const pathMax = 300

// found notes what is to be told. The path of a repository is that of the directory in which it is.
func (w *Watch) found(f protocol.Found) {
	f.Path = told(f.Kind, f.Path)
	if f.Link != "" {
		f.Link = shown(f.Link)
	}
	if len(w.pending.Found) < protocol.FoundMax {
		w.pending.Found = append(w.pending.Found, f)
		return
	}
	w.pending.More++
	if f.Link != "" { // no flood hides an alarm
		if i := slices.IndexFunc(w.pending.Found, func(f protocol.Found) bool { return f.Link == "" }); i >= 0 {
			w.pending.Found[i] = f
		}
	}
}

// told is the path of a found as people read it.
func told(kind protocol.FoundKind, path string) string {
	switch kind {
	case protocol.FoundRepository, protocol.FoundGitLink, protocol.FoundStore, protocol.FoundEnvrc:
		path, _ = split(path)
		path += "/"
	case protocol.FoundBare:
		path += "/"
	}
	if path == "./" {
		path = "the workspace"
	}
	return shown(path)
}

// shown is a path of which no part acts on a terminal.
func shown(path string) string {
	if len(path) > pathMax {
		path = path[:pathMax] + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(path, "�"))
}
