package engine

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"wf/cas"
	"wf/protocol"
	"wf/protocol/tree"
	"wf/roles"
	"wf/roles/workspace"
)

// claim makes the visit the only one with its key on this machine, and gives it an empty directory.
func (m *memoizing) claim() (*roles.Spot, error) {
	root, err := m.e.scratchRoot()
	if err != nil {
		return nil, err
	}
	m.e.sweep.Do(func() { roles.SweepScratch(root) })
	return roles.Claim(m.ctx, root, m.key[:spotName])
}

// spotName is how much of a key names its directory.
const spotName = 32

// scratchDir is an empty directory, until drop is called.
func (e *Engine) scratchDir() (dir string, drop func(), err error) {
	root, err := e.scratchRoot()
	if err != nil {
		return "", nil, err
	}
	e.sweep.Do(func() { roles.SweepScratch(root) })
	return roles.Scratch(root)
}

// performIn performs the visit and keeps its result for others where that may be.
func (m *memoizing) performIn(s *roles.Spot, keep bool) (c protocol.Conclusion, err error) {
	whole := m.turn.Role.Caching.Whole
	if whole && m.turn.Role.Action == protocol.ActRun {
		return m.performWhole(s, keep)
	}
	began := m.e.now()
	turn, before, there := m.turn, m.files, map[string]tree.Entry{}
	if !whole || turn.Confined {
		turn.Reuse.Private = s.Private()
	}
	if m.turn.Role.Action != protocol.ActRun {
		turn.Reuse = nil // it is for commands
	}
	if !whole {
		turn.Workspace = s.Work()
		if there, err = m.outputsThere(); err == nil {
			before, err = m.stage(s)
		}
		if err != nil {
			return c, err
		}
	}
	if c, err = m.by.Perform(m.ctx, turn, m.heard.through(m.emit, m.follows.Ear)); err != nil {
		return c, err
	}
	switch {
	case whole && !keep:
		return c, nil
	case m.heard.why != "":
		return c, m.notStored("", m.heard.why)
	case m.follows.Sees == roles.SeesNothing:
		return c, m.store(turn.Workspace, nil, c, (m.e.now()-began)/1000)
	}
	after, err := m.after(turn.Workspace)
	if limit, ok := errors.AsType[*workspace.LimitError](err); ok {
		if whole {
			return c, m.notStored("", "the files are too many or too large: "+limit.Error())
		}
		return c, &protocol.Failure{Err: err, Class: "cache", ErrorInfo: protocol.ErrorInfo{Code: "outputs_limit", Phase: "cache",
			Message: limit.Error() + ", which is more than a role with cache can change"}}
	}
	if errors.Is(err, roles.ErrNotReusable) {
		return c, m.notStored("", reasonOf(err))
	}
	if err != nil {
		return c, err
	}
	changes, dirs, err := changed(&before, &after)
	if err != nil {
		return c, err
	}
	part, why, changes := m.judge(changes, there)
	if m.follows.Sees == roles.SeesEverything && why == "" {
		part, why = unkept(&before, &after, dirs, changes)
	}
	if !whole {
		if err := m.hand(s, changes); err != nil {
			return c, err
		}
	}
	switch {
	case !keep:
		return c, nil
	case why == "" && whole && m.metOthers():
		why = whyOthers
	}
	if why != "" {
		return c, m.notStored(part, why)
	}
	return c, m.store(turn.Workspace, changes, c, (m.e.now()-began)/1000)
}

// metOthers reports whether another visit acted in the workspace since its files were looked at, so that this one may have
// read what is not there any more.
func (m *memoizing) metOthers() bool {
	if m.here != nil {
		return m.here.metOthers()
	}
	_, entered := m.e.stays.acting(m.turn.Workspace)
	return m.beside > 0 || entered != m.entered
}

// after is what lies in the directory of the visit when it has been performed.
func (m *memoizing) after(dir string) (outline, error) {
	if m.follows.Sees == roles.SeesEverything {
		return m.e.shootAll(m.ctx, dir)
	}
	return shoot(m.ctx, dir, everything(), !m.turn.Role.Caching.Whole)
}

func everything() tree.Chooser {
	globs, err := tree.NewGlobs([]string{"**"})
	if err != nil {
		panic(err) // it is one
	}
	return globs.Top()
}

// outputsThere is what lies in the workspace where the visit may put its outputs.
func (m *memoizing) outputsThere() (map[string]tree.Entry, error) {
	s, err := m.shootGlobs(m.turn.Workspace, m.turn.Role.Caching.Outputs)
	if err != nil {
		return nil, err
	}
	out := map[string]tree.Entry{}
	for it, err := range s.walk() {
		if err != nil {
			return nil, err
		}
		out[it.Path] = it.Entry
	}
	return out, nil
}

// errMoved is a file that changed while it was copied.
var errMoved = errors.New("the inputs changed while they were copied")

