package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"wf/api"
	"wf/protocol"
	"wf/protocol/tree"
	"wf/roles/workspace"
)

// prepare reads the run, and finds out what confines the check: an agent may have written what it executes, and of a run from
// elsewhere anyone.
func (s *filesSearch) prepare(ctx context.Context) error {
	v, err := s.Engine.View(ctx, s.Run)
	if err != nil {
		return err
	}
	state, err := s.Engine.State(ctx, s.Run)
	if err != nil {
		return err
	}
	err = s.Engine.Own(ctx, s.Run)
	s.run, s.foreign = v, err != nil
	if err != nil && !errors.Is(err, protocol.ErrForeign) && !errors.Is(err, protocol.ErrRolledBack) && !errors.Is(err, protocol.ErrHeld) {
		return err
	}
	prog := state.Program()
	s.agents = prog.HasAgent()
	if s.foreign {
		switch {
		case s.Check.Sandbox == protocol.SandboxOff:
			return protocol.ErrUsage.With("leave --check-sandbox out, or lay the files out with wf restore --to DIR and look at them first", "run %s came from elsewhere: a check of its files is always confined", s.Run)
		case len(s.Carry) > 0:
			return protocol.ErrUsage.With("leave --carry out", "run %s came from elsewhere: its workspace is not here", s.Run)
		}
		s.Check.Sandbox = protocol.SandboxOn
	}
	if len(s.Carry) == 0 {
		return nil
	}
	if state.Tracked == nil || !state.Tracked.On {
		return nil // between says that no files are recorded
	}
	s.carry, err = s.unrecorded(prog.Workflow.Workspace, state.Tracked.Tree)
	return err
}

// open opens what is remembered of the files of this run under this check.
func (s *filesSearch) open() (err error) {
	arguments, err := json.Marshal([]any{"files", s.Store.Dir(), s.Run, strings.TrimSpace(s.Check.Command), s.Check.Sandbox, s.Carry})
	if err != nil {
		return err
	}
	// Where nothing is carried no workspace is copied, and the place for copies may lie in it.
	s.notes, err = openNotes[noted]("bisect", arguments, s.run.Info.Workspace, len(s.Carry) == 0, s.Anew)
	if errors.Is(err, protocol.ErrUsage) {
		err = protocol.Hinted(err, "leave --carry out, or name another place for copies with XDG_CACHE_HOME")
	}
	return err
}

// checked is what the check says of a tree.
func (s *filesSearch) checked(ctx context.Context, root protocol.Link, n int, t *api.LookTrial) (c api.LookCheck, why string, err error) {
	if ctx.Err() != nil {
		return c, "", context.Cause(ctx)
	}
	if known, ok := s.notes.known[noteKey(root, n)]; ok {
		return api.LookCheck{Verdict: known.Run.Verdict, Exit: known.Run.Exit, Remembered: true}, known.Why, nil
	}
	if s.Trials > 0 && s.out.Checks >= s.Trials {
		return c, "", ErrBisectLimit.With("the same command with a higher --max-trials goes on", "%s were made, which is all that --max-trials allows", protocol.Plural(s.out.Checks, "check"))
	}
	dir := filepath.Join(s.notes.dir, "work", fmt.Sprintf("%s-%d", root, n))
	if err := workspace.RemoveAll(dir); err != nil { // of a process that was killed
		return c, "", err
	}
	defer func() { err = errors.Join(err, workspace.RemoveAll(dir)) }()
	s.Tell(s.out, t)
	if err := s.layOut(ctx, root, dir); errors.Is(err, protocol.ErrNotFound) {
		return c, "", &notKeptError{api.NotKept(s.Run, root, err)}
	} else if err != nil {
		return c, "", err
	}
	j, err := s.Check.Judge(ctx, s.Local, s.run, dir, s.agents)
	if err != nil {
		return c, "", err
	}
	c.Verdict, c.Exit = j.Verdict, j.Exit
	return c, j.Why, s.notes.add(noted{root, n, api.TrialRun{Run: s.Run, Status: s.run.Status, Exit: c.Exit, Verdict: c.Verdict}, j.Why})
}

