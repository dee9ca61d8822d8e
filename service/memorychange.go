package service

import (
	"context"
	"crypto/sha256"
	"fmt"

	"wf/agentkit/memory"
	"wf/api"
	"wf/protocol"
)

// origin is who changes a memory.
func origin(ctx context.Context) memory.Origin { return memory.Origin{By: caller(ctx)} }

// Remember adds memories in one commit; the anchor has one of its own, before that.
func (l *Local) Remember(ctx context.Context, r api.Remember) (out *api.Remembered, err error) {
	notes := make([]memory.Note, len(r.Notes))
	for i, n := range r.Notes {
		if notes[i], err = noteOf(ctx, n); err != nil {
			return nil, err
		}
	}
	err = l.inMemory(ctx, r.Scope, r.Model, func(m *memory.Store) error {
		out = &api.Remembered{IDs: make([]protocol.Seq, len(notes)), Schema: "wf.memory_remembered/v1", Scope: m.Scope()}
		taken, anchored, err := known(ctx, m, r.New)
		if err != nil {
			return err
		}
		var fresh []memory.Note
		var at []int // index of each of them
		for i, n := range notes {
			key := keyOf(sha256.Sum256([]byte(n.Content)), n.Tags, n.Place)
			switch {
			case r.Notes[i].Special != "" && (!r.New || !anchored):
				if out.IDs[i], err = anchor(ctx, m, n); err != nil {
					return err
				}
				anchored = true
				out.Added++
			case r.Notes[i].Special == "" && (!r.New || !taken[key]):
				taken[key] = true
				fresh, at = append(fresh, n), append(at, i)
			}
		}
		ids, err := m.Remember(ctx, fresh...)
		if err != nil {
			return err
		}
		for i, id := range ids {
			out.IDs[at[i]] = id
		}
		out.Added += len(fresh)
		head, seq := m.Head()
		out.Head, out.Seq = head.String(), seq
		return nil
	})
	return out, err
}

// noteOf is a note as a memory keeps it.
func noteOf(ctx context.Context, n api.Note) (memory.Note, error) {
	switch {
	case n.Special != "" && n.Special != protocol.SpecialAnchor:
		return memory.Note{}, protocol.ErrUsage.With("", "there is no special memory %q; there is %s", n.Special, protocol.SpecialAnchor)
	case n.Special != "" && len(n.Tags) > 0:
		return memory.Note{}, protocol.ErrUsage.With("", "the anchor memory has no tags and is always pinned")
	}
	return memory.Note{Content: n.Content, Tags: n.Tags, Pinned: n.Pinned, Place: n.Place, Origin: origin(ctx)}.Kept()
}

// known are the memories that are there, and whether an anchor is; nothing is read where it is not wanted.
func known(ctx context.Context, m *memory.Store, wanted bool) (taken map[string]bool, anchored bool, err error) {
	taken = map[string]bool{}
	if !wanted {
		return taken, false, nil
	}
	err = m.View(ctx, func(st *memory.State) {
		for x := range st.Newest() {
			taken[keyOf(x.Sum(), x.Tags, x.Place)] = true
		}
		_, anchored = st.Anchor()
	})
	return taken, anchored, err
}

// keyOf is the same for memories of the same text, tags and place.
func keyOf(sum [sha256.Size]byte, tags []string, place *protocol.MemoryPlace) string {
	if place == nil {
		place = &protocol.MemoryPlace{}
	}
	return memory.KeyOf(append([]string{string(sum[:]), place.File, fmt.Sprint(place.Line, place.End)}, tags...)...)
}

// anchor sets the anchor and gives its id.
func anchor(ctx context.Context, m *memory.Store, n memory.Note) (id protocol.Seq, err error) {
	if err := m.SetAnchor(ctx, n.Content, n.Origin); err != nil {
		return 0, err
	}
	err = m.View(ctx, func(st *memory.State) {
		a, _ := st.Anchor()
		id = a.ID
	})
	return id, err
}

// ChangeMemories changes memories in one commit.
func (l *Local) ChangeMemories(ctx context.Context, c api.MemoryChanges) (out *api.MemoriesChanged, err error) {
	err = l.inMemory(ctx, c.Scope, "", func(m *memory.Store) error {
		targets := make([]memory.Target, len(c.Changes))
		out = &api.MemoriesChanged{IDs: make([]protocol.Seq, len(c.Changes)), Schema: "wf.memory_changed/v1", Scope: m.Scope()}
		for i, x := range c.Changes { // all of them, or none
			if _, there, err := m.Get(ctx, x.ID); err != nil {
				return err
			} else if !there {
				return memory.NoMemory(m.Scope(), x.ID)
			}
			targets[i] = memory.Target{ID: x.ID, Edit: memory.Edit{Tags: x.Tags, Pinned: x.Pinned, Place: x.Place, Remove: x.Remove}}
			out.IDs[i] = x.ID
		}
		err := m.EditAll(ctx, targets, origin(ctx))
		head, seq := m.Head()
		out.Head, out.Seq = head.String(), seq
		return err
	})
	return out, err
}

// Reindex makes vectors that are missing, with another model if one is named.
func (l *Local) Reindex(ctx context.Context, r api.Reindex, tell func(done, of int)) (out *api.Reindexed, err error) {
	if r.Model != "" {
		if err := l.mayEmbed(ctx, r.Model); err != nil {
			return nil, err
		}
	}
	err = l.inMemory(ctx, r.Scope, "", func(m *memory.Store) error {
		out = &api.Reindexed{Schema: "wf.memory_reindexed/v1"}
		out.Scope = m.Scope()
		var err error
		if out.Embedded, err = m.Reindex(ctx, r.Model, origin(ctx), tell); err != nil {
			return err
		}
		return m.View(ctx, func(st *memory.State) { out.Model, out.Memories = st.Model, st.Len() })
	})
	return out, err
}
