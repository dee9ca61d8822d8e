package replay

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"wf/protocol"
	"wf/protocol/dagcbor"
)

// maxEvent is how long the JSON of an event may be, so that a frame around it stays within
// protocol.MaxFrame.
const maxEvent = protocol.MaxFrame - 1024

// A former makes the JSON of events out of their stored bytes.
type former struct {
	blocks protocol.Blocks
}

// appendEvent appends what every JSON frame of an event has, from "seq" to the end of "event",
// without the braces around it:
//
//	"seq":2,"cid":"…","prev":"…","ts":"…","event":{"type":"text","step":"a#1","data":{…}}
//
// Where the whole does not fit into maxEvent, first the long texts stay links with their size,
// then all of data becomes one link to the event.
func (f former) appendEvent(ctx context.Context, dst []byte, e *protocol.Entry) ([]byte, error) {
	from := len(dst)
	dst = append(strconv.AppendInt(append(dst, `"seq":`...), int64(e.Seq), 10), `,"cid":"`...)
	dst = append(dagcbor.AppendCID(dst, e.CID.CID().KeyString()), `","prev":`...)
	if e.Prev.Defined() {
		dst = append(dagcbor.AppendCID(append(dst, '"'), e.Prev.CID().KeyString()), '"')
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(protocol.AppendTime(append(dst, `,"ts":"`...), e.TS), `","event":{"type":`...)
	dst = append(dagcbor.AppendString(dst, string(e.Type)), `,"step":`...)
	if e.Step != nil {
		dst = dagcbor.AppendString(dst, *e.Step)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"data":`...)
	data := len(dst)
	var err error
	for _, limit := range []int{maxEvent - (data - from), 0} {
		if dst, err = f.appendData(ctx, dst[:data], e, limit); err != nil {
			return dst, err
		}
		if len(dst)-from < maxEvent {
			return append(dst, '}'), nil
		}
	}
	return append(appendSized(dst[:data], e.CID, int64(len(e.Raw))), '}'), nil
}

// appendData appends the data of an event with its long texts in place, those above limit
// bytes as links.
func (f former) appendData(ctx context.Context, dst []byte, e *protocol.Entry, limit int) ([]byte, error) {
	w := dagcbor.Walk{B: e.Data}
	spec := e.Type.Spec()
	major, _, n := w.Head()
	if w.Failed() || major != dagcbor.Map || spec == nil {
		w = dagcbor.Walk{B: e.Data}
		dst = w.AppendJSON(dst)
		return dst, wellFormed(&w, e)
	}
	dst = append(dst, '{')
	for i := uint64(0); i < n && !w.Failed(); i++ {
		if i > 0 {
			dst = append(dst, ',')
		}
		key := w.Text()
		dst = append(dagcbor.AppendString(dst, key), ':')
		if w.Is(dagcbor.Tag) && spec.TextKey(key) {
			l := protocol.ReadLink(&w)
			if w.Failed() {
				break
			}
			var err error
			if dst, err = f.appendText(ctx, dst, l, limit); err != nil {
				return dst, fmt.Errorf("event %d, %s: %w", e.Seq, key, err)
			}
			continue
		}
		dst = w.AppendJSON(dst)
	}
	return append(dst, '}'), wellFormed(&w, e)
}

func wellFormed(w *dagcbor.Walk, e *protocol.Entry) error {
	if w.Ended() {
		return nil
	}
	return fmt.Errorf("the data of event %d is no DAG-CBOR: %w", e.Seq, protocol.ErrCorrupt)
}

// appendText appends a long text: its bytes as a string, or the link with the size where it is
// above limit. A text that is gone (redacted, or collected) stays a plain link.
func (f former) appendText(ctx context.Context, dst []byte, l protocol.Link, limit int) ([]byte, error) {
	read := func(l protocol.Link) ([]byte, error) { return f.blocks.Block(ctx, l) }
	text, err := protocol.OpenPayload(read, l)
	if err == nil && text.Size > int64(limit) {
		return appendSized(dst, l, text.Size), nil
	}
	var data []byte
	if err == nil {
		data, err = text.Bytes(read)
	}
	switch {
	case errors.Is(err, protocol.ErrNotFound):
		return dagcbor.AppendJSONLink(dst, l.CID().KeyString()), nil
	case err != nil:
		return dst, err
	}
	return dagcbor.AppendString(dst, data), nil
}

// appendSized appends a link to what is too long for a frame.
func appendSized(dst []byte, l protocol.Link, size int64) []byte {
	dst = dagcbor.AppendCID(append(dst, `{"/":"`...), l.CID().KeyString())
	return append(strconv.AppendInt(append(dst, `","size":`...), size, 10), '}')
}
