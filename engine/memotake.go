package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"wf/cas"
	"wf/protocol"
	"wf/protocol/tree"
	"wf/roles"
	"wf/roles/workspace"
)

// result is a memo that was read.
type result struct {
	memo       protocol.Memo
	link       protocol.Link
	conclusion protocol.Conclusion
	changes    []tree.Change
	paths      []string
}

// errLost is a memo of which a part is gone.
var errLost = errors.New("a part of it is not stored any more")

// take looks for a result and has it take the place of performing the visit; where it does not, miss says why.
func (m *memoizing) take() (done bool, miss protocol.NotReused, c protocol.Conclusion, err error) {
	stored, ok, err := cas.FindMemo(m.ctx, m.e.Store, m.key)
	if err != nil {
		return false, miss, c, err
	}
	if !ok {
		miss, err = m.nearest()
		return false, miss, c, err
	}
	release, err := m.e.Store.Hold(m.ctx)
	if err != nil {
		return false, miss, c, err
	}
	defer release()
	miss = protocol.NotReused{Key: m.key}
	r, err := m.read(stored.Memo)
	switch {
	case errors.Is(err, errLost):
		miss.Why = protocol.MemoLost
		return false, miss, c, nil
	case err != nil:
		return false, miss, c, err
	}
	miss.Origin = r.memo.Origin
	lasts := m.turn.Role.Caching.For
	if age := m.e.now() - stored.At; lasts > 0 && age >= lasts {
		miss.Why = protocol.MemoExpired
		miss.Detail = protocol.NewText(fmt.Sprintf("it was stored %s ago", (time.Duration(age) * time.Microsecond).Round(time.Second)))
		return false, miss, c, nil
	}
	if m.hides(r) {
		miss.Why, miss.Detail = protocol.MemoCannot, protocol.NewText("a secret would have been hidden in the result of "+r.memo.Origin)
		return false, miss, c, nil
	}
	if miss.Part, err = m.blocked(r); err != nil || miss.Part != "" {
		miss.Why = protocol.MemoConflict
		return false, miss, c, err
	}
	reused := protocol.Reused{Opening: r.memo.Opening, Memo: r.link.String(), Key: m.key, Origin: r.memo.Origin, Files: len(r.changes), Spared: sparedOf(stored)}
	if err := m.emit(m.ctx, reused); err != nil {
		return false, miss, c, err
	}
	if miss.Part, err = m.change(r); err != nil || miss.Part != "" {
		miss.Why = protocol.MemoConflict
		return false, miss, c, err
	}
	return true, miss, r.conclusion, nil
}

// goOn goes on where a process ended that had taken a result.
func (m *memoizing) goOn(was *protocol.Reused) (done bool, c protocol.Conclusion, err error) {
	release, err := m.e.Store.Hold(m.ctx)
	if err != nil {
		return false, c, err
	}
	defer release()
	miss := protocol.NotReused{Key: was.Key, Origin: was.Origin, Why: protocol.MemoLost}
	link, err := protocol.ParseLink(was.Memo)
	if err != nil {
		return false, c, err
	}
	r, err := m.read(link)
	if err == nil && r.memo.Key != was.Key {
		err = errLost
	}
	if err == nil {
		miss.Why = protocol.MemoConflict
		if miss.Part, err = m.change(r); err == nil && miss.Part == "" {
			return true, r.conclusion, nil
		}
	}
	if err != nil && !errors.Is(err, errLost) {
		return false, c, err
	}
	return false, c, m.miss(miss)
}

