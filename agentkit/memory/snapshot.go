package memory

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/fxamacker/cbor/v2"

	"wf/agentkit/embed"
	"wf/protocol"
)

// Snapshots keeps a State beside the journal it follows from. A Journal that is one as well is
// spared reading all of itself again. What is kept is derived: it may be lost at any time, and no
// failure to keep it is one of what was done.
type Snapshots interface {
	// Snapshot gives what was kept last, and the event it belongs to; ok is false for nothing.
	Snapshot(ctx context.Context) (data []byte, head protocol.Link, ok bool)
	// KeepSnapshot replaces it.
	KeepSnapshot(ctx context.Context, data []byte, head protocol.Link)
}

// A snapshot holds no texts, which are most of a memory, but for each the event that has it, its
// sum and the key of its vector. So a question reads the texts of its hits alone.
const snapshotVersion = 1

// snapshotEvery is the least number of events behind a snapshot to make another one.
const snapshotEvery = 1024

// due reports whether a snapshot is worth its cost, which is that of all memories.
func (s *State) due() bool {
	behind := int(s.Seq - s.kept)
	return behind >= snapshotEvery && 8*behind >= len(s.list)
}

// Flags of a slot.
const (
	slotGone = 1 << iota
	slotPinned
	slotPlaced
	slotLinked
)

// snapshot writes the state, with the keys of vectors of a model.
func (s *State) snapshot(model string) []byte {
	w := snapshotWriter{at: map[string]uint64{}}
	w.number(uint64(s.anchor), uint64(len(s.list)))
	w.text(s.Model, model)
	for i := range s.list {
		w.slot(&s.list[i], model)
	}
	w.number(uint64(len(s.keys)))
	for key, seq := range s.keys {
		w.number(uint64(seq), uint64(len(key)))
		w.body = append(w.body, key...)
	}
	out := binary.AppendUvarint([]byte{snapshotVersion}, uint64(s.Seq))
	out = binary.AppendUvarint(out, uint64(len(w.texts)))
	for _, t := range w.texts {
		out = append(binary.AppendUvarint(out, uint64(len(t))), t...)
	}
	return append(out, w.body...)
}

// snapshotWriter writes texts that come again and again once.
type snapshotWriter struct {
	at    map[string]uint64
	texts []string
	body  []byte
}

func (w *snapshotWriter) number(list ...uint64) {
	for _, n := range list {
		w.body = binary.AppendUvarint(w.body, n)
	}
}

func (w *snapshotWriter) text(list ...string) {
	for _, t := range list {
		i, ok := w.at[t]
		if !ok {
			i = uint64(len(w.texts))
			w.at[t], w.texts = i, append(w.texts, t)
		}
		w.number(i)
	}
}

func (w *snapshotWriter) slot(m *slot, model string) {
	flags := uint64(0)
	set := func(flag uint64, is bool) {
		if is {
			flags |= flag
		}
	}
	set(slotGone, m.gone)
	set(slotPinned, m.Pinned)
	set(slotPlaced, m.Place != nil)
	set(slotLinked, m.Content.Link.Defined())
	w.number(flags, uint64(m.ID), uint64(m.event), uint64(m.At), uint64(m.Changed), uint64(len(m.Tags)))
	w.text(m.Tags...)
	w.text(m.Special, m.By, string(m.Run), m.Step)
	if m.Place != nil {
		w.text(m.Place.File)
		w.number(uint64(m.Place.Line), uint64(m.Place.End))
	}
	if m.Content.Link.Defined() {
		link := m.Content.Link.Bytes()
		w.number(uint64(len(link)))
		w.body = append(w.body, link...)
		return
	}
	sum, key := m.Sum(), keyOf(model, &m.Memory)
	w.body = append(append(w.body, sum[:]...), key[:]...)
}

// errSnapshot is a snapshot that cannot be read; the journal is read instead.
var errSnapshot = errors.New("no snapshot of a memory")

// restored reads a snapshot.
func restored(data []byte, head protocol.Link) (*State, error) {
	if len(data) == 0 || data[0] != snapshotVersion {
		return nil, errSnapshot
	}
	r := snapshotReader{b: data[1:]}
	s := newState()
	s.Head, s.Seq = head, protocol.Seq(r.number())
	s.kept = s.Seq
	for range r.count() {
		r.texts = append(r.texts, string(r.take(r.count())))
	}
	s.anchor = protocol.Seq(r.number())
	n := r.count()
	s.Model, s.lender = r.text(), r.text()
	s.list = make([]slot, 0, n)
	s.at = make(map[protocol.Seq]int, n)
	for range n {
		m := r.slot()
		s.at[m.ID] = len(s.list)
		s.list = append(s.list, m)
		s.tag(&s.list[len(s.list)-1], m.Tags)
		if !m.gone {
			s.live++
		}
	}
	for range r.count() {
		seq := protocol.Seq(r.number())
		s.keys[string(r.take(r.count()))] = seq
	}
	if r.bad || len(r.b) > 0 || s.Seq <= 0 {
		return nil, errSnapshot
	}
	return s, nil
}