// stage puts the inputs, which are as the key says or an error wrapping errMoved, into an empty directory, where they cannot
// be written.
func (m *memoizing) stage(s *roles.Spot) (outline, error) {
	items := []tree.Item{}
	for it, err := range m.files.walk() {
		if err != nil {
			return outline{}, err
		}
		items = append(items, it)
	}
	root, err := os.OpenRoot(m.turn.Workspace)
	if err != nil {
		return outline{}, err
	}
	defer root.Close()
	laid, err := workspace.Lay(s.Work(), items, workspace.Laying{Open: contentIn(root)})
	switch {
	case errors.Is(err, protocol.ErrCorrupt) || errors.Is(err, fs.ErrNotExist):
		return outline{}, fmt.Errorf("%w: %w", errMoved, err)
	case err != nil:
		return outline{}, err
	case len(laid.Skipped) > 0:
		return outline{}, &protocol.Failure{Class: "cache", ErrorInfo: protocol.ErrorInfo{Code: "inputs_refused", Phase: "cache", Message: "an input cannot be copied: " + laid.Skipped[0]}}
	}
	for _, it := range items {
		mode := fs.FileMode(0o444)
		if it.Mode == tree.Exec {
			mode = 0o555
		}
		if it.Mode == tree.Link {
			continue
		}
		if err := os.Chmod(filepath.Join(s.Work(), filepath.FromSlash(it.Path)), mode); err != nil {
			return outline{}, err
		}
	}
	if dir := m.turn.Role.Dir; dir != "" && filepath.IsLocal(dir) {
		if err := os.MkdirAll(filepath.Join(s.Work(), dir), 0o700); err != nil {
			return outline{}, err
		}
	}
	return shoot(m.ctx, s.Work(), everything(), true)
}

// contentIn reads files and links below a directory.
func contentIn(root *os.Root) func(tree.Item) (io.ReadCloser, error) {
	return func(it tree.Item) (io.ReadCloser, error) {
		if it.Mode != tree.Link {
			return root.Open(it.Path)
		}
		text, err := root.Readlink(it.Path)
		return io.NopCloser(strings.NewReader(text)), err
	}
}

// judge says of what a command changed why it cannot be reused, with the path, and gives the changes that can be made in the
// workspace. there is what lay where outputs belong, in a workspace that the command did not see.
func (m *memoizing) judge(all []tree.Change, there map[string]tree.Entry) (part, why string, changes []tree.Change) {
	blame := func(path, reason string) {
		if why == "" {
			part, why = path, reason
		}
	}
	outputs, err := tree.NewGlobs(m.turn.Role.Caching.Outputs)
	if err != nil {
		blame("", err.Error()) // they were read when the definition was
	}
	for _, c := range all {
		if !m.turn.Role.Caching.Whole && !choosesPath(outputs, c.Path) {
			blame(c.Path, "it is written and not among the outputs")
		}
		if ear := m.follows.Ear; ear != nil && !ear.Wrote(c.Path) {
			blame(c.Path, "it changed meanwhile, and no call of a tool named it")
		}
		if c.Before.Mode == tree.Omitted || c.After.Mode == tree.Omitted {
			blame(c.Path, "it cannot be kept: "+cmp.Or(c.After.Why, c.Before.Why))
			continue
		}
		if c.Before.Mode == "" {
			c.Before = there[c.Path]
		}
		if same(c.Before, c.After) && m.turn.Role.Caching.Whole {
			continue
		}
		changes = append(changes, c)
	}
	return part, why, changes
}

// unkept is what changed besides files in what an agent can see of its workspace, since a result tells of files alone.
func unkept(before, after *outline, dirs, files []tree.Change) (part, why string) {
	if !slices.Equal(before.hidden, after.hidden) {
		return "", "names of git or wf came or went meanwhile"
	}
	for _, d := range dirs {
		in := func(c tree.Change) bool { return c.After.Mode != "" && strings.HasPrefix(c.Path, d.Path+"/") }
		if d.After.Mode != tree.Dir || !slices.ContainsFunc(files, in) {
			return d.Path, "a directory without files came or went"
		}
	}
	return "", ""
}

// hand puts what a command made in its copy into the workspace.
func (m *memoizing) hand(s *roles.Spot, changes []tree.Change) error {
	var unknown []string
	for _, c := range changes {
		if c.Before.Mode == "" {
			unknown = append(unknown, c.Path)
		}
	}
	now, err := m.lying(m.turn.Workspace, unknown)
	if err != nil {
		return err
	}
	outputs, err := tree.NewGlobs(m.turn.Role.Caching.Outputs)
	if err != nil {
		return err
	}
	todo := slices.Clone(changes)
	for i := range todo {
		if c := &todo[i]; c.Before.Mode == "" && !choosesPath(outputs, c.Path) {
			c.Before = now[c.Path] // no output: what it replaces was not looked at before
		}
	}
	root, err := os.OpenRoot(s.Work())
	if err != nil {
		return err
	}
	defer root.Close()
	blocked, err := m.restore(todo, contentIn(root))
	if err == nil && blocked != "" {
		err = &protocol.Failure{Class: "cache", ErrorInfo: protocol.ErrorInfo{Code: "outputs_conflict", Phase: "cache",
			Message: fmt.Sprintf("the output %s was changed in the workspace while it was made", blocked)}}
	}
	return err
}

