package memory

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"wf/agentkit/embed"
	"wf/protocol"
)

// index finds the rows of the memories in the table of the model. It is derived.
type index struct {
	mu    sync.Mutex // also while texts are embedded: two questions embed a new memory once
	table *embed.Table
	keys  []embed.Key // by slot
	of    []protocol.Text
	rows  []int32      // by slot; −1 where there is none
	gen   int          // of rows
	seq   protocol.Seq // of the newest event that keys follow from
}

func (x *index) close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.table == nil {
		return nil
	}
	t := x.table
	x.table, x.keys, x.of, x.rows, x.seq = nil, nil, nil, nil, 0
	return t.Close()
}

// open takes the table of a model, another than before if need be.
func (x *index) open(dir, model string) error {
	if x.table != nil && x.table.Model() == model {
		return x.table.Refresh()
	}
	t, err := embed.OpenTable(dir, model)
	if err != nil {
		return err
	}
	if x.table != nil {
		err = x.table.Close()
	}
	x.table, x.keys, x.of, x.rows, x.gen, x.seq = t, nil, nil, nil, -1, 0
	return err
}

// measured is how far candidates are.
type measured struct {
	far   []float32
	rows  []int32
	table *embed.Table
	gen   int
}

func (s *Store) embedder(name string) (embed.Embedder, error) {
	if s.c.Embed != nil {
		return s.c.Embed(name)
	}
	return embed.Open(name)
}

// measure tells how far the memories in slots are from text. Those without a vector get one.
func (s *Store) measure(ctx context.Context, name, text string, slots []int32) (measured, error) {
	e, err := s.embedder(name)
	if err != nil {
		return measured{}, err
	}
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	if err := s.index.open(s.c.Vectors, name); err != nil {
		return measured{}, err
	}
	if _, err := s.embedMissing(ctx, e, slots, nil); err != nil {
		return measured{}, err
	}
	query, err := e.EmbedQuery(ctx, text)
	if err != nil {
		return measured{}, err
	}
	m := measured{far: make([]float32, len(slots)), rows: make([]int32, len(slots)), table: s.index.table}
	for range 3 {
		for i, slot := range slots {
			m.rows[i] = s.index.rows[slot]
		}
		m.gen = s.index.gen
		ok, err := s.index.table.Distances(query, m.gen, m.rows, m.far)
		if ok || err != nil {
			return m, err
		}
		// Another process made the table anew.
		if _, err := s.embedMissing(ctx, e, slots, nil); err != nil {
			return measured{}, err
		}
	}
	return m, fmt.Errorf("%s is made anew again and again: %w", s.index.table.Path(), embed.ErrTable)
}

// embedTogether is how many texts are embedded before their vectors are kept.
const embedTogether = 256

// embedMissing embeds the memories in slots that have no vector, and tells progress, if it is
// not nil, how many of how many are done.
func (s *Store) embedMissing(ctx context.Context, e embed.Embedder, slots []int32, progress func(done, of int)) (made int, err error) {
	x := &s.index
	if err := s.follow(ctx); err != nil {
		return 0, err
	}
	if err := x.table.Refresh(); err != nil {
		return 0, err
	}
	if x.gen != x.table.Generation() || slices.ContainsFunc(slots, func(i int32) bool { return x.rows[i] < 0 }) {
		x.rows, x.gen = x.table.Rows(x.keys)
	}
	var missing []int32
	for _, i := range slots {
		if x.rows[i] < 0 {
			missing = append(missing, i)
		}
	}
	for some := range slices.Chunk(missing, embedTogether) {
		if err := s.embedSome(ctx, e, some); err != nil {
			return made, err
		}
		made += len(some)
		if progress != nil {
			progress(made, len(missing))
		}
	}
	if made > 0 {
		x.rows, x.gen = x.table.Rows(x.keys)
	}
	return made, nil
}

// follow keeps the keys up to what the memories say.
func (s *Store) follow(ctx context.Context) error {
	x := &s.index
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.seq == s.state.Seq {
		return nil
	}
	if !s.state.keyed(x.table.Model()) {
		if err := s.whole(ctx); err != nil {
			return err
		}
	}
	x.seq = s.state.Seq
	for i := range s.state.list {
		m := &s.state.list[i].Memory
		if i < len(x.keys) && x.of[i] == m.Content {
			continue
		}
		k := keyOf(x.table.Model(), m)
		if i == len(x.keys) {
			x.keys, x.of, x.rows = append(x.keys, k), append(x.of, m.Content), append(x.rows, -1)
		} else {
			x.keys[i], x.of[i], x.rows[i] = k, m.Content, -1
		}
	}
	return nil
}

// nameWeight is how often the lexical model gets the name of a file: it counts words, and the
// name says more than most of them.
const nameWeight = 4

