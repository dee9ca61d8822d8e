package compose

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"wf/agentkit/embed"
	"wf/agentkit/memory"
	"wf/cas"
	"wf/protocol"
	"wf/store"
)

// memoryJournal is the journal of a memory in a store, as memory.Store wants it.
type memoryJournal struct {
	*cas.Chain
	s     store.Store
	scope string
	warn  func(error)
}

// Snapshot reads what KeepSnapshot wrote.
func (j memoryJournal) Snapshot(ctx context.Context) ([]byte, protocol.Link, bool) {
	d, ok, err := j.s.Derived(ctx, protocol.MemoryHead(j.scope))
	return d.Data, d.Head, ok && err == nil // where the store cannot be read, the journal says so
}

// KeepSnapshot keeps what a memory adds up to. Without it the journal is read.
func (j memoryJournal) KeepSnapshot(ctx context.Context, data []byte, head protocol.Link) {
	err := j.s.Commit(ctx, cas.Batch{Derived: []cas.Derived{{Key: protocol.MemoryHead(j.scope), Head: head, Data: data}}})
	if err != nil && !errors.Is(err, protocol.ErrReadOnly) {
		j.warn(fmt.Errorf("the state of memory %s was not kept, the next command reads all of it: %w", j.scope, err))
	}
}

func (j memoryJournal) Append(ctx context.Context, seq protocol.Seq, head protocol.Link, changes []memory.Change) ([]protocol.Entry, error) {
	drafts := make([]cas.Draft, len(changes))
	for i, c := range changes {
		drafts[i] = cas.Draft{Step: c.Step, Data: c.Data}
	}
	return j.Chain.Append(ctx, time.Now().UnixMicro(), cas.EventRef{Seq: seq, CID: head}, drafts)
}

func (j memoryJournal) Text(ctx context.Context, l protocol.Link) (string, error) {
	b, err := protocol.ReadPayload(ctx, j.s, l)
	return string(b), err
}

// OpenMemory opens a memory; model is the embedding model that is asked for, "" the one it has.
func (u *Setup) OpenMemory(ctx context.Context, s store.Store, scope, model string) (*memory.Store, error) {
	m, err := cas.OpenMemory(s, scope)
	if err != nil {
		return nil, err
	}
	return memory.Open(ctx, memory.Config{Scope: scope, Journal: memoryJournal{m, s, scope, u.Warn}, Vectors: filepath.Join(s.Beside(), "vectors"), Embed: u.OpenEmbedder, Model: model})
}

// OpenEmbedder opens an embedding model by the config.
func (u *Setup) OpenEmbedder(name string) (embed.Embedder, error) {
	u.opened.mu.Lock() // the config is read once
	defer u.opened.mu.Unlock()
	c, err := u.Config()
	if err != nil {
		return nil, err
	}
	return c.Embedder(name)
}

// openMemories keeps the memories of agents open: their state is read once and then followed.
type openMemories struct {
	mu   sync.Mutex
	open map[memoryKey]*memory.Store
}

type memoryKey struct {
	store        store.Store
	scope, model string
}

// AgentMemory opens the memories of roles, for an engine over s.
func (u *Setup) AgentMemory(s store.Store) func(context.Context, protocol.Turn) (*memory.Store, error) {
	return func(ctx context.Context, turn protocol.Turn) (*memory.Store, error) {
		key := memoryKey{s, AgentScope(turn.Workflow, turn.Role), turn.Role.Memory.Embed}
		u.memories.mu.Lock()
		defer u.memories.mu.Unlock()
		if m := u.memories.open[key]; m != nil {
			return m, nil
		}
		m, err := u.OpenMemory(ctx, s, key.scope, key.model)
		if err != nil {
			return nil, err
		}
		if u.memories.open == nil {
			u.memories.open = map[memoryKey]*memory.Store{}
		}
		u.memories.open[key] = m
		return m, nil
	}
}

// AgentScope is the memory of a role that has one: its own, the workflow's, the user's, or a shared one.
func AgentScope(workflow string, r protocol.Role) string {
	switch scope := r.Memory.Scope; scope {
	case "", protocol.MemoryRole:
		return "role/" + scopePart(workflow) + "/" + scopePart(r.Name)
	case protocol.MemoryWorkflow:
		return "workflow/" + scopePart(workflow)
	default:
		return MemoryScope(scope)
	}
}

// MemoryScope is a scope in full: "" and user alone are the memory of the user of this process.
func MemoryScope(scope string) string {
	if scope == "" || scope == protocol.MemoryUser {
		return "user/" + scopePart(User())
	}
	return scope
}

// scopePart is a name as a part of a scope: what has a meaning there is escaped.
func scopePart(name string) string {
	if name = url.PathEscape(name); name == "" || strings.Trim(name, ".") == "" {
		return "_" + name
	}
	return name
}

// NoteMemory keeps the head of a memory outside of the store, as note does for runs.
func (u *Setup) NoteMemory(ctx context.Context, s store.Store, scope string) {
	state := cas.StateDir(os.Getenv)
	if state == "" {
		return
	}
	ctx = context.WithoutCancel(ctx)
	h, err := s.Head(ctx, protocol.MemoryHead(scope))
	if err == nil {
		err = cas.See(ctx, state, s.Dir(), []cas.Head{h})
	}
	if err != nil {
		u.warnf("the newest head of the memory was not noted outside of the store: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
}

// MemoryScopes are the memories of the store; none where it cannot be read.
func (u *Setup) MemoryScopes(ctx context.Context) (out []string) {
	err := u.WithStore(ctx, func(s store.Store) (err error) {
		out, err = cas.Memories(ctx, s)
		return err
	})
	if err != nil {
		return nil
	}
	return out
}
