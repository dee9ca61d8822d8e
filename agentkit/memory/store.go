package memory

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"wf/agentkit/embed"
	"wf/protocol"
)

// Journal is the journal of one scope.
type Journal interface {
	// After yields the events with seq > from, in order and without a hole; none of a scope
	// that was never written.
	After(ctx context.Context, from protocol.Seq) iter.Seq2[protocol.Entry, error]
	// Append adds events behind the newest one the caller has read (seq 0 and a null head:
	// none), all or nothing, durable when it returns. An error wrapping protocol.ErrHeadMoved
	// means that there are newer ones.
	Append(ctx context.Context, seq protocol.Seq, head protocol.Link, changes []Change) ([]protocol.Entry, error)
	// Text reads a long text of an event.
	Text(ctx context.Context, l protocol.Link) (string, error)
}

// Change is an event before it has a place; Step is "" where no step of a run made it.
type Change struct {
	Step string
	Data protocol.Data
}

// Config is what a Store works with.
type Config struct {
	Scope   string
	Journal Journal

	// Vectors is the directory of the tables of vectors. Several scopes and processes share it.
	Vectors string

	// Embed finds an embedding model by its name; nil is embed.Open.
	Embed func(name string) (embed.Embedder, error)

	// Model is the embedding model that is asked for; "" is the one the memory has, and for a
	// new memory the lexical one.
	Model string
}

// Store is one scope: its State, followed as others write, and its vectors. It is safe for
// concurrent use. Close it after use.
type Store struct {
	c Config

	mu        sync.Mutex
	state     *State
	lentTexts int // that were read one by one

	index index
}

// Open reads the journal of a scope.
func Open(ctx context.Context, c Config) (*Store, error) {
	s := &Store{c: c, state: newState()}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lend(ctx)
	if err := s.refresh(ctx); err != nil {
		return s, err
	}
	s.keep(ctx)
	return s, nil
}

// Scope is the name of the memory.
func (s *Store) Scope() string { return s.c.Scope }

// Close ends the use of the store; what was remembered is on disk already.
func (s *Store) Close() error {
	s.mu.Lock()
	s.keep(context.Background())
	s.mu.Unlock()
	return s.index.close()
}

// refresh takes in what was appended since.
func (s *Store) refresh(ctx context.Context) error {
	for e, err := range s.c.Journal.After(ctx, s.state.Seq) {
		if err == nil {
			if s.state.Seq > 0 && e.Seq == s.state.Seq+1 && e.Prev != s.state.Head {
				err = fmt.Errorf("its history was replaced under us: %w", protocol.ErrHeadMoved)
			} else {
				err = s.state.Apply(&e)
			}
		}
		if err != nil {
			return fmt.Errorf("memory %s: %w", s.c.Scope, err)
		}
	}
	return nil
}

// View runs f on the newest state, which f must not keep.
func (s *Store) View(ctx context.Context, f func(*State)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refresh(ctx); err != nil {
		return err
	}
	f(s.state)
	return nil
}

// Text is the content of a memory.
func (s *Store) Text(ctx context.Context, m Memory) (string, error) {
	switch {
	case m.lent != nil:
		return s.lentText(ctx, m)
	case !m.Content.Link.Defined():
		return m.Content.S, nil
	}
	text, err := s.c.Journal.Text(ctx, m.Content.Link)
	if err != nil {
		return "", fmt.Errorf("memory %d of %s: %w", m.ID, s.c.Scope, err)
	}
	return text, nil
}

// change appends what decide finds right on the newest state. Where another process was faster
// it decides again.
func (s *Store) change(ctx context.Context, decide func(*State) ([]Change, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for last := protocol.Seq(-1); ; {
		if err := s.refresh(ctx); err != nil {
			return err
		}
		changes, err := decide(s.state)
		if err != nil || len(changes) == 0 {
			return err
		}
		entries, err := s.c.Journal.Append(ctx, s.state.Seq, s.state.Head, changes)
		if errors.Is(err, protocol.ErrHeadMoved) && s.state.Seq != last {
			last = s.state.Seq
			continue
		}
		if err != nil {
			return fmt.Errorf("memory %s: %w", s.c.Scope, err)
		}
		for i := range entries {
			if err := s.state.Apply(&entries[i]); err != nil {
				return fmt.Errorf("memory %s: %w", s.c.Scope, err)
			}
		}
		return nil
	}
}

// Head is the newest event that was read or written.
func (s *Store) Head() (protocol.Link, protocol.Seq) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Head, s.state.Seq
}

// Model is the embedding model that finds the memories. One that is asked for, but is not the
// one they are indexed with, is an error wrapping
// protocol.ErrEmbedding.
func (s *Store) Model(ctx context.Context) (name string, err error) {
	verr := s.View(ctx, func(st *State) { name, err = s.modelName(st) })
	return name, errors.Join(verr, err)
}

// modelName is the embedding model of a state.
func (s *Store) modelName(st *State) (string, error) {
	switch {
	case st.Model == "" && s.c.Model == "":
		return embed.LexicalName, nil
	case st.Model == "":
		return s.c.Model, nil
	case s.c.Model == "" || s.c.Model == st.Model:
		return st.Model, nil
	}
	return "", fmt.Errorf("memory %s is indexed with %s, asked for is %s: %w", s.c.Scope, st.Model, s.c.Model,
		protocol.ErrEmbedding.With(fmt.Sprintf("wf memory reindex --scope %s --model %s, or ask with embed: %s", protocol.ShellWord(s.c.Scope), protocol.ShellWord(s.c.Model), st.Model), "%s", protocol.ErrEmbedding.Message))
}
