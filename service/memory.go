package service

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"wf/agentkit/embed"
	"wf/agentkit/memory"
	"wf/api"
	"wf/cas"
	"wf/protocol"
	"wf/service/compose"
	"wf/service/query"
)

// inMemory runs do with a memory, and notes its head outside of the store if do moved it.
func (l *Local) inMemory(ctx context.Context, scope, model string, do func(*memory.Store) error) error {
	if model != "" {
		if err := l.mayEmbed(ctx, model); err != nil {
			return err
		}
		if _, err := l.OpenEmbedder(model); err != nil {
			return err
		}
	}
	m, err := l.OpenMemory(ctx, l.Store, compose.MemoryScope(scope), model)
	if err != nil {
		return err
	}
	before, _ := m.Head()
	err = do(m)
	if after, _ := m.Head(); after != before {
		l.NoteMemory(ctx, l.Store, m.Scope())
	}
	return errors.Join(err, m.Close())
}

// mayEmbed is nil if the asker of a request may choose an embedding model: it is sent what is remembered, and
// costs what its provider asks. The owner may choose any, others the built-in one and what the config allows.
func (l *Local) mayEmbed(ctx context.Context, model string) error {
	if id, ok := api.CallerOf(ctx); !ok || id.Owner || model == embed.LexicalName {
		return nil
	}
	c, err := l.Config()
	if err != nil || c.AllowsModel(model) {
		return err
	}
	return protocol.ErrForbidden.With("leave --model out, use a token of scope admin at wf serve itself, or have the owner add the model to allow_models: in the config of its user",
		"the embedding model %q is not one that this token may choose", model)
}

