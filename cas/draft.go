package cas

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/fxamacker/cbor/v2"
	"github.com/ipfs/go-cid"

	"wf/protocol"
)

// Draft is an event before it has a place: what happened, and in which step ("" for the run).
//
//	Draft ─Ready─► Draft with its stored form ─Stage─► Event ─Commit─► journal
type Draft struct {
	Step string
	Data protocol.Data // as it was said, texts of any length in place
	At   int64         // when it happened, unix µs; 0 is when it is staged

	// What Ready makes.
	stored  protocol.Data
	encoded cbor.RawMessage
	blocks  []Block
}

// Ready makes the stored form of a draft, once: what cannot be stored is found where it was said,
// not when a commit is due. An error wraps protocol.ErrInvalidBlock, or of a text that is too long protocol.ErrTooLarge.
func (d Draft) Ready() (Draft, error) {
	if d.stored != nil {
		return d, nil
	}
	if d.Data == nil || d.Data.EventType() == protocol.EvDelta {
		return d, fmt.Errorf("%T is never stored: %w", d.Data, protocol.ErrInvalidBlock)
	}
	stored, blocks, err := spill(d.Data)
	if err != nil {
		return d, err
	}
	b, err := encMode.Marshal(stored)
	if err == nil {
		err = checkData(b)
	}
	if err != nil {
		return d, fmt.Errorf("%s: %w: %w", stored.EventType(), protocol.ErrInvalidBlock, err)
	}
	d.stored, d.encoded, d.blocks = stored, b, blocks
	return d, nil
}

// Stored is the data as a reader of the journal decodes it: a text over protocol.InlineMax is a
// link. It is nil before Ready.
func (d Draft) Stored() protocol.Data { return d.stored }

// Size is the length of the stored form in bytes, payloads left out; 0 before Ready.
func (d Draft) Size() int { return len(d.encoded) }

// Blocks are the payloads that the stored form links to; Stage commits them with the event.
func (d Draft) Blocks() []Block { return d.blocks }

// event makes the event behind prev, and the payloads that come with it; now is unix µs.
func (d Draft) event(prev EventRef, now int64) (protocol.Entry, []Block, error) {
	d, err := d.Ready()
	if err != nil {
		return protocol.Entry{}, nil, err
	}
	if d.At != 0 {
		now = d.At
	}
	e := protocol.Event{Kind: protocol.KindEvent, V: protocol.RecordVersion, Prev: prev.CID, Seq: prev.Seq + 1, TS: now,
		Type: d.stored.EventType(), Data: d.encoded}
	if d.Step != "" {
		e.Step = &d.Step
	}
	b, err := protocol.EncodeEvent(&e)
	if err != nil {
		return protocol.Entry{}, nil, fmt.Errorf("%s: %w", e.Type, err)
	}
	return protocol.Entry{Event: e, CID: linkTo(cid.DagCBOR, b), Raw: b}, d.blocks, nil
}

// spill gives d with each text either in place, with protocol.InlineMax bytes at most, or as a
// link to a payload; one that is longer than a payload may be is an error wrapping protocol.ErrTooLarge. Bytes of a text that are no UTF-8 become U+FFFD, as CBOR has no others. d
// itself is not changed.
func spill(d protocol.Data) (stored protocol.Data, blocks []Block, err error) {
	texts, whole := textsOf(d)
	changed := false
	for _, t := range texts {
		if !utf8.ValidString(t.S) {
			t.S, changed = strings.ToValidUTF8(t.S, "\uFFFD"), true
		}
		if err := protocol.CheckPayload(string(d.EventType()), len(t.S)); err != nil {
			return d, nil, err
		}
		if len(t.S) > protocol.InlineMax && !t.Link.Defined() {
			root, parts := Payload([]byte(t.S))
			t.Link = root
			blocks = append(blocks, parts...)
		}
		if t.Link.Defined() && t.S != "" {
			t.S, changed = "", true
		}
	}
	if !changed {
		return d, nil, nil
	}
	return whole(), blocks, nil
}
