package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"wf/protocol"
	"wf/protocol/tree"
	"wf/roles"
	"wf/roles/workspace"
)

// A command with cache: true takes the whole workspace for its inputs. In the workspace nothing shows who changed a file: it may have
// been the command, another visit, another process or the user. So it works in a copy of its own, where all that changes is the
// command's alone:
//
//	key of the files ─► copy, which has the files of the key ─► performed ─► what changed ─► workspace ─► memo stored
//
// Where that cannot be, it works in the workspace, and its result is not kept.

// Why a result of a command is not kept that takes the whole workspace.
const (
	whyOthers  = "another visit acted in the workspace meanwhile"
	whyMoved   = "the files changed while they were copied"
	whyReach   = "it changed in the workspace meanwhile, where the command may have read or written it"
	whyMet     = "it was changed in the workspace while the command made it in a copy, and stays; the command was performed again in the workspace"
	whyMetFail = "it was changed in the workspace while the command made it in a copy, and stays"
)

// A wholeCopy is the copy of a workspace in which a command works.
type wholeCopy struct {
	m      *memoizing
	turn   protocol.Turn
	before outline             // of the copy
	placed bool                // the command finds it where the workspace lies, and nothing of that
	dress  map[string]dressing // of its files, before
	left   string              // a directory that the command removed, and that is still in the workspace
}

// performWhole performs a command that takes the whole workspace for its inputs.
func (m *memoizing) performWhole(s *roles.Spot, keep bool) (c protocol.Conclusion, err error) {
	began := m.e.now()
	turn := m.turn
	if turn.Confined {
		turn.Reuse.Private = s.Private()
	}
	if !keep {
		return m.by.Perform(m.ctx, turn, m.emit)
	}
	x := &wholeCopy{m: m, turn: turn}
	part, why := "", whyOthers
	if !m.metOthers() {
		if part, why, err = x.make(s); err != nil {
			return c, err
		}
	}
	if why != "" {
		return m.performUnkept(turn, part, why)
	}
	c, failed := m.by.Perform(m.ctx, x.turn, m.heard.through(m.emit, m.follows.Ear))
	if _, concluded := errors.AsType[*protocol.Failure](failed); failed != nil && (!concluded || m.ctx.Err() != nil) {
		return c, failed // it was stopped, or could not be performed: it changes nothing
	}
	files, all, tooMuch, err := x.changes()
	if err != nil {
		return c, err
	}
	if part, why = "", whyOthers; !m.metOthers() {
		part, why = x.meanwhile()
	}
	blocked, err := x.hand(all)
	switch {
	case err != nil:
		return c, err
	case blocked != "" && failed != nil:
		return c, cmp.Or(m.notStored(blocked, whyMetFail), failed)
	case blocked != "":
		return m.performUnkept(turn, blocked, whyMet)
	case failed != nil:
		return c, failed
	}
	unkept, not, files := m.judge(files, nil)
	switch {
	case tooMuch != "":
		part, why = "", tooMuch
	case x.left != "":
		part, why = x.left, "it was removed in the copy, and holds what was not copied in the workspace"
	case why == "" && not != "":
		part, why = unkept, not
	}
	if why != "" {
		return c, m.notStored(part, why)
	}
	return c, m.store(x.turn.Workspace, files, c, (m.e.now()-began)/1000)
}

// performUnkept performs the command in the workspace.
func (m *memoizing) performUnkept(turn protocol.Turn, part, why string) (protocol.Conclusion, error) {
	c, err := m.by.Perform(m.ctx, turn, m.emit)
	if err == nil {
		err = m.notStored(part, why)
	}
	return c, err
}

// make makes the copy, with the files of the key; why says what prevents it.
func (x *wholeCopy) make(s *roles.Spot) (part, why string, err error) {
	m, dir := x.m, s.Work()
	if x.placed = m.e.placesCopies(&x.turn); x.placed {
		x.turn.At = x.turn.Workspace
	} else if dir, err = s.Fresh(); err != nil {
		return "", "", err
	}
	root, err := m.e.scratchRoot()
	if err != nil {
		return "", "", err
	}
	_, err = workspace.Copy(m.ctx, x.turn.Workspace, dir, workspace.Copying{Choose: everything(), Max: memoTotal, MaxFiles: memoFiles, Without: root})
	if err == nil {
		x.before, err = shoot(m.ctx, dir, everything(), true)
	}
	switch {
	case m.ctx.Err() != nil:
		return "", "", context.Cause(m.ctx)
	case err != nil: // the disk may be full: the workspace needs none of it
		return "", "the files cannot be copied: " + err.Error(), nil
	case x.before.root != m.files.root:
		return "", whyMoved, nil
	}
	x.turn.Workspace = dir
	aside(&x.turn)
	part, err = x.look()
	if part != "" {
		why = "it is a link that leads out of the workspace, and of no copy"
	}
	return part, why, err
}

