package protocol

import (
	"fmt"
	"unicode/utf8"

	"github.com/fxamacker/cbor/v2"

	"wf/protocol/dagcbor"
)

// EncodeEvent writes an event as its record is stored. Data is most of it and is taken as it is, so
// that it is not encoded once more. An error wraps ErrInvalidBlock.
func EncodeEvent(e *Event) ([]byte, error) {
	if !safe(int64(e.Seq)) || !safe(e.TS) {
		return nil, fmt.Errorf("event %d of %d µs: integers of records lie within ±(2^53−1): %w", e.Seq, e.TS, ErrInvalidBlock)
	}
	if !utf8.ValidString(e.StepName()) {
		return nil, fmt.Errorf("step %q: text must be valid UTF-8: %w", e.StepName(), ErrInvalidBlock)
	}
	b := make([]byte, 0, 144+len(e.StepName())+len(e.Type)+len(e.Data))
	b = dagcbor.AppendInt(append(b, "\xa8\x61v"...), int64(e.V))
	b = dagcbor.AppendInt(append(b, "\x62ts"...), e.TS)
	b = dagcbor.AppendInt(append(b, "\x63seq"...), int64(e.Seq))
	b = append(append(b, "\x64data"...), e.Data...)
	b = e.Prev.appendCBOR(append(b, "\x64kind\x65event\x64prev"...))
	b = append(b, "\x64step"...)
	if e.Step == nil {
		b = dagcbor.AppendNull(b)
	} else {
		b = dagcbor.AppendText(b, *e.Step)
	}
	return dagcbor.AppendText(append(b, "\x64type"...), string(e.Type)), nil
}

// safe reports whether records may hold an integer.
func safe(n int64) bool { return n >= -MaxSafeInt && n <= MaxSafeInt }

// DecodeEvent reads the stored bytes of an event. Data shares raw. The form that EncodeEvent writes
// is walked over, ten times as fast as by reflection, since runs are resumed and replayed by it; any
// other form (unknown keys of a later version) is decoded as other records are. An error wraps
// ErrCorrupt.
func DecodeEvent(raw []byte, e *Event) error {
	if walkEvent(raw, e) {
		return nil
	}
	*e = Event{}
	if err := recordIn.Unmarshal(raw, e); err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if e.Kind != KindEvent {
		return fmt.Errorf("a %q record where an event should be: %w", e.Kind, ErrCorrupt)
	}
	return nil
}

// walkEvent reads exactly the eight fields of an event, in the order of DAG-CBOR.
func walkEvent(raw []byte, e *Event) bool {
	w := dagcbor.Walk{B: raw}
	w.Want("\xa8\x61v")
	e.V = int(w.Number())
	w.Want("\x62ts")
	e.TS = w.Number()
	w.Want("\x63seq")
	e.Seq = Seq(w.Number())
	w.Want("\x64data")
	e.Data = cbor.RawMessage(w.Item())
	w.Want("\x64kind\x65event\x64prev")
	e.Kind, e.Prev = KindEvent, Link{}
	if !w.Null() {
		e.Prev = ReadLink(&w)
	}
	w.Want("\x64step")
	e.Step = nil
	if !w.Null() {
		step := string(w.Text())
		e.Step = &step
	}
	w.Want("\x64type")
	name := w.Text()
	if known := EventNamed(name); known != nil {
		e.Type = known.Type // no allocation
	} else {
		e.Type = EventType(name)
	}
	return w.Ended()
}
