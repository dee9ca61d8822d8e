package protocol

import (
	"cmp"
	"fmt"
)

// Encode writes a frame from a client.
func (r Request) Encode(c Codec) ([]byte, error) {
	w := wireFrame{Type: r.Type, ID: r.ID, SessionID: r.SessionID, Live: r.Live, Batch: r.Batch,
		ToSeq: orNil(number{n: max(0, r.ToSeq)}), Limit: orNil(number{n: Seq(max(0, r.Limit))}),
		LastCID: orNil(plainLink{r.LastCID}), placed: placed{CID: orNil(plainLink{r.CID})}, Lists: r.Lists}
	if r.FromSeq != nil {
		w.FromSeq = &number{n: *r.FromSeq}
	}
	if r.Type == FramePing {
		w.N = &r.N
	}
	return w.encode(c)
}

// ParseRequest reads a frame from a client. What is no frame is an error wrapping
// ErrBadRequest; a fromSeq that is no number from 0 to 2^53−1, or a window that cannot be, one
// wrapping ErrBadCursor. The
// id of the result is set as far as it could be read, so that the error can be answered.
// A type that is not known is no error.
func ParseRequest(c Codec, b []byte) (Request, error) {
	if len(b) > MaxRequest {
		return Request{}, fmt.Errorf("a frame of %d bytes: %w", len(b), ErrTooLarge)
	}
	var w wireFrame
	err := w.decode(c, b)
	r := Request{Type: w.Type, ID: w.ID, SessionID: w.SessionID, LastCID: orZero(w.LastCID).Link, Live: w.Live, Batch: w.Batch,
		N: orZero(w.N), CID: orZero(w.CID).Link, Lists: w.Lists}
	if len(r.ID) > MaxFrameID {
		r.ID = ""
		return r, fmt.Errorf("an id of %d bytes, %d are allowed: %w", len(w.ID), MaxFrameID, ErrBadRequest)
	}
	switch {
	case err != nil:
		return r, fmt.Errorf("%w: %w", ErrBadRequest, err)
	case r.Type == "":
		return r, fmt.Errorf("a frame without a type: %w", ErrBadRequest)
	case r.Type == FrameReplayRequest && r.SessionID == "":
		return r, fmt.Errorf("a replay_request without a sessionId: %w", ErrBadRequest)
	case r.Type == FrameBlockRequest && !r.CID.Defined():
		return r, fmt.Errorf("a block_request without a cid: %w", ErrBadRequest)
	case r.Type == FrameListRequest && len(r.Lists) == 0:
		return r, fmt.Errorf("a list_request without lists: %w", ErrBadRequest)
	case r.Type == FrameReplayRequest && w.FromSeq != nil && w.FromSeq.bad != "":
		return r, fmt.Errorf("fromSeq %s: %w", w.FromSeq.bad, ErrBadCursor)
	}
	if w.FromSeq != nil {
		r.FromSeq = &w.FromSeq.n
	}
	if r.Type == FrameReplayRequest {
		return r, r.window(w.ToSeq, w.Limit)
	}
	return r, nil
}

// window takes the bounds of a replay_request.
func (r *Request) window(to, limit *number) error {
	for _, b := range []struct {
		name string
		n    *number
	}{{"toSeq", to}, {"limit", limit}} {
		if b.n != nil && (b.n.bad != "" || b.n.n < 1) {
			return fmt.Errorf("%s %s: want a number from 1: %w", b.name, cmp.Or(b.n.bad, "0"), ErrBadCursor)
		}
	}
	if to != nil {
		r.ToSeq = to.n
	}
	if limit != nil {
		r.Limit = int(limit.n)
	}
	return r.CheckWindow()
}

// CheckWindow refuses a window without a beginning, that ends before it, or that is to stay: an
// error wrapping ErrBadCursor or ErrBadRequest.
func (r *Request) CheckWindow() error {
	switch {
	case r.ToSeq == 0 && r.Limit == 0:
		return nil
	case r.FromSeq == nil:
		return fmt.Errorf("toSeq and limit need fromSeq: %w", ErrBadCursor)
	case r.ToSeq > 0 && r.ToSeq < *r.FromSeq:
		return fmt.Errorf("toSeq %d lies before fromSeq %d: %w", r.ToSeq, *r.FromSeq, ErrBadCursor)
	case r.Live:
		return fmt.Errorf("a window has an end, and live has none: leave out toSeq and limit, or live: %w", ErrBadRequest)
	}
	return nil
}

// End is the last event of the window, 0 where there is no bound.
func (r *Request) End() Seq {
	end := r.ToSeq
	if r.Limit > 0 && r.FromSeq != nil {
		if last := *r.FromSeq + Seq(r.Limit); end == 0 || last < end {
			end = last
		}
	}
	return end
}

