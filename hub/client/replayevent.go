package client

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/coder/websocket"

	"wf/protocol"
)

// wire is one connection.
type wire struct {
	conn  *websocket.Conn
	codec protocol.Codec
	ctx   context.Context
	alarm *time.Timer

	held  []protocol.Frame // came while a block was awaited
	asked bool             // what follows the cursor was asked for again, and nothing came since
}

func (w *wire) send(r protocol.Request) error {
	b, err := r.Encode(w.codec)
	if err != nil {
		return err
	}
	typ := websocket.MessageText
	if w.codec == protocol.CBORFrames {
		typ = websocket.MessageBinary
	}
	return w.failed(w.conn.Write(w.ctx, typ, b))
}

// failed says why a connection ended, where the reason is ours.
func (w *wire) failed(err error) error {
	if err != nil && w.ctx.Err() != nil {
		return errors.Join(context.Cause(w.ctx), err)
	}
	return err
}

func (w *wire) next() (protocol.Frame, error) {
	if len(w.held) > 0 {
		f := w.held[0]
		w.held = w.held[1:]
		return f, nil
	}
	return w.read()
}

func (w *wire) read() (protocol.Frame, error) {
	_, b, err := w.conn.Read(w.ctx)
	if err != nil {
		return protocol.Frame{}, w.failed(err)
	}
	w.alarm.Reset(longestSilence)
	return protocol.ParseFrame(w.codec, b)
}

// lost asks again for what follows the cursor: something is missing, or stands on another
// history; the proof in the request finds out which. Once per connection and place.
func (f *follower) lost(w *wire, err error) error {
	if w.asked {
		return err
	}
	w.asked = true
	return f.request(w)
}

// events accepts what follows the cursor.
func (f *follower) events(w *wire, all []protocol.WireEvent, live bool) error {
	for i := range all {
		e := &all[i]
		switch {
		case e.Seq == f.at.Seq && e.CID == f.at.CID, e.Seq < f.at.Seq:
			continue // held already
		case f.r.To > 0 && e.Seq > f.r.To: // of a server that knows no windows
			return f.complete()
		case e.Seq != f.at.Seq+1:
			return f.lost(w, fmt.Errorf("event %d came where %d was due", e.Seq, f.at.Seq+1))
		}
		out, err := f.verified(w, e)
		if err != nil {
			return err
		}
		if f.at.CID.Defined() && out.Prev != f.at.CID || f.at.Seq == 0 && out.Prev.Defined() {
			return f.lost(w, fmt.Errorf("event %d follows %s, the cursor is at %s: %w", e.Seq, out.Prev, f.at.CID, protocol.ErrHeadMoved))
		}
		out.Live = live
		if f.c.Event != nil {
			if err := f.c.Event(out); err != nil {
				return f.end(err)
			}
		}
		f.at = Cursor{out.Seq, out.CID}
		f.progress, f.forged, w.asked = true, 0, false
		if out.Step != nil {
			if f.spoke == nil {
				f.spoke = map[string]protocol.Seq{}
			}
			f.spoke[*out.Step] = out.Seq
		}
	}
	return nil
}

// verified is an event whose bytes are those of its CID, as far as the wire carries them.
func (f *follower) verified(w *wire, e *protocol.WireEvent) (Event, error) {
	if w.codec == protocol.JSONFrames {
		step := e.Step
		return Event{Entry: protocol.Entry{CID: e.CID, Event: protocol.Event{Kind: protocol.KindEvent, V: protocol.RecordVersion,
			Prev: e.Prev, Seq: e.Seq, TS: e.TS, Type: e.Type, Step: step}}, JSON: e.Data}, nil
	}
	raw := e.Raw
	if raw == nil {
		var err error
		if raw, err = w.block(e.CID, e.Size); err != nil {
			return Event{}, err
		}
	}
	out := Event{Entry: protocol.Entry{CID: e.CID, Raw: raw}}
	err := check(e.CID, raw)
	if err == nil {
		err = protocol.DecodeEvent(raw, &out.Event)
	}
	if err == nil && out.Seq != e.Seq {
		err = fmt.Errorf("it says that it is event %d: %w", out.Seq, protocol.ErrCorrupt)
	}
	if err != nil {
		f.forged++
		return out, fmt.Errorf("event %d of run %s: %w", e.Seq, f.r.Run, err)
	}
	return out, nil
}

// check re-hashes bytes. A mismatch wraps protocol.ErrCorrupt.
func check(l protocol.Link, data []byte) error {
	if b := l.CID().KeyString(); len(b) == 36 && b[0] == 1 && b[2] == 0x12 && b[3] == 32 {
		if sum := sha256.Sum256(data); b[4:] == string(sum[:]) {
			return nil
		}
		return fmt.Errorf("its bytes do not hash to %s: %w", l, protocol.ErrCorrupt)
	}
	if got, err := l.CID().Prefix().Sum(data); err != nil || !got.Equals(l.CID()) {
		return fmt.Errorf("its bytes do not hash to %s: %w", l, protocol.ErrCorrupt)
	}
	return nil
}

// blockMax bounds a block that is fetched in parts.
const blockMax = 64 << 20

// block fetches a block that did not fit into a frame; other frames wait meanwhile.
func (w *wire) block(l protocol.Link, size int64) ([]byte, error) {
	if size < 1 || size > blockMax {
		return nil, fmt.Errorf("block %s of %d bytes: %w", l, size, protocol.ErrTooLarge)
	}
	if err := w.send(protocol.Request{Type: protocol.FrameBlockRequest, CID: l}); err != nil {
		return nil, err
	}
	out := make([]byte, 0, size)
	for int64(len(out)) < size {
		f, err := w.read()
		switch {
		case err != nil:
			return nil, err
		case f.Type == protocol.FrameReplayError:
			return nil, fmt.Errorf("block %s: %w", l, f.Err())
		case f.Type != protocol.FrameBlock || f.CID != l:
			w.held = append(w.held, f)
		case f.Offset != int64(len(out)) || f.Offset+int64(len(f.Bytes)) > size:
			return nil, fmt.Errorf("block %s: a part at %d, %d bytes are there: %w", l, f.Offset, len(out), protocol.ErrBadRequest)
		default:
			out = append(out, f.Bytes...)
		}
		if len(w.held) > 4096 {
			return nil, fmt.Errorf("block %s does not come: %w", l, protocol.ErrTooSlow)
		}
	}
	return out, nil
}
