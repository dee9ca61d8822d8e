package replay

import (
	"context"
	"slices"

	"wf/protocol"
	"wf/protocol/dagcbor"
)

// batchFrame is about how long a replay_batch gets.
const batchFrame = 256 << 10

// A packer makes frames of events, for one subscription. Its buffer is used again for each.
type packer struct {
	s     *Server
	run   protocol.RunID
	codec protocol.Codec
	id    string
	batch bool // replay_batch was allowed
	buf   []byte
}

// pack hands the frames of a batch to send, one after the other; send must not keep them.
func (p *packer) pack(ctx context.Context, batch []protocol.Entry, live bool, send func([]byte) error) error {
	shared := p.codec == protocol.JSONFrames && p.s.shelf.crowded(p.run)
	if p.batch && len(batch) > 1 {
		return p.many(ctx, batch, live, shared, send)
	}
	kind := protocol.FrameReplayEvent
	if live {
		kind = protocol.FrameEvent
	}
	for i := range batch {
		var err error
		if p.buf, err = p.one(ctx, p.buf[:0], kind, &batch[i], shared); err != nil {
			return err
		}
		if err := send(p.buf); err != nil {
			return err
		}
	}
	return nil
}

// one appends the frame of one event. In DAG-CBOR keys stand by their length.
func (p *packer) one(ctx context.Context, dst []byte, kind protocol.FrameType, e *protocol.Entry, shared bool) ([]byte, error) {
	if p.codec == protocol.JSONFrames {
		dst = append(append(append(dst, `{"type":"`...), kind...), `",`...)
		if p.id != "" {
			dst = append(dagcbor.AppendString(append(dst, `"id":`...), p.id), ',')
		}
		dst, err := p.json(ctx, dst, e, shared)
		return append(dst, '}'), err
	}
	if p.id == "" {
		dst = dagcbor.AppendHead(dst, dagcbor.Map, 4)
	} else {
		dst = dagcbor.AppendText(append(dst, "\xa5\x62id"...), p.id)
	}
	dst = appendPlace(dst, e)
	if tooLong(e) {
		dst = dagcbor.AppendInt(append(dst, "\x64size"...), int64(len(e.Raw)))
		return dagcbor.AppendText(append(dst, "\x64type"...), string(kind)), nil
	}
	dst = dagcbor.AppendText(append(dst, "\x64type"...), string(kind))
	return dagcbor.AppendBytes(append(dst, "\x65event"...), e.Raw), nil
}

// json appends what form.go makes of an event, from the cache where several clients read it.
func (p *packer) json(ctx context.Context, dst []byte, e *protocol.Entry, shared bool) ([]byte, error) {
	if e.Type == protocol.EvRedacted {
		p.s.cache.Drop(func(protocol.Link) bool { return true }) // a text may be gone that it holds
	}
	if shared {
		if json, ok := p.s.cache.Get(e.CID); ok {
			return append(dst, json...), nil
		}
	}
	from := len(dst)
	dst, err := former{p.s.Feed}.appendEvent(ctx, dst, e)
	if json := dst[from:]; err == nil && shared && len(json) <= cacheBytes/16 {
		p.s.cache.Put(e.CID, slices.Clone(json), len(json))
	}
	return dst, err
}

// many packs a batch into as few frames as fit.
func (p *packer) many(ctx context.Context, batch []protocol.Entry, live, shared bool, send func([]byte) error) error {
	for from := 0; from < len(batch); {
		p.buf = p.beginBatch(p.buf[:0], live, len(batch)-from)
		n := 0
		for ; from+n < len(batch) && len(p.buf) < batchFrame; n++ {
			whole := len(p.buf)
			var err error
			if p.buf, err = p.element(ctx, p.buf, &batch[from+n], n, shared); err != nil {
				return err
			}
			if n > 0 && len(p.buf) > protocol.MaxFrame-2 {
				p.buf = p.buf[:whole] // it goes into the next frame
				break
			}
		}
		if p.codec == protocol.JSONFrames {
			p.buf = append(p.buf, "]}"...)
		} else if n < len(batch)-from {
			p.countElements(n)
		}
		if err := send(p.buf); err != nil {
			return err
		}
		from += n
	}
	return nil
}

// beginBatch opens a batch of n events. A list of DAG-CBOR tells its length at the front.
func (p *packer) beginBatch(dst []byte, live bool, n int) []byte {
	if p.codec == protocol.JSONFrames {
		dst = append(dst, `{"type":"replay_batch",`...)
		if p.id != "" {
			dst = append(dagcbor.AppendString(append(dst, `"id":`...), p.id), ',')
		}
		if live {
			dst = append(dst, `"live":true,`...)
		}
		return append(dst, `"events":[`...)
	}
	keys := uint64(2)
	if p.id != "" {
		keys++
	}
	if live {
		keys++
	}
	dst = dagcbor.AppendHead(dst, dagcbor.Map, keys)
	if p.id != "" {
		dst = dagcbor.AppendText(append(dst, "\x62id"...), p.id)
	}
	if live {
		dst = append(dst, "\x64live\xf5"...)
	}
	dst = append(dst, "\x64type\x6creplay_batch\x66events"...)
	return dagcbor.AppendHead(dst, dagcbor.List, uint64(n))
}

// countElements opens the list again, now that fewer fit. Its head gets shorter with the number,
// and so everything behind it may move.
func (p *packer) countElements(n int) {
	w := dagcbor.Walk{B: p.buf}
	_, _, keys := w.Head()
	for range keys - 1 {
		w.Item()
		w.Item()
	}
	w.Item()
	at := w.At
	w.Head()
	p.buf = slices.Replace(p.buf, at, w.At, dagcbor.AppendHead(nil, dagcbor.List, uint64(n))...)
}

func (p *packer) element(ctx context.Context, dst []byte, e *protocol.Entry, n int, shared bool) ([]byte, error) {
	if p.codec == protocol.CBORFrames {
		dst = appendPlace(dagcbor.AppendHead(dst, dagcbor.Map, 3), e)
		if tooLong(e) {
			return dagcbor.AppendInt(append(dst, "\x64size"...), int64(len(e.Raw))), nil
		}
		return dagcbor.AppendBytes(append(dst, "\x65event"...), e.Raw), nil
	}
	if n > 0 {
		dst = append(dst, ',')
	}
	dst, err := p.json(ctx, append(dst, '{'), e, shared)
	return append(dst, '}'), err
}

// tooLong reports whether the stored bytes do not fit into a frame.
func tooLong(e *protocol.Entry) bool { return len(e.Raw) > maxEvent }

// appendPlace appends the keys cid and seq.
func appendPlace(dst []byte, e *protocol.Entry) []byte {
	dst = dagcbor.AppendLink(append(dst, "\x63cid"...), e.CID.CID().KeyString())
	return dagcbor.AppendInt(append(dst, "\x63seq"...), int64(e.Seq))
}