// look looks at the files of the copy before they are changed. outward is a link that leads to another place there than in the
// workspace; "" where there is none.
func (x *wholeCopy) look() (outward string, err error) {
	root, err := os.OpenRoot(x.turn.Workspace)
	if err != nil {
		return "", err
	}
	defer root.Close()
	if err := x.dressed(root); err != nil {
		return "", err
	}
	for it, err := range x.before.walk() {
		if err != nil {
			return "", err
		}
		if it.Mode != tree.Link {
			continue
		}
		text, err := root.Readlink(filepath.FromSlash(it.Path))
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(text) && leadsOut(it.Path, text) {
			return it.Path, nil
		}
	}
	return "", nil
}

// changes are what the command changed in the copy: files and links, and all with directories. tooMuch says that this is more than
// a result may have.
func (x *wholeCopy) changes() (files, all []tree.Change, tooMuch string, err error) {
	m := x.m
	after, err := shoot(m.ctx, x.turn.Workspace, everything(), true)
	if limit, ok := errors.AsType[*workspace.LimitError](err); ok {
		tooMuch = "the files are too many or too large: " + limit.Error()
	}
	if tooMuch != "" || err == nil && hasOver(&after) { // all of it belongs into the workspace
		after, err = shootLarge(m.ctx, x.turn.Workspace, everything(), true)
	}
	if err != nil {
		return nil, nil, "", err
	}
	if files, _, err = changed(&x.before, &after); err != nil {
		return nil, nil, "", err
	}
	both := func(l protocol.Link) ([]byte, error) {
		if b, ok := x.before.nodes[l]; ok {
			return b, nil
		}
		return after.read(l)
	}
	for c, err := range tree.Diff(both, x.before.root, after.root) {
		if err != nil {
			return nil, nil, "", err
		}
		if c.Before.Mode != tree.Omitted && c.After.Mode != tree.Omitted {
			all = append(all, c)
		}
		if c.After.Size > memoFileSize && tooMuch == "" {
			tooMuch = fmt.Sprintf("the files are too many or too large: %s: it has more than %d MB", c.Path, memoFileSize>>20)
		}
	}
	return files, all, tooMuch, nil
}

// hasOver reports whether a file was left out for its size.
func hasOver(s *outline) bool {
	for it, err := range s.walk() {
		if err == nil && it.Mode == tree.Omitted && it.Why == tree.WhySize {
			return true
		}
	}
	return false
}

// shootLarge is shoot for files of any size, as many as a tree can have.
func shootLarge(ctx context.Context, dir string, choose tree.Chooser, whole bool) (outline, error) {
	s := outline{nodes: map[protocol.Link][]byte{}}
	t := taking(choose, s.put)
	t.Whole, t.MaxSize, t.MaxTotal, t.MaxFiles = whole, protocol.MaxSafeInt, protocol.MaxSafeInt, tree.WalkMax
	var err error
	s.root, _, err = workspace.Take(ctx, dir, t)
	return s, err
}

// meanwhile says what changed in the workspace since the key was made, where the command could see or write it. Walls that show the
// copy in its place leave it nothing of the workspace.
func (x *wholeCopy) meanwhile() (part, why string) {
	if x.placed {
		return "", ""
	}
	now, err := x.m.look()
	if err == nil && now.root == x.m.files.root {
		return "", ""
	}
	if err == nil {
		var files, dirs []tree.Change
		if files, dirs, err = changed(&x.m.files, &now); err == nil {
			for _, c := range append(files, dirs...) {
				return c.Path, whyReach
			}
		}
	}
	return "", fmt.Sprintf("it is not known whether the workspace changed meanwhile: %v", err)
}