// Encode writes a frame to a client. Whether it is longer than MaxFrame the caller sees.
func (f *Frame) Encode(c Codec) ([]byte, error) {
	w := wireFrame{Type: f.Type, ID: f.ID}
	switch f.Type {
	case FrameReplayEvent, FrameEvent:
		e := f.Event.form(c)
		w.placed, w.Size = e.placed, e.Size
	case FrameReplayBatch:
		w.Live = f.Live
		w.Events = make([]eventFrame, len(f.Events))
		for i := range f.Events {
			w.Events[i] = f.Events[i].form(c)
		}
	case FrameReplayComplete, FrameHeartbeat:
		w.LastSeq, w.LastCID, w.HeadSeq = &f.LastSeq, &plainLink{f.LastCID}, orNil(f.HeadSeq)
	case FrameDelta:
		w.AfterSeq, w.Step, w.N, w.Kind, w.Text, w.Dropped = &f.AfterSeq, &f.Step, &f.N, f.Kind, &f.Text, f.Dropped
	case FrameReset:
		w.Reason, w.CommonSeq, w.CommonCID, w.HeadSeq = f.Reason, &f.CommonSeq, &plainLink{f.CommonCID}, &f.HeadSeq
	case FrameReplayError:
		w.Code, w.Message, w.HeadSeq, w.Seq = f.Code, f.Message, orNil(f.HeadSeq), orNil(f.Seq)
	case FramePong:
		w.N = &f.N
	case FrameBlock:
		w.CID, w.Offset, w.Size, w.Bytes = &plainLink{f.CID}, &f.Offset, &f.Size, f.Bytes
	case FrameListChanged:
		w.List, w.Runs, w.All = f.List, f.Runs, f.All
	}
	return w.encode(c)
}

// form is the event as it is written.
func (e *WireEvent) form(c Codec) eventFrame {
	f := eventFrame{placed: placed{Seq: &e.Seq, CID: &plainLink{e.CID}}}
	switch {
	case c == JSONFrames:
		f.Prev, f.TS, f.Event = &plainLink{e.Prev}, string(AppendTime(nil, e.TS)), &wireBody{Type: e.Type, Step: e.Step, Data: e.Data}
	case e.Raw == nil:
		f.Size = &e.Size
	default:
		f.Event = &wireBody{raw: e.Raw}
	}
	return f
}

// ParseFrame reads a frame to a client. What is no frame is an error wrapping ErrBadRequest. A
// type that is not known is no error. Events may share b.
func ParseFrame(c Codec, b []byte) (Frame, error) {
	if c == CBORFrames {
		if f, ok := walkBatch(b); ok {
			return f, nil
		}
	}
	var w wireFrame
	if err := w.decode(c, b); err != nil {
		return Frame{}, fmt.Errorf("%w: %w", ErrBadRequest, err)
	}
	f := Frame{Type: w.Type, ID: w.ID, Live: w.Live, LastSeq: orZero(w.LastSeq), LastCID: orZero(w.LastCID).Link,
		AfterSeq: orZero(w.AfterSeq), Step: orZero(w.Step), N: orZero(w.N), Kind: w.Kind, Text: orZero(w.Text), Dropped: w.Dropped,
		Reason: w.Reason, CommonSeq: orZero(w.CommonSeq), CommonCID: orZero(w.CommonCID).Link, HeadSeq: orZero(w.HeadSeq),
		Code: w.Code, Message: w.Message, Offset: orZero(w.Offset), Size: orZero(w.Size), Bytes: w.Bytes,
		List: w.List, Runs: w.Runs, All: w.All}
	switch f.Type {
	case "":
		return f, fmt.Errorf("a frame without a type: %w", ErrBadRequest)
	case FrameReplayEvent, FrameEvent:
		one := eventFrame{w.placed, w.Size}
		var err error
		f.Event, err = one.parse(c)
		f.Size = 0
		return f, err
	case FrameReplayBatch:
		f.Events = make([]WireEvent, len(w.Events))
		for i := range w.Events {
			var err error
			if f.Events[i], err = w.Events[i].parse(c); err != nil {
				return f, err
			}
		}
		return f, nil
	}
	f.Seq, f.CID = orZero(w.Seq), orZero(w.CID).Link
	return f, nil
}

// parse checks that an event has what it needs to be placed.
func (f *eventFrame) parse(c Codec) (WireEvent, error) {
	e := WireEvent{Seq: orZero(f.Seq), CID: orZero(f.CID).Link, Prev: orZero(f.Prev).Link}
	if e.Seq < 1 || !e.CID.Defined() {
		return e, fmt.Errorf("an event without seq or cid: %w", ErrBadRequest)
	}
	if c == CBORFrames {
		if f.Event != nil {
			e.Raw = f.Event.raw
		}
		e.Size = orZero(f.Size)
		return e, nil
	}
	if f.Event == nil || f.Event.Type == "" {
		return e, fmt.Errorf("event %d is empty: %w", e.Seq, ErrBadRequest)
	}
	ts, err := parseTime(f.TS)
	if err != nil {
		return e, fmt.Errorf("event %d: %w: %w", e.Seq, ErrBadRequest, err)
	}
	e.TS, e.Type, e.Step, e.Data = ts, f.Event.Type, f.Event.Step, f.Event.Data
	return e, nil
}

func orNil[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

func orZero[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
