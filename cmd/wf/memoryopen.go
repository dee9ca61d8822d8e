package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
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
)

// memoryJournal is the journal of a memory in a store, as memory.Store wants it.
type memoryJournal struct {
	s     *cas.Store
	m     *cas.Memory
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

func (j memoryJournal) After(ctx context.Context, from protocol.Seq) iter.Seq2[protocol.Entry, error] {
	return j.m.After(ctx, from)
}

func (j memoryJournal) Append(ctx context.Context, seq protocol.Seq, head protocol.Link, changes []memory.Change) ([]protocol.Entry, error) {
	drafts := make([]cas.Draft, len(changes))
	for i, c := range changes {
		drafts[i] = cas.Draft{Step: c.Step, Data: c.Data}
	}
	return j.m.Append(ctx, time.Now().UnixMicro(), cas.EventRef{Seq: seq, CID: head}, drafts)
}

func (j memoryJournal) Text(ctx context.Context, l protocol.Link) (string, error) {
	b, err := protocol.ReadPayload(ctx, j.s, l)
	return string(b), err
}

// vectorsDir is where a store keeps the vectors of its memories. They are derived.
func vectorsDir(s *cas.Store) string { return filepath.Join(s.Dir(), "vectors") }

// openMemory opens a memory; model is the embedding model that is asked for, "" the one it has.
func (a *app) openMemory(ctx context.Context, s *cas.Store, scope, model string) (*memory.Store, error) {
	m, err := s.Memory(scope)
	if err != nil {
		return nil, err
	}
	return memory.Open(ctx, memory.Config{Scope: scope, Journal: memoryJournal{s, m, scope, a.warn}, Vectors: vectorsDir(s), Embed: a.openEmbedder, Model: model})
}

// openEmbedder opens an embedding model by the config.
func (a *app) openEmbedder(name string) (embed.Embedder, error) {
	a.opened.mu.Lock() // the config is read once
	defer a.opened.mu.Unlock()
	c, err := a.config()
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
	store        *cas.Store
	scope, model string
}

// agentMemory opens the memories of roles, for an engine over s.
func (a *app) agentMemory(s *cas.Store) func(context.Context, protocol.Turn) (*memory.Store, error) {
	return func(ctx context.Context, turn protocol.Turn) (*memory.Store, error) {
		key := memoryKey{s, scopeOf(turn, whoami()), turn.Role.Memory.Embed}
		a.memories.mu.Lock()
		defer a.memories.mu.Unlock()
		if m := a.memories.open[key]; m != nil {
			return m, nil
		}
		m, err := a.openMemory(ctx, s, key.scope, key.model)
		if err != nil {
			return nil, err
		}
		if a.memories.open == nil {
			a.memories.open = map[memoryKey]*memory.Store{}
		}
		a.memories.open[key] = m
		return m, nil
	}
}

// scopeOf is the memory of a role: its own, the workflow's, the user's, or a shared one.
func scopeOf(turn protocol.Turn, user string) string {
	switch scope := turn.Role.Memory.Scope; scope {
	case "", protocol.MemoryRole:
		return "role/" + scopePart(turn.Workflow) + "/" + scopePart(turn.Role.Name)
	case protocol.MemoryWorkflow:
		return "workflow/" + scopePart(turn.Workflow)
	case protocol.MemoryUser:
		return userScope(user)
	default:
		return scope
	}
}

func userScope(user string) string { return "user/" + scopePart(user) }

// scopePart is a name as a part of a scope: what has a meaning there is escaped.
func scopePart(name string) string {
	if name = url.PathEscape(name); name == "" || strings.Trim(name, ".") == "" {
		return "_" + name
	}
	return name
}

// withMemory runs f with the memory that --scope names, and notes its head if f moved it. A
// store is made when there is none and make is set.
func (a *app) withMemory(ctx context.Context, f memoryFlags, make bool, do func(*cas.Store, *memory.Store) error) error {
	open := a.existingStore
	if make {
		open = a.openStore
	}
	s, err := open(ctx)
	if err != nil {
		return err
	}
	if f.model != "" {
		if _, err := a.openEmbedder(f.model); err != nil {
			return errors.Join(err, s.Close())
		}
	}
	m, err := a.openMemory(ctx, s, f.name(), f.model)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	before, _ := m.Head()
	err = do(s, m)
	if after, _ := m.Head(); after != before {
		a.noteMemory(ctx, s, m.Scope())
	}
	return errors.Join(err, m.Close(), s.Close())
}

// noteMemory keeps the head of a memory outside of the store, as note does for runs.
func (a *app) noteMemory(ctx context.Context, s *cas.Store, scope string) {
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
		a.progress("warning: the newest head of the memory was not noted outside of the store: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
}

// memoryFlags say which memory a command works on.
type memoryFlags struct {
	scope string // --scope
	model string // --model
}

// name is the scope in full: user alone is that of who asks.
func (f memoryFlags) name() string {
	if f.scope == "" || f.scope == protocol.MemoryUser {
		return userScope(whoami())
	}
	return f.scope
}

// tellOthers says on stderr which other memories there are, where the one asked for is empty.
func (a *app) tellOthers(ctx context.Context, s *cas.Store, scope string) error {
	scopes, err := s.Memories(ctx)
	if err != nil {
		return err
	}
	var others []string
	for _, name := range scopes {
		if name != scope {
			others = append(others, name)
		}
	}
	if len(others) > 10 {
		others = append(others[:10], fmt.Sprintf("and %d more", len(others)-10))
	}
	a.progress("nothing is remembered in %s", scope)
	if len(others) > 0 {
		a.progress("there is %s: name one with --scope", strings.Join(others, ", "))
	}
	return nil
}
