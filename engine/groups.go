package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"wf/cas"
	"wf/engine/lang"
	"wf/engine/rules"
	"wf/protocol"
	"wf/roles"
)

// A concurrency group of a store is the block that its head names. It moves in the commit of the event that tells of it,
// from the value that the writer last saw: so two processes never take one slot, and a process that is killed leaves
// the group as the journals say. A slot stays with its run until that run gives it back, or cannot go on any more.

// groupAt is a group as a writer saw it.
type groupAt struct {
	rules.Group
	head protocol.Link // null where the store has none yet
}

// group reads a group; one that was never used is empty.
func (e *Engine) group(ctx context.Context, name string) (g groupAt, err error) {
	g.Group.Group = protocol.Group{Kind: protocol.KindGroup, V: protocol.RecordVersion, Name: name}
	h, err := e.Store.Head(ctx, protocol.GroupHead(name))
	if err != nil || !h.Link.Defined() {
		return g, err
	}
	g.head = h.Link
	err = e.readGroup(ctx, h.Link, &g.Group.Group)
	if err == nil && g.Name != name {
		err = fmt.Errorf("head %s is that of the concurrency group %q, not %q: %w", h.Name, g.Name, name, protocol.ErrCorrupt)
	}
	return g, err
}

func (e *Engine) readGroup(ctx context.Context, link protocol.Link, g *protocol.Group) error {
	data, err := e.Store.Block(ctx, link)
	if err == nil {
		err = cas.Decode(data, g)
	}
	if err != nil {
		return fmt.Errorf("concurrency group, block %s: %w", link.Short(), err)
	}
	return nil
}

