package engine

import (
	"fmt"

	"wf/api"
	"wf/cas"
	"wf/protocol"
)

// unsized marks a visit the first request of which nobody counted: its prompt changed after it
// had been sent.
const unsized = -1

// measured notes what the first request of a visit held: the next visit of the conversation
// decides by it whether to compact.
func (s *State) measured(step string, d protocol.Usage) {
	if step == "" || d.Kind != protocol.UsageTurn || d.Input == nil || d.Child != nil {
		return
	}
	if v, _, err := s.visitNamed(step); err == nil && v.size == 0 {
		v.size = *d.Input
	}
}

// learnt notes what a model reads at most, from its refusal of a longer request.
func (s *State) learnt(d protocol.Usage) {
	if known := s.windows[d.Model]; d.Window > 0 && (known == 0 || d.Window < known) {
		if s.windows == nil {
			s.windows = map[string]int64{}
		}
		s.windows[d.Model] = d.Window
	}
}

// compacted makes a visit, and what follows it, resume a Compaction.
func (s *State) compacted(step string, d protocol.Compacted) error {
	if d.Scope != protocol.ScopeConversation {
		return nil
	}
	v, _, err := s.visitNamed(step)
	if err != nil {
		return err
	}
	if !d.Record.Defined() {
		return fmt.Errorf("%s was compacted without a record: %w", step, protocol.ErrCorrupt)
	}
	v.resumes, v.compacted = d.Record, true
	if v.size != 0 {
		v.size = unsized
	}
	return nil
}

// compaction makes the record of a compaction that a performer asks for, and the event that
// links it.
func (d *driver) compaction(step string, x protocol.CompactionDraft) (protocol.Compacted, []cas.Block, error) {
	out := x.Compacted
	v, a, err := d.s.visitNamed(step)
	if err != nil {
		return out, nil, err
	}
	if !v.resumes.Defined() || !x.Covers.Defined() {
		return out, nil, fmt.Errorf("compaction of %s: it goes on with no conversation: %w", step, protocol.ErrInvalid)
	}
	record := protocol.Compaction{Kind: protocol.KindCompaction, V: protocol.RecordVersion, Start: d.s.Start, Role: a.role,
		Prior: v.resumes, Covers: x.Covers, Tools: v.tools}
	root, blocks := cas.Payload([]byte(x.Summary))
	record.Summary = root
	if x.Inject != "" {
		inject, more := cas.Payload([]byte(x.Inject))
		record.Inject, blocks = inject, append(blocks, more...)
	}
	block, err := cas.Encode(record)
	if err != nil {
		return out, nil, fmt.Errorf("compaction of %s: %w", step, err)
	}
	out.Record = block.Link
	return out, append(blocks, block), nil
}

// compacted adds a compaction to the visit that made it.
func (b *viewer) compacted(x protocol.Entry, st *api.Step) error {
	d, err := cas.DecodeData[protocol.Compacted](&x.Event)
	if err != nil {
		return err
	}
	c := api.Compaction{Scope: d.Scope, Record: text(d.Record), Replies: d.Replies, Model: d.Model,
		TokensBefore: d.TokensBefore, TokensAfter: d.TokensAfter}
	if c.Summary, err = textOf(b.read, d.Summary); err != nil {
		return err
	}
	if c.Error, err = textOf(b.read, d.Error); err != nil {
		return err
	}
	if d.Scope == protocol.ScopeConversation {
		record, err := loadPast(&b.e.lib, b.read, d.Record)
		if err != nil {
			return err
		}
		if record == nil || record.Compaction == nil {
			return fmt.Errorf("event %d links %s, which is no compaction: %w", x.Seq, d.Record.Short(), protocol.ErrCorrupt)
		}
		covers, err := loadPast(&b.e.lib, b.read, record.Compaction.Covers)
		if err != nil {
			return err
		}
		c.Summary, c.Prior, st.Resumes = record.Compaction.Summary, st.Visit-1, c.Record
		if covers != nil {
			c.Covers = covers.Visit
		}
	}
	st.Compactions = append(st.Compactions, c)
	return nil
}
