package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"wf/cas"
	"wf/protocol"
	"wf/protocol/tree"
	"wf/roles"
	"wf/roles/workspace"
)

// tracker records the files of the workspace of a run that is driven. A nil one records none.
type tracker struct {
	e    *Engine
	run  protocol.RunID
	area *area
	pic  picture // belongs to the taking that is under way

	choose func() (tree.Chooser, error)

	entering sync.Mutex
	enter    func(context.Context) error // what is left to do before the first tree of a drive; nil when it is done

	mu   sync.Mutex
	next *shot // what is taken next
}

// A shot is a taking that several attempts may wait for.
type shot struct {
	done chan struct{}
	tree protocol.Link
	old  bool // the tree was kept before
	err  error

	stopped bool // the attempt was that took it: others try again
}

// tracking finds out, at the start of a run, whether its files are recorded, and prepares that. The facts are what there is
// to say of it.
func (d *driver) tracking(ctx context.Context) ([]cas.Draft, error) {
	said := d.s.Tracked
	if d.s.Status().Final() || said != nil && !said.On || said == nil && d.s.Totals.Steps > 0 {
		return nil, nil
	}
	prog := d.s.Program()
	spec := prog.Workflow.Workspace
	if said == nil && !d.e.wantsTracking(prog.Workflow) || d.s.Info.Workspace == "" {
		return nil, nil
	}
	if spec == nil {
		spec = &protocol.Workspace{}
	}
	secrets := roles.Secrets(os.Environ(), declaredSecrets(prog))
	size := cmp.Or(spec.MaxSize, protocol.TrackSize)
	t := &tracker{e: d.e, run: d.run}
	t.pic = picture{run: d.run, dir: d.s.Info.Workspace, taking: workspace.Taking{
		MaxSize: size, MaxTotal: protocol.TrackTotalMax, MaxFiles: protocol.TrackFilesMax,
		Scan: func() workspace.Scanner { return roles.NewFinder(secrets) },
	}}
	if err := t.resume(ctx); err != nil {
		return nil, err
	}
	if said == nil {
		asked := spec.Track != nil
		why, err := t.tooMuch(ctx, spec, asked)
		switch {
		case err == nil && why == "":
		case err == nil && !asked:
			return []cas.Draft{{Data: protocol.FilesTracked{Why: why}}}, nil
		case ctx.Err() != nil:
			return nil, nil // found out when the run goes on
		case !asked:
			return []cas.Draft{{Data: protocol.FilesTracked{Why: clean(err.Error())}}}, nil
		case err == nil:
			return nil, protocol.ErrInvalid.With("leave files out by workspace.exclude or a .wfignore file, or set workspace.track to false", "the files of the workspace %s cannot be recorded: %s", t.pic.dir, why)
		default:
			return nil, fmt.Errorf("the files of the workspace cannot be recorded: %w", err)
		}
	}
	d.tracker = t
	if said == nil {
		t.area = d.e.enterArea(t.pic.dir, secrets, size)
		first, err := t.first(ctx, spec)
		if ctx.Err() != nil {
			d.tracker = nil
			d.e.leaveArea(t.area)
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("record the files of the workspace: %w", err)
		}
		return []cas.Draft{{Data: protocol.FilesTracked{On: true, Tree: first.String()}}}, nil
	}
	first, err := protocol.ParseLink(said.Tree)
	if err != nil {
		return nil, fmt.Errorf("the first tree of the run: %w", err)
	}
	t.enter = func(ctx context.Context) error {
		if t.area == nil {
			t.area = d.e.enterArea(t.pic.dir, secrets, size)
		}
		in, err := t.area.rulesOf(first, tree.Read(d.e.reader(ctx)))
		switch {
		case err == nil:
			return t.rules(spec, func(path string) ([]byte, error) { return in[path], nil })
		case errors.Is(err, protocol.ErrNotFound): // it was dropped: the rules are those that are there
			return t.rules(spec, workspace.RulesOf(t.pic.dir))
		}
		return err
	}
	return nil, nil
}

// entered prepares for the first tree of a drive: most drives of a run that waits take none.
func (t *tracker) entered(ctx context.Context) error {
	t.entering.Lock()
	defer t.entering.Unlock()
	if t.enter == nil {
		return nil
	}
	err := t.enter(ctx)
	if err == nil {
		t.enter = nil
	}
	return err
}

// untrack is called at the end of a drive, when no attempt acts any more.
func (d *driver) untrack() {
	if d.tracker != nil && d.tracker.area != nil {
		d.e.leaveArea(d.tracker.area)
	}
}