// Groups are the concurrency groups of the store that something holds or waits for, by name.
func (e *Engine) Groups(ctx context.Context) ([]protocol.Group, error) {
	heads, err := e.Store.Heads(ctx, protocol.GroupHeads)
	if err != nil {
		return nil, err
	}
	var out []protocol.Group
	for _, h := range heads {
		var g protocol.Group
		if err := e.readGroup(ctx, h.Link, &g); err != nil {
			return nil, err
		}
		if len(g.Slots)+len(g.Queue) > 0 {
			out = append(out, g)
		}
	}
	protocol.Sort(out, func(a, b protocol.Group) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// changes are the block and the move that set the group to what it is now, with other blocks; the blocks alone where g is
// nil.
func (g *groupAt) changes(blocks []cas.Block) ([]cas.Block, []cas.Move, error) {
	if g == nil {
		return blocks, nil, nil
	}
	block, err := cas.Encode(g.Group.Group)
	if err != nil || block.Link == g.head {
		return blocks, nil, err
	}
	return append(blocks, block), []cas.Move{{Name: protocol.GroupHead(g.Name), Old: g.head, New: block.Link, Note: "group"}}, nil
}

// groupsOf are the names of the groups of a run that begins, without its secrets.
func groupsOf(p *lang.Program, inputs protocol.JSON, hide *roles.Redactor) (map[string]string, error) {
	if !p.Grouped() {
		return nil, nil
	}
	given, err := lang.DecodeObject(inputs)
	if err != nil {
		return nil, err
	}
	names, err := p.Groups(given)
	for role, name := range names {
		names[role] = hide.String(name)
	}
	return names, err
}

// want is a run or an attempt that wants a slot of a group.
type want struct {
	rules.Entry
	group  string
	refuse bool
	cancel bool                // older runs of its workflow are cancelled for it
	idle   map[int64]time.Time // tickets before it that no process waits with, and since when this process sees that
}

// turnOf is what a run wants by the group of its workflow; nil where it has none.
func (e *Engine) turnOf(ctx context.Context, run protocol.RunID, parent *protocol.ParentRun, w *protocol.Workflow, names map[string]string) (*want, error) {
	if w.Concurrency == nil || names[""] == "" {
		return nil, nil
	}
	root, within, err := e.lineage(ctx, run, parent)
	if err != nil {
		return nil, err
	}
	return newWant(protocol.Use{Run: run}, root, within, w.Concurrency, names[""], parent == nil), nil
}

func newWant(u protocol.Use, root protocol.RunID, within []protocol.Use, c *protocol.Concurrency, name string, isRoot bool) *want {
	return &want{Entry: rules.Entry{Use: u, Root: root, Within: within, Max: c.Slots()}, group: name,
		refuse: c.OnBusy == protocol.BusyRefuse, cancel: c.OnBusy == protocol.BusyCancelOld && isRoot, idle: map[int64]time.Time{}}
}

// parentOf is the step that a run is the sub-workflow of, nil where it stands for itself, as a fork does.
func parentOf(s *rules.State) *protocol.ParentRun {
	if s.Info.Forked.Defined() {
		return nil
	}
	return s.Info.Parent
}

// lineage is the root of a run, and what the run is a part of, itself included.
func (e *Engine) lineage(ctx context.Context, run protocol.RunID, parent *protocol.ParentRun) (root protocol.RunID, within []protocol.Use, err error) {
	root, within = run, []protocol.Use{{Run: run}}
	for depth := 0; parent != nil; depth++ {
		if depth > deepest {
			return "", nil, inCircles(run)
		}
		root, within = parent.Run, append(within, protocol.Use{Run: parent.Run, Step: parent.Step}, protocol.Use{Run: parent.Run})
		s, err := e.State(ctx, parent.Run)
		if err != nil {
			return "", nil, err
		}
		parent = parentOf(s)
	}
	return root, within, nil
}

// overtake is how long what waits for a slot is seen without a process that waits with it before others pass it. So one that
// was just begun, or is about to be driven again, keeps its turn.
const overtake = time.Second

// room reports whether there is room for w in g, after g was cleared of what stands in its way and cannot act any more.
func (e *Engine) room(ctx context.Context, g *groupAt, w *want) (ok bool, err error) {
	gone := map[protocol.Use]bool{}
	if !g.Room(w.Entry, func(protocol.Claim) bool { return true }) { // no slot is free
		for _, s := range g.Slots {
			for _, u := range s.Uses {
				if u.Run == w.Run {
					continue
				}
				if gone[u], err = e.gone(ctx, u); err != nil {
					return false, err
				}
			}
		}
		if !g.Sweep(func(u protocol.Use) bool { return gone[u] }) {
			return false, nil
		}
	}
	ok = g.Room(w.Entry, func(c protocol.Claim) (passed bool) {
		if err != nil || c.Run == w.Run {
			return false
		}
		var driven bool
		if driven, err = e.Store.Driven(ctx, c.Run); err != nil || driven {
			delete(w.idle, c.Ticket)
			return false
		}
		if gone[c.Use], err = e.gone(ctx, c.Use); gone[c.Use] || err != nil {
			return err == nil
		}
		since, seen := w.idle[c.Ticket]
		if !seen {
			since = time.Now()
			w.idle[c.Ticket] = since
		}
		return time.Since(since) >= overtake
	})
	g.Sweep(func(u protocol.Use) bool { return gone[u] })
	return ok && err == nil, err
}

// gone reports whether what is in a group cannot act any more, so that nothing will give its slot back: no process drives
// it, and it has ended, or what it is a part of.
func (e *Engine) gone(ctx context.Context, u protocol.Use) (bool, error) {
	driven, err := e.Store.Driven(ctx, u.Run)
	if err != nil || driven {
		return false, err
	}
	for depth := 0; depth <= deepest; depth++ {
		s, err := e.State(ctx, u.Run)
		switch {
		case errors.Is(err, protocol.ErrUnknownRun), errors.Is(err, protocol.ErrRunDeleted):
			return true, nil
		case errors.Is(err, protocol.ErrCorrupt): // it may act once it was put right
			e.warn(fmt.Errorf("run %s keeps its place in a concurrency group: %w", u.Run, err))
			return false, nil
		case err != nil:
			return false, err
		case s.Status().Final():
			return true, nil
		}
		if u.Step != "" {
			v, err := s.Visit(u.Step)
			if err != nil || v.Mode == rules.Ended || depth == 0 && v.Mode != rules.Runs {
				return err == nil || errors.Is(err, protocol.ErrNotFound), nil
			}
		}
		parent := parentOf(s)
		if parent == nil {
			return false, nil
		}
		u = protocol.Use{Run: parent.Run, Step: parent.Step}
	}
	return false, inCircles(u.Run)
}

// takePlace reads the group of w and has w enter it, or wait for its turn, and gives the event that tells of it. An error
// wraps protocol.ErrGroupBusy where w does not wait.
func (e *Engine) takePlace(ctx context.Context, w *want, begins bool) (*groupAt, protocol.Data, error) {
	g, err := e.group(ctx, w.group)
	if err != nil {
		return nil, nil, err
	}
	ok, err := e.room(ctx, &g, w)
	switch {
	case err != nil:
		return nil, nil, err
	case ok:
		return &g, protocol.AdmittedTo{Group: w.group, Ticket: g.Enter(w.Entry)}, nil
	case w.refuse:
		return nil, nil, busy(&g, w)
	}
	behind := before(&g, w)
	return &g, protocol.QueuedFor{Group: w.group, Ticket: g.Queue(w.Entry), Behind: behind, Replaces: w.cancel && begins}, nil
}

// before are the runs that hold the slots, and the one directly before w in the queue.
func before(g *groupAt, w *want) []protocol.RunID {
	var out []protocol.RunID
	add := func(run protocol.RunID) {
		if run != w.Root && !slices.Contains(out, run) {
			out = append(out, run)
		}
	}
	for _, s := range g.Slots {
		add(s.Root)
	}
	queue := g.Group.Group.Queue
	if i := slices.IndexFunc(queue, func(c protocol.Claim) bool { return c.Use == w.Use }); i >= 0 {
		queue = queue[:i]
	}
	if n := len(queue); n > 0 {
		add(queue[n-1].Root)
	}
	return out
}

// busy is the error of a group that is busy.
func busy(g *groupAt, w *want) error {
	runs := before(g, w)
	if len(runs) == 0 {
		return protocol.ErrGroupBusy.With("", "the concurrency group %q is busy with another step of run %s", w.group, w.Root)
	}
	return protocol.ErrGroupBusy.With(fmt.Sprintf("wait until it has ended, or cancel it: wf cancel %s", runs[0]),
		"the concurrency group %q is busy with run %s", w.group, runs[0])
}

// leave takes uses out of a group, in a commit of its own.
func (e *Engine) leave(ctx context.Context, name string, gone func(protocol.Use) bool) error {
	for {
		g, err := e.group(ctx, name)
		if err != nil || !g.Sweep(gone) {
			return err
		}
		blocks, moves, err := g.changes(nil)
		if err != nil {
			return err
		}
		if err = e.Store.Commit(ctx, cas.Batch{Blocks: blocks, Moves: moves}); !errors.Is(err, protocol.ErrHeadMoved) {
			return err
		}
	}
}

// freed takes a run that has ended, and that no process drives, out of its groups. Where that fails, what waits finds out
// by itself.
func (e *Engine) freed(ctx context.Context, run protocol.RunID, names map[string]string) {
	if len(names) == 0 {
		return
	}
	driven, err := e.Store.Driven(ctx, run)
	if driven {
		return // its driver does, when what it performs has ended
	}
	for _, name := range distinct(names) {
		if err == nil {
			err = e.leave(ctx, name, func(u protocol.Use) bool { return u.Run == run })
		}
	}
	if err != nil {
		e.warn(fmt.Errorf("the concurrency groups of run %s are not left yet: %w", run, err))
	}
}

// distinct are the names of groups, each once.
func distinct(names map[string]string) []string {
	return slices.Compact(slices.Sorted(maps.Values(names)))
}
