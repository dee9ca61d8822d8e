package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"wf/hub/internal/socketend"
	"wf/hub/reply"
	"wf/protocol"
)

// serveEvents streams a run over plain HTTP. Both forms carry the JSON frames of the WebSocket,
// without ids.
//
// As server-sent events the id is the seq, deltas and the like have none, and the stream goes on
// until the client leaves: EventSource connects again by itself, with Last-Event-ID. As NDJSON,
// one frame on a line, it ends with replay_complete, unless ?live=true. A window, with toSeq or
// limit, ends with replay_complete in both.
//
// What cannot begin is answered by a status and a wf.error/v1 object: 400 for a bad cursor, 404
// for an unknown run, 409 for a cursor beyond the head.
func (s *Server) serveEvents(w http.ResponseWriter, r *http.Request) {
	leave, err := s.enter(r)
	if err != nil {
		refuse(w, err)
		return
	}
	defer leave()
	lines := strings.Contains(r.Header.Get("Accept"), "application/x-ndjson")
	req, err := streamRequest(r, !lines)
	if err != nil {
		refuse(w, err)
		return
	}
	ctx, stop := context.WithCancelCause(r.Context())
	defer stop(nil)
	defer context.AfterFunc(s.ctx, func() { stop(protocol.ErrShuttingDown) })()
	out := &stream{s: s, w: w, rc: http.NewResponseController(w), sse: !lines, packer: packer{s: s, run: req.SessionID}}
	defer context.AfterFunc(ctx, out.hurry)()
	err = s.Follow(ctx, req, out)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = context.Cause(ctx) // a read that was cut off knows no reason
	}
	switch {
	case err == nil, r.Context().Err() != nil && !errors.Is(err, protocol.ErrUnauthorized), errors.Is(err, socketend.ErrGone):
	case !out.begun:
		refuse(w, err)
	default: // nothing can be done if the client does not take that either
		_ = out.Frame(context.WithoutCancel(ctx), errorFrame("", err))
	}
}

// streamRequest reads the cursor. Last-Event-ID comes from an EventSource that connects again
// with the URL it began with, and so is newer than fromSeq. lastCid is proof as in a frame. A
// parameter that is none of these is refused: fromseq would otherwise be the whole history.
func streamRequest(r *http.Request, live bool) (protocol.Request, error) {
	req := protocol.Request{Type: protocol.FrameReplayRequest, SessionID: protocol.RunID(r.PathValue("id")), Live: live}
	given := map[string]string{}
	for name, values := range r.URL.Query() {
		switch {
		case !slices.Contains(streamParameters, name):
			return req, fmt.Errorf("there is no parameter %.40q; there are %s: %w", name, strings.Join(streamParameters, ", "), protocol.ErrBadRequest)
		case len(values) > 1:
			return req, fmt.Errorf("the parameter %q is given %d times: %w", name, len(values), protocol.ErrBadRequest)
		}
		given[name] = values[0]
	}
	switch given["live"] {
	case "true":
		req.Live = true
	case "", "false":
	default:
		return req, fmt.Errorf("live=%.40q: want true or false: %w", given["live"], protocol.ErrBadRequest)
	}
	number := func(name, text string, least int64) (int64, error) {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < least || n > protocol.MaxSafeInt {
			return 0, fmt.Errorf("%s %.40q: want a number from %d: %w", name, text, least, protocol.ErrBadCursor)
		}
		return n, nil
	}
	for name, into := range map[string]func(int64){
		"toSeq": func(n int64) { req.ToSeq = protocol.Seq(n) }, "limit": func(n int64) { req.Limit = int(n) },
	} {
		if text, ok := given[name]; ok {
			n, err := number(name, text, 1)
			if err != nil {
				return req, err
			}
			into(n)
			req.Live = given["live"] == "true"
		}
	}
	text, name := given["fromSeq"], "fromSeq"
	again := r.Header.Get("Last-Event-ID")
	if again != "" {
		text, name = again, "Last-Event-ID"
	}
	n, err := number(name, cmp.Or(text, "0"), 0)
	if err != nil {
		return req, err
	}
	from := protocol.Seq(n)
	req.FromSeq = &from
	if proof := given["lastCid"]; proof != "" && again == "" {
		l, err := protocol.ParseLink(proof)
		if err != nil {
			return req, fmt.Errorf("lastCid: %w: %w", err, protocol.ErrBadRequest)
		}
		req.LastCID = l
	}
	return req, req.CheckWindow()
}