// read reads a memo with all that it leads to, or fails with errLost.
func (m *memoizing) read(link protocol.Link) (*result, error) {
	read := m.e.reader(m.ctx)
	r := &result{link: link}
	lost := func(err error) error {
		if m.ctx.Err() != nil {
			return m.ctx.Err()
		}
		return fmt.Errorf("%w: %w", errLost, err)
	}
	if err := decode(read, link, &r.memo); err != nil {
		return nil, lost(err)
	}
	if r.memo.Kind != protocol.KindMemo || r.memo.V != protocol.RecordVersion {
		return nil, lost(protocol.ErrInvalidBlock)
	}
	if r.memo.Output.Defined() {
		text, err := protocol.PayloadBytes(read, r.memo.Output)
		if err != nil {
			return nil, lost(err)
		}
		r.conclusion.Text = new(string(text))
	}
	if r.memo.Data.Defined() {
		data, err := protocol.PayloadBytes(read, r.memo.Data)
		if err != nil {
			return nil, lost(err)
		}
		r.conclusion.Data = data
	}
	for _, c := range r.memo.Changes {
		x := tree.Change{Path: c.Path, After: tree.Entry{Mode: tree.Mode(c.After.Mode), Link: c.After.Link, Size: c.After.Size}, Before: tree.Entry{Mode: tree.Mode(c.Before.Mode), Size: c.Before.Size}}
		if c.Before.Hash != "" {
			var err error
			if x.Before.Link, err = protocol.ParseLink(c.Before.Hash); err != nil {
				return nil, lost(err)
			}
		}
		if x.After.Mode != "" {
			content, err := tree.Open(tree.Read(read), x.After)
			if err == nil {
				_, err = io.Copy(io.Discard, content)
			}
			if err != nil {
				return nil, lost(err)
			}
		}
		r.changes, r.paths = append(r.changes, x), append(r.paths, c.Path)
	}
	return r, nil
}

// hides reports whether a result tells what is a secret by now, and was none when it was stored.
func (m *memoizing) hides(r *result) bool {
	clean := roles.NewRedactor(roles.Secrets(os.Environ(), m.turn.Secrets)).String
	text := string(r.conclusion.Data)
	if r.conclusion.Text != nil {
		text += "\n" + *r.conclusion.Text
	}
	return clean(text) != text
}

// same reports whether the same lies at a path, under whatever name an entry tells of it.
func same(a, b tree.Entry) bool { return a.Mode == b.Mode && a.Link == b.Link && a.Size == b.Size }

// blocked is a path of a result at which neither lies what lay there before nor what is to lie there; "" for none.
func (m *memoizing) blocked(r *result) (string, error) {
	now, err := m.lying(m.turn.Workspace, r.paths)
	if err != nil {
		return "", err
	}
	for _, c := range r.changes {
		if e := now[c.Path]; !same(e, c.Before) && !same(e, c.After) {
			return c.Path, nil
		}
	}
	return "", nil
}

// change changes the files of the workspace as a result says, and returns when they are on disk. blocked is a path that was
// left alone, since something else lies there.
func (m *memoizing) change(r *result) (blocked string, err error) {
	read := tree.Read(m.e.reader(m.ctx))
	return m.restore(r.changes, func(it tree.Item) (io.ReadCloser, error) {
		content, err := tree.Open(read, it.Entry)
		return io.NopCloser(content), err
	})
}

// restore puts changes into the workspace, with the directories that they need.
func (m *memoizing) restore(changes []tree.Change, open func(tree.Item) (io.ReadCloser, error)) (blocked string, err error) {
	if len(changes) == 0 {
		return "", nil
	}
	leave, err := heldIn(m.turn.Workspace)
	if err != nil {
		return "", err
	}
	for _, c := range changes {
		if leave(c.Path) != "" {
			return c.Path, nil
		}
	}
	out, err := workspace.Restore(m.ctx, m.turn.Workspace, withDirectories(changes), workspace.Restoring{Open: open})
	if err != nil {
		return "", err
	}
	if len(out.Conflicts) > 0 {
		return out.Conflicts[0].Path, nil
	}
	return "", workspace.Flush(m.turn.Workspace)
}

// withDirectories puts before changes the directories in which their files lie.
func withDirectories(changes []tree.Change) (out []tree.Change) {
	made := map[string]bool{}
	for _, c := range changes {
		for i := range c.Path {
			if dir := c.Path[:i]; c.Path[i] == '/' && c.After.Mode != "" && !made[dir] {
				made[dir] = true
				out = append(out, tree.Change{Path: dir, After: tree.Entry{Name: dir, Mode: tree.Dir}})
			}
		}
		out = append(out, c)
	}
	return out
}

// sparedOf is how long the performance took, in ms.
func sparedOf(stored cas.StoredMemo) int64 {
	if len(stored.Data) != 8 {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(stored.Data))
}