// snapshotReader reads what a snapshotWriter wrote. Once bad it gives nothing.
type snapshotReader struct {
	b     []byte
	texts []string
	bad   bool
}

func (r *snapshotReader) number() uint64 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[size:]
	return n
}

// count is a number of things that follow, each of a byte at least.
func (r *snapshotReader) count() int {
	n := r.number()
	if n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return 0
	}
	return int(n)
}

func (r *snapshotReader) take(n int) []byte {
	if n > len(r.b) {
		r.bad, r.b = true, nil
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *snapshotReader) text() string {
	i := r.number()
	if i >= uint64(len(r.texts)) {
		r.bad = true
		return ""
	}
	return r.texts[i]
}

func (r *snapshotReader) slot() (m slot) {
	flags := r.number()
	m.gone, m.Pinned = flags&slotGone > 0, flags&slotPinned > 0
	m.ID, m.event = protocol.Seq(r.number()), protocol.Seq(r.number())
	m.At, m.Changed = int64(r.number()), int64(r.number())
	for range r.count() {
		m.Tags = append(m.Tags, r.text())
	}
	m.Special, m.By, m.Run, m.Step = r.text(), r.text(), protocol.RunID(r.text()), r.text()
	if flags&slotPlaced > 0 {
		m.Place = &protocol.MemoryPlace{File: r.text(), Line: int(r.number()), End: int(r.number())}
	}
	if flags&slotLinked > 0 {
		l, err := protocol.CastLink(r.take(r.count()))
		m.Content.Link, r.bad = l, r.bad || err != nil
		return m
	}
	m.lent = &lent{}
	copy(m.lent.sum[:], r.take(sha256.Size))
	copy(m.lent.key[:], r.take(sha256.Size))
	return m
}

// lent is what a snapshot tells of a text that it does not hold.
type lent struct {
	sum [sha256.Size]byte
	key embed.Key // of the model of the snapshot
}

// keyOf names the vector of a memory: by its text and, for a piece of a file, the file.
func keyOf(model string, m *Memory) embed.Key {
	if m.lent != nil {
		return m.lent.key
	}
	file := ""
	if m.Place != nil {
		file = m.Place.File
	}
	return embed.KeyOf(model, file, m.Content.S, m.Content.Link.String())
}

// keyed reports whether keyOf can tell the keys of a model.
func (s *State) keyed(model string) bool {
	if s.lender == model {
		return !s.moved
	}
	return !slices.ContainsFunc(s.list, func(m slot) bool { return m.lent != nil })
}

// lend begins with a snapshot, where there is one of the journal as it is.
func (s *Store) lend(ctx context.Context) {
	k, ok := s.c.Journal.(Snapshots)
	if !ok {
		return
	}
	data, head, ok := k.Snapshot(ctx)
	if !ok {
		return
	}
	st, err := restored(data, head)
	if err != nil {
		return // another version: the journal is read
	}
	for e, err := range s.c.Journal.After(ctx, st.Seq-1) {
		if err == nil && e.Seq == st.Seq && e.CID == head {
			s.state = st
		}
		return
	}
}

// keep makes a snapshot where one is due.
func (s *Store) keep(ctx context.Context) {
	k, ok := s.c.Journal.(Snapshots)
	if !ok || !s.state.due() {
		return
	}
	model, err := s.modelName(s.state)
	if err != nil || !s.state.keyed(model) {
		return // of the model that was not asked for: the keys of its vectors are not known
	}
	k.KeepSnapshot(ctx, s.state.snapshot(model), s.state.Head)
	s.state.kept = s.state.Seq
}

// whole reads the journal from its first event, with all texts.
func (s *Store) whole(ctx context.Context) error {
	kept := s.state.kept
	s.state = newState()
	s.state.kept = kept
	return s.refresh(ctx)
}

// lentTexts is how many texts are read one by one before all of them are.
const lentTexts = 2 * MaxHits

// lentText reads the text of a memory that came from a snapshot.
func (s *Store) lentText(ctx context.Context, m Memory) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lentTexts++; s.lentTexts > lentTexts {
		if s.state.lender != "" {
			if err := s.whole(ctx); err != nil {
				return "", err
			}
		}
		if i, ok := s.state.at[m.ID]; ok && s.state.list[i].event == m.event {
			return s.state.list[i].Content.S, nil
		}
	}
	for e, err := range s.c.Journal.After(ctx, m.event-1) {
		if err != nil {
			return "", fmt.Errorf("memory %d of %s: %w", m.ID, s.c.Scope, err)
		}
		var d struct {
			Content protocol.Text `cbor:"content"`
		}
		if err := cbor.Unmarshal(e.Data, &d); err != nil || sumOf(d.Content.S) != m.lent.sum {
			break
		}
		return d.Content.S, nil
	}
	return "", fmt.Errorf("memory %d of %s: event %d does not hold its text: %w", m.ID, s.c.Scope, m.event, protocol.ErrCorrupt)
}
