package protocol

import "wf/protocol/dagcbor"

// walkBatch reads {id?, live?, type: "replay_batch", events: [{cid, seq, event}, …]}, the keys in the
// order of DAG-CBOR. It is most of what the reader of a replay does, and so walked over; false is for
// any other form. The events share b.
func walkBatch(b []byte) (Frame, bool) {
	f := Frame{Type: FrameReplayBatch}
	w := dagcbor.Walk{B: b}
	major, _, keys := w.Head()
	if major != dagcbor.Map || keys < 2 || keys > 4 {
		return f, false
	}
	for range keys - 1 {
		switch string(w.Text()) {
		case "id":
			f.ID = string(w.Text())
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
	if w.Failed() || major != dagcbor.List || n > uint64(w.Left()) {
		return f, false
	}
	f.Events = make([]WireEvent, n)
	for i := range f.Events {
		e := &f.Events[i]
		w.Want("\xa3\x63cid")
		e.CID = ReadLink(&w)
		w.Want("\x63seq")
		e.Seq = Seq(w.Number())
		w.Want("\x65event")
		e.Raw = w.Bytes()
		if w.Failed() || e.Seq < 1 {
			return f, false // with a size instead of bytes, too
		}
	}
	return f, w.Ended()
}