// wantsTracking reports whether the files of a workflow's workspace are recorded, if they are not too many.
func (e *Engine) wantsTracking(w *protocol.Workflow) bool {
	if w.Workspace != nil && w.Workspace.Track != nil {
		return *w.Workspace.Track
	}
	for i := range w.Roles {
		if r := &w.Roles[i]; r.Action == protocol.ActPrompt && e.mayWrite(r, "") {
			return true
		}
	}
	return false
}

// mayWrite reports whether a role, or a call of a tool of it, may change the files of the workspace.
func (e *Engine) mayWrite(r *protocol.Role, tool string) bool {
	if r.Action == protocol.ActRun || r.Action == protocol.ActMerge {
		return true
	}
	if r.Action != protocol.ActPrompt {
		return false
	}
	w, ok := e.Performers[r.Action].(roles.Writer)
	return !ok || w.MayWrite(r, tool)
}

// resume finds the trees that the run keeps already. A fork begins with those of its base.
func (t *tracker) resume(ctx context.Context) error {
	h, err := t.e.Store.Head(ctx, protocol.FilesHead(t.run))
	if err != nil {
		return err
	}
	if !h.Link.Defined() {
		return nil
	}
	data, err := t.e.Store.Block(ctx, h.Link)
	if err != nil {
		return fmt.Errorf("the files of run %s: %w", t.run, err)
	}
	var kept protocol.FilesKept
	if err := cas.Decode(data, &kept); err != nil {
		return fmt.Errorf("the files of run %s: %w", t.run, err)
	}
	t.pic.head, t.pic.last = h.Link, kept.Tree
	return nil
}

// tooMuch says why the files are not recorded: there are more than there may be.
func (t *tracker) tooMuch(ctx context.Context, spec *protocol.Workspace, asked bool) (why string, err error) {
	if err := t.rules(spec, workspace.RulesOf(t.pic.dir)); err != nil {
		return "", err
	}
	x := t.pic.taking
	if !asked {
		x.MaxFiles, x.MaxTotal = protocol.TrackFiles, protocol.TrackTotal
	}
	x.Dry, x.Whole = true, true
	if x.Choose, err = t.choose(); err != nil {
		return "", err
	}
	_, _, err = workspace.Take(ctx, t.pic.dir, x)
	limit, tooMuch := errors.AsType[*workspace.LimitError](err)
	if !tooMuch {
		return "", err
	}
	if limit.Key == "max_files" {
		return fmt.Sprintf("the workspace has more than %d files", x.MaxFiles), nil
	}
	return fmt.Sprintf("the files of the workspace have more than %d MB", x.MaxTotal>>20), nil
}

// rules says what is left out.
func (t *tracker) rules(spec *protocol.Workspace, read tree.Rules) error {
	include, err := tree.NewGlobs(spec.Include)
	if err != nil {
		return err
	}
	out := spec.Exclude
	if store, err := filepath.Rel(t.pic.dir, t.e.Store.Dir()); err == nil && filepath.IsLocal(store) && store != "." {
		out = append(slices.Clip(out), globChars.Replace(filepath.ToSlash(store)))
	}
	exclude, err := tree.NewGlobs(out)
	t.choose = func() (tree.Chooser, error) { return tree.NewIgnored(read, include, exclude) }
	return err
}

// globChars has globs take what it is given as it is.
var globChars = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "!", `\!`)

// first takes the tree of a run that begins. The rules of what is left out are those in the tree, also where they changed
// while it was taken, or a file of them is not in it.
func (t *tracker) first(ctx context.Context, spec *protocol.Workspace) (root protocol.Link, err error) {
	var mu sync.Mutex
	there, used := workspace.RulesOf(t.pic.dir), map[string][]byte{}
	err = t.rules(spec, func(path string) ([]byte, error) {
		text, err := there(path)
		if len(text) > 0 && len(text) <= tree.IgnoreMax {
			mu.Lock()
			defer mu.Unlock()
			used[path] = text
		}
		return text, err
	})
	for range roundsOfRules {
		if err != nil {
			return root, err
		}
		if root, _, err = t.take(ctx); err != nil {
			return root, err
		}
		in, err := rulesIn(tree.Read(t.e.reader(ctx)), root)
		if err != nil {
			return root, err
		}
		same := maps.EqualFunc(in, used, bytes.Equal)
		used = in
		if err := t.rules(spec, func(path string) ([]byte, error) { return in[path], nil }); err != nil || same {
			return root, err
		}
	}
	return root, err
}

// roundsOfRules is how often the first tree is taken at most: each time the rules were others than it has.
const roundsOfRules = 4