// embedded is the text of a memory as it is embedded: a piece of a file with the file's name.
func embedded(model string, place *protocol.MemoryPlace, text string) string {
	if place == nil {
		return text
	}
	name := place.File
	if model == embed.LexicalName {
		base := path.Base(name)
		name += strings.Repeat(" "+strings.TrimSuffix(base, path.Ext(base)), nameWeight)
	}
	return name + "\n\n" + text
}

// embedSome embeds a few memories and keeps their vectors.
func (s *Store) embedSome(ctx context.Context, e embed.Embedder, slots []int32) error {
	s.mu.Lock()
	memories := make([]Memory, len(slots))
	for i, slot := range slots {
		memories[i] = s.state.list[slot].Memory
	}
	s.mu.Unlock()
	texts, keys := make([]string, len(slots)), make([]embed.Key, len(slots))
	for i, m := range memories {
		text, err := s.Text(ctx, m)
		if err != nil {
			return err
		}
		texts[i], keys[i] = embedded(s.index.table.Model(), m.Place, text), keyOf(s.index.table.Model(), &m)
	}
	vectors, err := e.EmbedDocuments(ctx, texts)
	if err != nil {
		return err
	}
	if len(vectors) != len(texts) {
		return fmt.Errorf("embedding model %s gave %d vectors for %d texts", s.index.table.Model(), len(vectors), len(texts))
	}
	return s.index.table.Add(keys, vectors)
}

// Reindex makes the vectors of the scope where they are missing or damaged, with another model
// if one is named; the journal then says so. Where the model now gives vectors of another
// length, all of its vectors are made anew; other scopes make theirs when they miss them. It
// gives how many were made, and tells progress, if it is not nil, how many of how many are.
func (s *Store) Reindex(ctx context.Context, model string, o Origin, progress func(done, of int)) (made int, err error) {
	name, e, err := s.choose(ctx, model, o)
	if err != nil {
		return 0, err
	}
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	if err := s.remake(ctx, name, e); err != nil {
		return 0, fmt.Errorf("index memory %s: %w", s.c.Scope, s.advised(err))
	}
	s.mu.Lock()
	slots := s.state.slots(nil, Any)
	s.mu.Unlock()
	if made, err = s.embedMissing(ctx, e, slots, progress); err != nil {
		return made, fmt.Errorf("index memory %s: %w", s.c.Scope, s.advised(err))
	}
	return made, nil
}

// advice is an error with what to do about it.
type advice struct{ what, do error }

func (a advice) Error() string   { return a.what.Error() }
func (a advice) Unwrap() []error { return []error{a.do, a.what} }

// advised tells what to do about vectors that cannot be had.
func (s *Store) advised(err error) error {
	var e *protocol.Error
	if !errors.As(err, &e) {
		return err
	}
	again := "wf memory reindex --scope " + protocol.ShellWord(s.c.Scope)
	lexical := again + " --model " + embed.LexicalName + ", which needs none"
	do := *e
	switch {
	case errors.Is(err, embed.ErrDimension):
		do.Hint = again + " makes all vectors anew"
	case errors.Is(err, embed.ErrTable):
		do.Hint = again + " makes what is damaged anew"
	case errors.Is(err, embed.ErrAnswer):
		do.Hint = "see whether that is an embedding server, or " + lexical
	case errors.Is(err, protocol.ErrModel):
		do.Hint = "start the server and try again, or " + lexical
	default:
		return err
	}
	return advice{err, &do}
}

// choose makes a model that of the scope, if it can be opened.
func (s *Store) choose(ctx context.Context, model string, o Origin) (name string, e embed.Embedder, err error) {
	err = s.change(ctx, func(st *State) ([]Change, error) {
		if name = model; name == "" {
			if name = st.Model; name == "" {
				name, _ = s.modelName(st) // of a memory without a model: no conflict
			}
		}
		if e, err = s.embedder(name); err != nil {
			return nil, err
		}
		if name == st.Model || st.Model == "" && model == "" {
			return nil, nil
		}
		return []Change{{o.Step, protocol.Indexed{Model: name, MemoryOrigin: o.data()}}}, nil
	})
	return name, e, err
}

// remake drops from the table what is damaged, or all of it where the model gives vectors of
// another length than before.
func (s *Store) remake(ctx context.Context, name string, e embed.Embedder) error {
	x := &s.index
	err := x.open(s.c.Vectors, name)
	if errors.Is(err, embed.ErrTable) {
		if err = embed.RemoveTable(s.c.Vectors, name); err == nil {
			err = x.open(s.c.Vectors, name)
		}
	}
	if err != nil {
		return err
	}
	rows, dim := x.table.Size()
	if rows == 0 {
		return nil
	}
	probe, err := e.EmbedQuery(ctx, "length")
	if err != nil {
		return err
	}
	_, err = x.table.Remake(func(embed.Key) bool { return len(probe) == dim })
	return err
}
