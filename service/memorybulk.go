package service

import (
	"context"
	"encoding/hex"
	"fmt"

	"wf/agentkit/embed"
	"wf/agentkit/memory"
	"wf/agentkit/memory/files"
	"wf/api"
	"wf/protocol"
)

// How many notes, and about how many bytes of their texts, are sent to a memory at once.
const (
	notesTogether = 500
	bytesTogether = protocol.MemoryMax
)

// Loaded is what LoadMemories did.
type Loaded struct {
	Scope string // in full
	Added int
	Known int // that were there already
}

// LoadMemories remembers what a memory, of this process or elsewhere, does not hold yet. All of it is looked at
// before anything is remembered.
func LoadMemories(ctx context.Context, m api.Memory, scope, model string, items []api.MemoryItem) (Loaded, error) {
	for i, x := range items {
		if _, err := (memory.Note{Content: x.Content, Tags: x.Tags}).Kept(); err != nil {
			return Loaded{}, fmt.Errorf("item %d of the dump, id %d: %w", i+1, x.ID, err)
		}
	}
	out := Loaded{Known: len(items)}
	for first := true; first || len(items) > 0; first = false {
		r := api.Remember{Scope: scope, Model: model, New: true, Notes: []api.Note{}}
		size := 0
		for len(items) > 0 && len(r.Notes) < notesTogether && (len(r.Notes) == 0 || size+len(items[0].Content) <= bytesTogether) {
			x := items[0]
			r.Notes = append(r.Notes, api.Note{Content: x.Content, Tags: x.Tags, Pinned: x.Pinned, Special: x.Special, Place: x.Place})
			size += len(x.Content)
			items = items[1:]
		}
		done, err := m.Remember(ctx, r)
		if err != nil {
			return out, err
		}
		out.Scope = done.Scope
		out.Added += done.Added
		out.Known -= done.Added
	}
	return out, nil
}

// FilesIndexed is what IndexFiles did.
type FilesIndexed struct {
	files.Report
	Scope    string // in full
	Model    string
	Embedded int
}

// IndexFiles remembers the files below a directory of this machine in a memory, of this process or elsewhere.
// reading and embedding are told how far it has come. Where vectors cannot be made the pieces are kept: there is an
// error then and what was done.
func IndexFiles(ctx context.Context, m api.Memory, scope, model, dir string, reading, embedding func(done, of int)) (*FilesIndexed, error) {
	r, err := files.Index(ctx, placed{m, scope, model}, dir, reading)
	if err != nil {
		return nil, err
	}
	out := &FilesIndexed{Report: r}
	one, err := m.Memories(ctx, api.MemoryQuery{Scope: scope, Sums: true, Part: api.Part{Limit: 1}})
	if err != nil {
		return nil, err
	}
	out.Scope, out.Model = one.Scope, one.Model
	if out.Model == "" {
		out.Model = embed.LexicalName
	}
	x, err := m.Reindex(ctx, api.Reindex{Scope: scope}, embedding)
	if err == nil {
		out.Embedded = x.Embedded
	}
	return out, err
}

// placed keeps pieces of files in a memory of a service.
type placed struct {
	in           api.Memory
	scope, model string
}

func (p placed) Placed(ctx context.Context) ([]files.Placed, error) {
	list, err := p.in.Memories(ctx, api.MemoryQuery{Scope: p.scope, Sums: true})
	if err != nil {
		return nil, err
	}
	var out []files.Placed
	for _, m := range list.Items {
		if m.Place == nil {
			continue
		}
		x := files.Placed{ID: m.ID, Place: *m.Place}
		sum, err := hex.DecodeString(m.Sum)
		if err != nil || copy(x.Sum[:], sum) != len(sum) || len(sum) != len(x.Sum) {
			return nil, fmt.Errorf("memory %d of %s has the sum %.80q: %w", m.ID, list.Scope, m.Sum, protocol.ErrBadRequest)
		}
		out = append(out, x)
	}
	return out, nil
}

func (p placed) Remember(ctx context.Context, notes []memory.Note) error {
	r := api.Remember{Scope: p.scope, Model: p.model}
	for _, n := range notes {
		r.Notes = append(r.Notes, api.Note{Content: n.Content, Tags: n.Tags, Pinned: n.Pinned, Place: n.Place})
	}
	_, err := p.in.Remember(ctx, r)
	return err
}

func (p placed) Edit(ctx context.Context, targets []memory.Target) error {
	c := api.MemoryChanges{Scope: p.scope}
	for _, x := range targets {
		c.Changes = append(c.Changes, api.MemoryChange{ID: x.ID, Place: x.Place, Remove: x.Remove})
	}
	_, err := p.in.ChangeMemories(ctx, c)
	return err
}