func (m *memoizing) notStored(part, why string) error {
	return m.emit(roles.Soon(m.ctx), protocol.NotStored{Key: m.key, Part: part, Detail: protocol.NewText(why)})
}

// store keeps a result for others.
func (m *memoizing) store(dir string, changes []tree.Change, c protocol.Conclusion, ms int64) error {
	memo := protocol.Memo{Opening: m.heard.opening, Kind: protocol.KindMemo, V: protocol.RecordVersion, Key: m.key, Origin: m.origin(), Changes: []protocol.MemoChange{}}
	for _, p := range m.parts {
		memo.Parts = append(memo.Parts, protocol.MemoDigest{Name: p.Name, Digest: hex.EncodeToString(p.Digest[:])})
	}
	keep := keeper{e: m.e, ctx: m.ctx, seen: map[protocol.Link][]byte{}}
	defer keep.letGo()
	var made []string
	for _, x := range changes {
		to := protocol.MemoChange{Path: x.Path, Before: protocol.MemoBefore{Mode: string(x.Before.Mode), Size: x.Before.Size}, After: protocol.MemoAfter{Mode: string(x.After.Mode), Link: x.After.Link, Size: x.After.Size}}
		if x.Before.Link.Defined() {
			to.Before.Hash = x.Before.Link.String()
		}
		memo.Changes = append(memo.Changes, to)
		if x.After.Mode != "" {
			made = append(made, x.Path)
		}
	}
	if part, why, err := m.keepFiles(&keep, dir, made, changes); err != nil {
		return err
	} else if why != "" {
		return m.notStored(part, why)
	}
	if c.Text != nil {
		if err := protocol.CheckPayload("the output", len(*c.Text)); err != nil {
			return m.notStored("output", err.Error())
		}
		root, parts := cas.Payload([]byte(settled(*c.Text)))
		memo.Output, keep.blocks = root, append(keep.blocks, parts...)
	}
	if len(c.Data) > 0 {
		raw, err := protocol.CanonicalizeJSON(c.Data)
		if err != nil {
			return nil // it fails where the record is made
		}
		if err := protocol.CheckPayload("the fields", len(raw)); err != nil {
			return m.notStored("output", err.Error())
		}
		root, parts := cas.Payload(raw)
		memo.Data, keep.blocks = root, append(keep.blocks, parts...)
	}
	block, err := cas.Encode(&memo)
	if err != nil {
		return err
	}
	now, err := m.from()
	if err != nil {
		return err
	}
	told, err := json.Marshal(now)
	if err != nil {
		return err
	}
	at := m.e.now()
	return m.e.Store.Commit(m.ctx, cas.Batch{Blocks: append(keep.blocks, block), Fence: fenceOf(m.ctx), Derived: []cas.Derived{
		cas.PutMemo(m.key, cas.StoredMemo{Memo: block.Link, At: at, Data: binary.LittleEndian.AppendUint64(nil, uint64(ms))}),
		cas.PutMemoOf(m.roleID(), cas.StoredMemo{Memo: block.Link, At: at, Data: told}),
	}})
}

// keepFiles stores the content of what was made; why says what cannot be kept.
func (m *memoizing) keepFiles(keep *keeper, dir string, made []string, changes []tree.Change) (part, why string, err error) {
	if len(made) == 0 {
		return "", "", nil
	}
	s := outline{nodes: map[protocol.Link][]byte{}}
	secrets := roles.Secrets(os.Environ(), m.turn.Secrets)
	t := taking(choosePaths(made), func(b tree.Block) error {
		s.nodes[b.Link] = b.Data
		return keep.put(b)
	})
	t.Scan = func() workspace.Scanner { return roles.NewFinder(secrets) }
	if s.root, _, err = workspace.Take(m.ctx, dir, t); err != nil {
		return "", "", err
	}
	has := map[string]tree.Entry{}
	for it, err := range s.walk() {
		if err != nil {
			return "", "", err
		}
		has[it.Path] = it.Entry
		if it.Mode == tree.Link && leadsOut(it.Path, string(s.nodes[it.Link])) {
			return it.Path, "it is a link that leads out of the workspace", nil
		}
	}
	for _, c := range changes {
		switch e := has[c.Path]; {
		case c.After.Mode == "" || same(e, c.After):
		case e.Mode == tree.Omitted:
			return c.Path, "it cannot be kept: " + e.Why, nil
		default:
			return c.Path, "it changed while it was kept", nil
		}
	}
	return "", "", nil
}