// rulesIn are the files of rules that a tree has, by their paths, but empty ones.
func rulesIn(read tree.Read, root protocol.Link) (map[string][]byte, error) {
	out := map[string][]byte{}
	for it, err := range tree.Walk(read, root) {
		if err != nil {
			return nil, err
		}
		if !tree.HasRules(it.Path) || it.Mode != tree.File && it.Mode != tree.Exec || it.Size == 0 || it.Size > tree.IgnoreMax {
			continue
		}
		r, err := tree.Open(read, it.Entry)
		if err != nil {
			return nil, err
		}
		if out[it.Path], err = io.ReadAll(r); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// take takes the tree as it is now, or a moment later. old reports that the run kept it already.
func (t *tracker) take(ctx context.Context) (root protocol.Link, old bool, err error) {
	for {
		t.mu.Lock()
		s, own := t.next, t.next == nil
		if own {
			s = &shot{done: make(chan struct{})}
			t.next = s
		}
		t.mu.Unlock()
		if own {
			t.shoot(ctx, s)
			close(s.done)
			return s.tree, s.old, s.err
		}
		select {
		case <-s.done:
		case <-ctx.Done():
			return root, false, context.Cause(ctx)
		}
		if !s.stopped || ctx.Err() != nil {
			return s.tree, s.old, s.err
		}
	}
}

// shoot takes what several attempts may wait for: those that come before it has begun.
func (t *tracker) shoot(ctx context.Context, s *shot) {
	begun := false
	begin := func() {
		t.mu.Lock()
		t.next, begun = nil, true
		t.mu.Unlock()
	}
	s.err = t.area.locked(ctx, func() (err error) {
		begin()
		before := t.pic.last
		if t.pic.taking.Choose, err = t.choose(); err == nil {
			err = t.area.take(ctx, t.e, &t.pic)
		}
		if errors.Is(err, protocol.ErrHeadMoved) { // an archive brought files of the run, or they were restored
			if err = t.resume(ctx); err == nil {
				err = t.area.take(ctx, t.e, &t.pic)
			}
		}
		s.tree, s.old = t.pic.last, t.pic.last == before
		return err
	})
	if !begun {
		begin()
	}
	s.stopped = s.err != nil && ctx.Err() != nil
}

// A recording is that of an attempt. A nil one records nothing.
type recording struct {
	t     *tracker
	turn  *protocol.Turn
	here  *stay
	calls sync.Map // tools by call
}

// record begins to record an attempt that may write. What was there before is durable, before the attempt changes anything.
func (d *driver) recorded(ctx context.Context, turn *protocol.Turn, here *stay, emit roles.Emit) (*recording, error) {
	t := d.tracker
	if t == nil || here == nil {
		return nil, nil
	}
	if err := t.entered(ctx); err != nil {
		return nil, fmt.Errorf("record the files of the workspace: %w", err)
	}
	r := &recording{t: t, turn: turn, here: here}
	x, old := r.look(ctx, protocol.FilesBefore)
	err := ctx.Err()
	if old {
		ctx = roles.Soon(ctx)
	}
	if err == nil {
		err = emit(ctx, x)
	}
	return r, err
}

// look takes the tree. A workspace that cannot be read is a note, and stops no attempt.
func (r *recording) look(ctx context.Context, phase string) (x protocol.FilesAt, old bool) {
	x = protocol.FilesAt{Attempt: r.turn.Attempt, Phase: phase}
	root, old, err := r.t.take(ctx)
	if err != nil {
		x.Why = clean(err.Error())
		return x, false
	}
	x.Tree = root.String()
	return x, old
}

// watch has emit record what tool calls leave, beside their results.
func (r *recording) watch(emit roles.Emit) roles.Emit {
	if r == nil {
		return emit
	}
	return func(ctx context.Context, data ...protocol.Data) error {
		wrote := ""
		for _, x := range data {
			switch x := x.(type) {
			case protocol.ToolCall:
				r.calls.Store(x.Call, x.Name)
			case protocol.ToolResult:
				if name, ok := r.calls.LoadAndDelete(x.Call); !ok || r.t.e.mayWrite(&r.turn.Role, name.(string)) {
					wrote = x.Call
				}
			}
		}
		if wrote != "" {
			if x, old := r.look(ctx, protocol.FilesCall); !old && ctx.Err() == nil {
				x.Call = wrote
				data = append(slices.Clip(data), x)
			}
		}
		return emit(ctx, data...)
	}
}

// after is what the attempt left, once nothing of it acts any more; nil where it was stopped.
func (r *recording) after(ctx context.Context) *protocol.FilesAt {
	if r == nil {
		return nil
	}
	x, _ := r.look(ctx, protocol.FilesAfter)
	if ctx.Err() != nil {
		return nil
	}
	if x.Overlaps, x.OverlapsCount = r.here.overlaps(); x.OverlapsCount == len(x.Overlaps) {
		x.OverlapsCount = 0
	}
	return &x
}
