package client

import (
	"fmt"

	"github.com/fxamacker/cbor/v2"

	"wf/hub/internal/dagcbor"
	"wf/protocol"
)

// decodeEvent reads stored bytes. The form that wf writes is walked over by hand, since a replay
// is made of it; any other, of a later version, goes the general way.
func decodeEvent(raw []byte, e *protocol.Event) error {
	if walkEvent(raw, e) {
		return nil
	}
	*e = protocol.Event{}
	if err := cbor.Unmarshal(raw, e); err != nil {
		return fmt.Errorf("%w: %w", protocol.ErrCorrupt, err)
	}
	if e.Kind != protocol.KindEvent {
		return fmt.Errorf("a %q record where an event should be: %w", e.Kind, protocol.ErrCorrupt)
	}
	return nil
}

// walkEvent reads exactly the eight fields of an event, in the order of DAG-CBOR.
func walkEvent(raw []byte, e *protocol.Event) bool {
	w := dagcbor.Walk{B: raw}
	w.Want("\xa8\x61v")
	e.V = int(w.Number())
	w.Want("\x62ts")
	e.TS = w.Number()
	w.Want("\x63seq")
	e.Seq = protocol.Seq(w.Number())
	w.Want("\x64data")
	e.Data = w.Item()
	w.Want("\x64kind\x65event\x64prev")
	if !w.Null() {
		e.Prev = w.Link()
	}
	w.Want("\x64step")
	if !w.Null() {
		step := string(w.String(dagcbor.Text))
		e.Step = &step
	}
	w.Want("\x64type")
	e.Type = protocol.EventType(w.String(dagcbor.Text))
	e.Kind = protocol.KindEvent
	return !w.Bad && len(w.B) == 0
}

// parseFrame reads a frame. A batch of stored bytes is walked over by hand, which is most of what
// a replay is; everything else is read by protocol.
func parseFrame(c protocol.Codec, b []byte) (protocol.Frame, error) {
	if c == protocol.CBORFrames {
		if f, ok := walkBatch(b); ok {
			return f, nil
		}
	}
	return protocol.ParseFrame(c, b)
}

// walkBatch reads {id?, live?, type: "replay_batch", events: [{cid, seq, event}, …]}. The events
// share b.
func walkBatch(b []byte) (protocol.Frame, bool) {
	f := protocol.Frame{Type: protocol.FrameReplayBatch}
	w := dagcbor.Walk{B: b}
	major, _, keys := w.Head()
	if major != dagcbor.Map || keys < 2 || keys > 4 {
		return f, false
	}
	for range keys - 1 {
		switch string(w.String(dagcbor.Text)) {
		case "id":
			f.ID = string(w.String(dagcbor.Text))
		case "live":
			w.Want("\xf5")
			f.Live = true
		case "type":
			w.Want("\x6creplay_batch")
		default:
			return f, false
		}
	}
	w.Want("\x66events")
	major, _, n := w.Head()
	if w.Bad || major != dagcbor.List || n > uint64(len(w.B)) {
		return f, false
	}
	f.Events = make([]protocol.WireEvent, n)
	for i := range f.Events {
		e := &f.Events[i]
		w.Want("\xa3\x63cid")
		e.CID = w.Link()
		w.Want("\x63seq")
		e.Seq = protocol.Seq(w.Number())
		w.Want("\x65event")
		e.Raw = w.String(dagcbor.Bytes)
		if w.Bad || e.Seq < 1 {
			return f, false // with a size instead of bytes, too
		}
	}
	return f, len(w.B) == 0
}