// Scopes lists the memories of the store.
func (l *Local) Scopes(ctx context.Context) (*api.MemoryScopes, error) {
	names, err := cas.Memories(ctx, l.Store)
	if err != nil {
		return nil, err
	}
	out := &api.MemoryScopes{Items: []api.MemoryScope{}, Schema: "wf.memory_scopes/v1"}
	for _, name := range names {
		err := l.inMemory(ctx, name, "", func(m *memory.Store) error {
			return m.View(ctx, func(st *memory.State) {
				out.Items = append(out.Items, api.MemoryScope{Scope: name, Memories: st.Len(), Pinned: len(st.Pins()), Model: st.Model, Head: st.Head.String(), Seq: st.Seq})
			})
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Memories lists what a memory holds.
func (l *Local) Memories(ctx context.Context, q api.MemoryQuery) (out *api.Memories, err error) {
	err = l.inMemory(ctx, q.Scope, "", func(m *memory.Store) error {
		out = &api.Memories{Items: []api.MemoryItem{}, Schema: "wf.memories/v1", Scope: m.Scope()}
		var found []listed
		if err := m.View(ctx, func(st *memory.State) { out.Model, found = st.Model, pick(st, q) }); err != nil {
			return err
		}
		found, err := behind(found, q.After)
		if err != nil {
			return err
		}
		size := 0
		for i, x := range found {
			item, err := l.item(ctx, m, memory.Hit{Memory: x.Memory}, q.Sums)
			if err != nil {
				return err
			}
			if q.Full(i, size, len(item.Content)) {
				out.Next = found[i-1].place()
				return nil
			}
			size += len(item.Content)
			out.Items = append(out.Items, item)
		}
		return nil
	})
	return out, err
}

// item is a memory as it is shown, with its text or with the sum of it.
func (l *Local) item(ctx context.Context, m *memory.Store, h memory.Hit, sum bool) (api.MemoryItem, error) {
	item := api.MemoryItem{ID: h.ID, Tags: append([]string{}, h.Tags...), Pinned: h.Pinned, Special: h.Special, Place: h.Place, Distance: h.Distance,
		At: query.Stamp(h.At), Changed: query.Stamp(h.Changed), By: h.By, Run: h.Run, Step: h.Step}
	if sum {
		of := h.Sum()
		item.Sum = hex.EncodeToString(of[:])
		return item, nil
	}
	var err error
	item.Content, err = m.Text(ctx, h.Memory)
	return item, err
}

// listed is a memory at its place in a list: the groups follow one another, ordered by rank.
type listed struct {
	memory.Memory
	group, rank int64
}

// place is what Part.After names it by.
func (x listed) place() string { return fmt.Sprintf("%d.%d", x.group, x.rank) }

// pick lists the memories that are wanted: in the order of their ids, or the anchor, the pinned ones, then the
// newest.
func pick(st *memory.State, q api.MemoryQuery) []listed {
	mode := memory.Any
	if q.AllTags {
		mode = memory.All
	}
	tagged := map[protocol.Seq]bool{}
	if len(q.Tags) > 0 {
		for _, m := range st.ContextFor(q.Tags, mode, st.Len()) {
			tagged[m.ID] = true
		}
	}
	var out []listed
	for m := range st.Newest() {
		if len(q.Tags) > 0 && !tagged[m.ID] || q.Pinned && !m.Pinned {
			continue
		}
		x := listed{Memory: m, group: 2, rank: int64(m.ID)}
		switch {
		case q.Oldest:
			x.group = 0
		case m.Special != "":
			x.group = 0
		case m.Pinned:
			x.group = 1
		default:
			x.rank = -x.rank
		}
		out = append(out, x)
	}
	protocol.Sort(out, compareListed)
	return out
}

func compareListed(a, b listed) int {
	return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.rank, b.rank))
}

// behind are the memories of a list behind a place.
func behind(list []listed, place string) ([]listed, error) {
	if place == "" {
		return list, nil
	}
	var at listed
	if n, err := fmt.Sscanf(place, "%d.%d", &at.group, &at.rank); n != 2 || err != nil || at.place() != place {
		return nil, protocol.ErrUsage.With("give the next of an earlier answer", "%q is no place in a list of memories", place)
	}
	i, found := slices.BinarySearchFunc(list, at, compareListed)
	if found {
		i++
	}
	return list[i:], nil
}

// Memory is one of a scope.
func (l *Local) Memory(ctx context.Context, scope string, id protocol.Seq) (out *api.OneMemory, err error) {
	err = l.inMemory(ctx, scope, "", func(m *memory.Store) error {
		found, there, err := m.Get(ctx, id)
		if err != nil {
			return err
		}
		if !there {
			return memory.NoMemory(m.Scope(), id)
		}
		item, err := l.item(ctx, m, memory.Hit{Memory: found}, false)
		head, seq := m.Head()
		out = &api.OneMemory{Head: head.String(), Memory: item, Schema: "wf.memory/v1", Scope: m.Scope(), Seq: seq}
		return err
	})
	return out, err
}

// Recall finds memories. The embedding model of a memory may cost: callers that may not have models asked
// search by tags, or where the built-in model embeds.
func (l *Local) Recall(ctx context.Context, q api.Recall) (out *api.Recalled, err error) {
	if strings.TrimSpace(q.Text) == "" && len(q.Tags) == 0 {
		return nil, protocol.ErrUsage.With("", "a search of a memory needs a text or a tag")
	}
	if q.Limit < 0 || q.Limit > api.MaxRecalled {
		return nil, protocol.ErrUsage.With("", "limit %d: want 1 to %d", q.Limit, api.MaxRecalled)
	}
	err = l.inMemory(ctx, q.Scope, q.Model, func(m *memory.Store) error {
		model, err := m.Model(ctx)
		if err != nil {
			return err
		}
		if id, ok := api.CallerOf(ctx); ok && !id.Runs && model != embed.LexicalName && strings.TrimSpace(q.Text) != "" {
			return protocol.ErrForbidden.With("search by tags, or use a token of scope run", "a search by meaning in memory %s asks the model %s, which this token may not", m.Scope(), model)
		}
		mode := memory.Any
		if q.AllTags {
			mode = memory.All
		}
		hits, err := m.Recall(ctx, memory.Query{Text: q.Text, Tags: q.Tags, Mode: mode, Limit: q.Limit, Within: q.Within})
		if err != nil {
			return err
		}
		out = &api.Recalled{Items: []api.MemoryItem{}, Model: model, Query: q.Text, Schema: "wf.memory_search/v1", Scope: m.Scope()}
		for _, h := range hits {
			item, err := l.item(ctx, m, h, false)
			if err != nil {
				return err
			}
			out.Items = append(out.Items, item)
		}
		return nil
	})
	return out, err
}