// streamParameters are those of GET /v1/sessions/{id}/events.
var streamParameters = []string{"fromSeq", "toSeq", "limit", "lastCid", "live"}

// refuse answers a request that cannot be served.
func refuse(w http.ResponseWriter, err error) {
	f := errorFrame("", err)
	why := f.Err()
	if protocol.CodeNamed(f.Code).Remedy == protocol.Again {
		w.Header().Set("Retry-After", "1")
	}
	answer := reply.FailureOf(why)
	answer.HeadSeq = f.HeadSeq
	reply.JSON(w, reply.Status(why), answer)
}

// stream writes frames as server-sent events or lines.
type stream struct {
	packer
	s     *Server
	w     http.ResponseWriter
	rc    *http.ResponseController
	sse   bool
	begun bool
	out   []byte

	hurried atomic.Bool // the stream is over, but for a last word
}

// begin sends the header, once it is known that there is something to say.
func (t *stream) begin() {
	if t.begun {
		return
	}
	t.begun = true
	h := t.w.Header()
	h.Set("Content-Type", "application/x-ndjson")
	h.Set("Cache-Control", "no-store")
	if t.sse {
		h.Set("Content-Type", "text/event-stream")
		h.Set("X-Accel-Buffering", "no")
		t.out = append(t.out, "retry: 1000\n\n"...)
	}
	t.w.WriteHeader(http.StatusOK)
}

// put adds a frame to what is flushed next; id is the seq of an event, else 0.
func (t *stream) put(frame []byte, id protocol.Seq) {
	t.begin()
	if !t.sse {
		t.out = append(append(t.out, frame...), '\n')
		return
	}
	if id > 0 {
		t.out = append(strconv.AppendInt(append(t.out, "id: "...), int64(id), 10), '\n')
	}
	t.out = append(append(append(t.out, "data: "...), frame...), "\n\n"...)
}

// flush writes what was put, within the write deadline.
func (t *stream) flush() error {
	limit := cmp.Or(t.s.WriteTimeout, 10*time.Second)
	begun := time.Now()
	if err := t.rc.SetWriteDeadline(begun.Add(limit + limit/5)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return socketend.ErrGone
	}
	if t.hurried.Load() {
		t.hurry()
	}
	_, err := t.w.Write(t.out)
	t.out = t.out[:0]
	if err == nil {
		err = t.rc.Flush()
	}
	switch {
	case err != nil:
		return socketend.ErrGone
	case time.Since(begun) > limit:
		return protocol.ErrTooSlow
	}
	return nil
}

// hurry has what is written from now on, and what is under way, end soon: the stream is over.
func (t *stream) hurry() {
	t.hurried.Store(true)
	// Where deadlines cannot be set the other end has its own.
	_ = t.rc.SetWriteDeadline(time.Now().Add(socketend.LastWrite))
}

func (t *stream) Events(ctx context.Context, batch []protocol.Entry, live bool) error {
	i := 0
	if err := t.pack(ctx, batch, live, func(frame []byte) error {
		t.put(frame, batch[i].Seq)
		i++
		if len(t.out) > batchFrame {
			return t.flush()
		}
		return nil
	}); err != nil {
		return err
	}
	return t.flush()
}

// Frame writes what is no event. A heartbeat is a comment in SSE, where it keeps the
// connection; after a reset EventSource must come back to the common event, so it has its id.
func (t *stream) Frame(_ context.Context, f *protocol.Frame) error {
	b, err := f.Encode(protocol.JSONFrames)
	if err != nil {
		return err
	}
	switch {
	case t.sse && f.Type == protocol.FrameHeartbeat:
		t.out = append(t.out, ": "...)
		t.out = append(append(t.out, b...), "\n\n"...)
	case f.Type == protocol.FrameReset:
		t.put(b, 0)
		if t.sse {
			t.out = fmt.Appendf(t.out[:len(t.out)-1], "id: %d\n\n", f.CommonSeq)
		}
	default:
		t.put(b, 0)
	}
	return t.flush()
}