// hand puts what the command changed into the workspace. blocked is a path at which something else lies than the command began
// with; nothing was changed then.
func (x *wholeCopy) hand(all []tree.Change) (blocked string, err error) {
	if len(all) == 0 {
		return "", x.redress(nil)
	}
	if blocked, err = x.blocked(all); blocked != "" || err != nil {
		return blocked, err
	}
	leave, err := heldIn(x.m.turn.Workspace)
	if err != nil {
		return "", err
	}
	for _, c := range all {
		if why := leave(c.Path); why != "" {
			return "", &protocol.Failure{Class: "cache", ErrorInfo: protocol.ErrorInfo{Code: "outputs_conflict", Phase: "cache",
				Message: fmt.Sprintf("what the command made was not put into the workspace: %s: %s. A command that changes it cannot have cache", c.Path, why)}}
		}
	}
	root, err := os.OpenRoot(x.turn.Workspace)
	if err != nil {
		return "", err
	}
	defer root.Close()
	out, err := workspace.Restore(x.m.ctx, x.m.turn.Workspace, all, workspace.Restoring{Open: contentIn(root)})
	if err != nil {
		return "", err
	}
	for _, c := range out.Conflicts {
		if i := slices.IndexFunc(all, func(a tree.Change) bool { return a.Path == c.Path }); all[i].Before.Mode == tree.Dir {
			x.left = c.Path // what was not copied lies in it
			continue
		}
		return "", &protocol.Failure{Class: "cache", ErrorInfo: protocol.ErrorInfo{Code: "outputs_conflict", Phase: "cache",
			Message: fmt.Sprintf("%s was changed in the workspace while the command made it: %s", c.Path, c.Why)}}
	}
	return "", x.redress(all)
}

// blocked is a path at which neither lies what lay there when the copy was made nor what is to lie there; "" for none.
func (x *wholeCopy) blocked(all []tree.Change) (string, error) {
	var paths []string
	nets := map[string]tree.Change{} // of files and links alone; what becomes a directory, or was one, is two changes
	for _, c := range all {
		net, again := nets[c.Path]
		if !again {
			paths = append(paths, c.Path)
		}
		if c.Before.Mode != tree.Dir && c.Before.Mode != "" {
			net.Before = c.Before
		}
		if net.After = c.After; c.After.Mode == tree.Dir {
			net.After = tree.Entry{}
		}
		nets[c.Path] = net
	}
	now, err := shootLarge(x.m.ctx, x.m.turn.Workspace, choosePaths(paths), false)
	if err != nil {
		return "", err
	}
	there := map[string]tree.Entry{}
	for it, err := range now.walk() {
		if err != nil {
			return "", err
		}
		there[it.Path] = it.Entry
	}
	for _, p := range paths {
		if e, net := there[p], nets[p]; !same(e, net.Before) && !same(e, net.After) {
			return p, nil
		}
	}
	return "", nil
}

// A dressing is what a file has besides its content.
type dressing struct {
	perm fs.FileMode
	at   time.Time // of its last change
}

func dressOf(root *os.Root, path string) (dressing, error) {
	is, err := root.Lstat(filepath.FromSlash(path))
	if err != nil {
		return dressing{}, err
	}
	return dressing{is.Mode().Perm(), is.ModTime()}, nil
}

func (d dressing) same(other dressing) bool { return d.perm == other.perm && d.at.Equal(other.at) }

// dressed notes the permissions and times of the files of the copy.
func (x *wholeCopy) dressed(root *os.Root) error {
	x.dress = map[string]dressing{}
	for it, err := range x.before.walk() {
		if err == nil && it.Mode != tree.Link {
			x.dress[it.Path], err = dressOf(root, it.Path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// redress gives files in the workspace the permissions and times that the command gave them: what is private stays so, and tools that
// compare times find what they left. A file to which another process gave others stays as it is.
func (x *wholeCopy) redress(all []tree.Change) error {
	from, err := os.OpenRoot(x.turn.Workspace)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenRoot(x.m.turn.Workspace)
	if err != nil {
		return err
	}
	defer to.Close()
	written := map[string]bool{}
	for _, c := range all {
		if c.After.Mode != "" && c.After.Mode != tree.Link {
			written[c.Path] = true
			x.dress[c.Path] = dressing{}
		}
	}
	for path, was := range x.dress {
		is, err := dressOf(from, path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && is.same(was) {
			continue
		}
		if err != nil {
			return err
		}
		if now, err := dressOf(to, path); err != nil || !written[path] && !now.same(was) {
			continue // another process has it by now
		}
		name := filepath.FromSlash(path)
		err = to.Chmod(name, is.perm)
		if err == nil {
			err = to.Chtimes(name, is.at, is.at)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
