package replay

import (
	"context"
	"encoding/binary"

	"wf/hub/internal/dagcbor"
	"wf/protocol"
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
			dst = append(dagcbor.AppendString(append(dst, `"id":`...), []byte(p.id)), ',')
		}
		dst, err := p.json(ctx, dst, e, shared)
		return append(dst, '}'), err
	}
	if p.id == "" {
		dst = append(dst, 0xa4)
	} else {
		dst = appendText(append(dst, "\xa5\x62id"...), p.id)
	}
	dst = appendPlace(dst, e)
	if tooLong(e) {
		dst = appendHead(append(dst, "\x64size"...), 0, uint64(len(e.Raw)))
		return appendText(append(dst, "\x64type"...), string(kind)), nil
	}
	dst = appendText(append(dst, "\x64type"...), string(kind))
	return appendBytes(append(dst, "\x65event"...), e.Raw), nil
}

// json appends what form.go makes of an event, from the cache where several clients read it.
func (p *packer) json(ctx context.Context, dst []byte, e *protocol.Entry, shared bool) ([]byte, error) {
	if e.Type == protocol.EvRedacted {
		p.s.cache.forget()
	}
	if shared {
		if out, ok := p.s.cache.add(dst, e.CID); ok {
			return out, nil
		}
	}
	from := len(dst)
	dst, err := former{p.s.Feed}.appendEvent(ctx, dst, e)
	if err == nil && shared {
		p.s.cache.keep(e.CID, dst[from:])
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
			dst = append(dagcbor.AppendString(append(dst, `"id":`...), []byte(p.id)), ',')
		}
		if live {
			dst = append(dst, `"live":true,`...)
		}
		return append(dst, `"events":[`...)
	}
	keys := byte(2)
	if p.id != "" {
		keys++
	}
	if live {
		keys++
	}
	dst = append(dst, 0xa0|keys)
	if p.id != "" {
		dst = appendText(append(dst, "\x62id"...), p.id)
	}
	if live {
		dst = append(dst, "\x64live\xf5"...)
	}
	dst = append(dst, "\x64type\x6creplay_batch\x66events"...)
	return appendHead(dst, 4, uint64(n))
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
	at := len(p.buf) - len(w.B)
	w.Head()
	rest := len(p.buf) - len(w.B)
	head := appendHead(nil, 4, uint64(n))
	p.buf = append(append(p.buf[:at], head...), p.buf[rest:]...)
}

func (p *packer) element(ctx context.Context, dst []byte, e *protocol.Entry, n int, shared bool) ([]byte, error) {
	if p.codec == protocol.CBORFrames {
		dst = appendPlace(append(dst, 0xa3), e)
		if tooLong(e) {
			return appendHead(append(dst, "\x64size"...), 0, uint64(len(e.Raw))), nil
		}
		return appendBytes(append(dst, "\x65event"...), e.Raw), nil
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
	b := e.CID.CID().KeyString()
	dst = appendHead(append(dst, "\x63cid\xd8\x2a"...), 2, uint64(len(b)+1))
	dst = append(append(dst, 0), b...)
	return appendHead(append(dst, "\x63seq"...), 0, uint64(e.Seq))
}

func appendText(dst []byte, s string) []byte { return append(appendHead(dst, 3, uint64(len(s))), s...) }

func appendBytes(dst, b []byte) []byte { return append(appendHead(dst, 2, uint64(len(b))), b...) }

// appendHead appends the head of a CBOR item, in its shortest form.
func appendHead(dst []byte, major byte, n uint64) []byte {
	switch major <<= 5; {
	case n < 24:
		return append(dst, major|byte(n))
	case n < 1<<8:
		return append(dst, major|24, byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(dst, major|25), uint16(n))
	case n < 1<<32:
		return binary.BigEndian.AppendUint32(append(dst, major|26), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(dst, major|27), n)
}