// A notKeptError is why files cannot be laid out: blocks of them are gone.
type notKeptError struct{ error }

// layOut writes the files of a tree, with those that are carried: what was recorded counts.
func (s *filesSearch) layOut(ctx context.Context, root protocol.Link, dir string) error {
	items, err := itemsOf(s.read, root)
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if s.carry != nil {
		_, err := workspace.Copy(ctx, s.run.Info.Workspace, dir, workspace.Copying{Choose: s.carry, Max: trialMaxSize, MaxFiles: trialMaxFiles, Inward: true, Without: s.Store.Beside()})
		if limit, ok := errors.AsType[*workspace.CopyError](err); ok {
			err = protocol.ErrUsage.With("name fewer files", "--carry: %s", limit)
		}
		if err != nil {
			return err
		}
	}
	laid, err := workspace.Lay(dir, items, workspace.Laying{Force: s.carry != nil, Open: func(it tree.Item) (io.ReadCloser, error) {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		r, err := tree.Open(s.read, it.Entry)
		return io.NopCloser(r), err
	}})
	for _, x := range laid.Skipped {
		s.leaveOut(x)
	}
	return err
}

// itemsOf are the files of a tree.
func itemsOf(read tree.Read, root protocol.Link) (items []tree.Item, err error) {
	for it, err := range tree.Walk(read, root) {
		if err != nil {
			return nil, err
		}
		items = append(items, it)
	}
	return items, nil
}

// leftOutShown is how many paths that are not laid out an answer names.
const leftOutShown = 100

func (s *filesSearch) leaveOut(what string) {
	if s.leftOut[what] {
		return
	}
	s.leftOut[what] = true
	if s.out.LeftOutCount++; len(s.out.LeftOut) < leftOutShown {
		s.out.LeftOut = append(s.out.LeftOut, what)
		slices.Sort(s.out.LeftOut)
	}
}

// unrecorded chooses what the globs of Carry do, of the files that the run did not record: by the rules of its first tree, for
// later ones may have been written by agents.
func (s *filesSearch) unrecorded(spec *protocol.Workspace, first string) (tree.Chooser, error) {
	if spec == nil {
		spec = &protocol.Workspace{}
	}
	wanted, err := tree.NewGlobs(s.Carry)
	if err != nil {
		return nil, protocol.ErrUsage.With("", "--carry: %s", err)
	}
	root, err := protocol.ParseLink(first)
	if err != nil {
		return nil, err
	}
	include, err := tree.NewGlobs(spec.Include)
	if err != nil {
		return nil, err
	}
	exclude, err := tree.NewGlobs(spec.Exclude)
	if err != nil {
		return nil, err
	}
	recorded, err := tree.NewIgnored(func(path string) ([]byte, error) {
		e, err := tree.Find(s.read, root, path)
		if errors.Is(err, protocol.ErrUnknownArtifact) || err == nil && (e.Mode != tree.File && e.Mode != tree.Exec || e.Size > tree.IgnoreMax) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		r, err := tree.Open(s.read, e)
		if err != nil {
			return nil, err
		}
		return io.ReadAll(r)
	}, include, exclude)
	if err != nil {
		return nil, api.NotKept(s.Run, root, err)
	}
	return complement{wanted.Top(), recorded}, nil
}

// A complement chooses what another chooser does not, of what is wanted.
type complement struct{ wanted, but tree.Chooser } // but is nil where it chooses nothing

func (c complement) Takes(name string) bool {
	return c.wanted.Takes(name) && (c.but == nil || !c.but.Takes(name))
}

func (c complement) Enter(name string) (tree.Chooser, error) {
	wanted, err := c.wanted.Enter(name)
	if err != nil || wanted == nil {
		return nil, err
	}
	if c.but == nil {
		return wanted, nil
	}
	but, err := c.but.Enter(name)
	return complement{wanted, but}, err
}
