package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"wf/agentkit/memory"
	"wf/cas"
	"wf/protocol"
	"wf/service/compose"
)

// withMemory runs f with the memory that --scope names, and notes its head if f moved it. A
// store is made when there is none and make is set.
func (a *app) withMemory(ctx context.Context, f memoryFlags, make bool, do func(*cas.Store, *memory.Store) error) error {
	open := a.ExistingStore
	if make {
		open = a.OpenStore
	}
	s, err := open(ctx)
	if err != nil {
		return err
	}
	if f.model != "" {
		if _, err := a.OpenEmbedder(f.model); err != nil {
			return errors.Join(err, s.Close())
		}
	}
	m, err := a.OpenMemory(ctx, s, f.name(), f.model)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	before, _ := m.Head()
	err = do(s, m)
	if after, _ := m.Head(); after != before {
		a.NoteMemory(ctx, s, m.Scope())
	}
	return errors.Join(err, m.Close(), s.Close())
}

// memoryFlags say which memory a command works on.
type memoryFlags struct {
	scope string // --scope
	model string // --model
}

// name is the scope in full: user alone is that of who asks.
func (f memoryFlags) name() string {
	if f.scope == "" || f.scope == protocol.MemoryUser {
		return compose.UserScope(compose.User())
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
	a.Progress("nothing is remembered in %s", scope)
	if len(others) > 0 {
		a.Progress("there is %s: name one with --scope", strings.Join(others, ", "))
	}
	return nil
}
