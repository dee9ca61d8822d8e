package engine

import (
	"fmt"

	"wf/api"
	"wf/cas"
	"wf/protocol"
)

// compaction makes the record of a compaction that a performer asks for, and the event that
// links it.
func (d *driver) compaction(step string, x protocol.CompactionDraft) (protocol.Compacted, []cas.Block, error) {
	out := x.Compacted
	v, err := d.s.Visit(step)
	if err != nil {
		return out, nil, err
	}
	if !v.Begun.Resumes.Defined() || !x.Covers.Defined() {
		return out, nil, fmt.Errorf("compaction of %s: it goes on with no conversation: %w", step, protocol.ErrInvalid)
	}
	record := protocol.Compaction{Kind: protocol.KindCompaction, V: protocol.RecordVersion, Start: d.s.Start, Role: v.Begun.Role,
		Prior: v.Begun.Resumes, Covers: x.Covers, Tools: v.Begun.Tools}
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
func (b *viewer) compacted(x protocol.Entry, d protocol.Compacted, st *api.Step) (err error) {
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
