package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"wf/protocol"
)

// A Cursor is the last event that a consumer has applied. The zero Cursor is before the first.
type Cursor struct {
	Seq protocol.Seq
	CID protocol.Link // may be null where it is not known; then it proves nothing
}

// Event is an event as it came. On the CBOR wire all of Entry is set; on the JSON wire JSON is
// the data with long texts in place, and Data and Raw are empty.
type Event struct {
	protocol.Entry
	JSON protocol.JSON
	Live bool // it came after the history was complete
}

// A Consumer takes a run, from one goroutine. Functions that are nil are not called; an error
// ends the Replay with it.
type Consumer struct {
	// Event is the successor of the one before. The cursor moves when it returns nil.
	Event func(Event) error
	// Delta is live output that is not out of date.
	Delta func(protocol.LiveDelta)
	// Reset says that the history behind the cursor was replaced: what was applied after it
	// must be taken back.
	Reset func(Cursor) error
	// Complete says that the cursor reached the head; again after each reconnection.
	Complete func(Cursor) error
	// Lost says that the connection is gone, and why.
	Lost func(error)
}

// Replay follows one run. URL and Run are set before use; the rest may stay zero.
type Replay struct {
	URL    string       // of /v1/replay: ws, wss, http or https
	HTTP   *http.Client // makes the connection; default http.DefaultClient
	Header http.Header  // of the handshake, such as Authorization
	Codec  protocol.Codec

	Run    protocol.RunID
	Cursor Cursor
	To     protocol.Seq // the last event that is wanted; 0 is all. Not with Live
	Live   bool         // go on behind the head
	Once   bool         // give up when a connection fails, instead of trying for ever
}

// Follow hands the run to c until it is complete, or with Live until ctx ends. The error is that
// of ctx, of the consumer, or one that no further connection can mend: it wraps ErrUnknownRun, ErrRunDeleted,
// ErrBadCursor, ErrFutureCursor, ErrUnauthorized, ErrForbidden, ErrGap, or ErrCorrupt where
// events do not hash to their CIDs.
func (r *Replay) Follow(ctx context.Context, c Consumer) error {
	f := &follower{r: r, c: c, at: r.Cursor}
	for try := 0; ; try++ {
		f.progress = false
		err := f.connect(ctx)
		switch {
		case f.over:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case f.progress:
			try = 0
		case f.forged >= 3:
			return err
		}
		if r.Once {
			return err
		}
		if c.Lost != nil {
			c.Lost(err)
		}
		select {
		case <-time.After(backoff(try)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

const (
	firstWait = 250 * time.Millisecond
	lastWait  = 15 * time.Second
)

// backoff is a random time up to a bound that doubles: clients that were cut off together do
// not come back together.
func backoff(try int) time.Duration { return rand.N(min(firstWait<<min(try, 10), lastWait)) + 1 }

// follower is a Replay under way.
type follower struct {
	r  *Replay
	c  Consumer
	at Cursor

	over     bool // the error of connect is final
	progress bool // something was accepted on this connection
	forged   int  // events in a row that were not what they said they are

	spoke map[string]protocol.Seq // newest event of each step, to know old deltas
}

// end is an error that no other connection can mend.
func (f *follower) end(err error) error {
	f.over = true
	return err
}

// longestSilence is how long the server may say nothing, heartbeats included.
const longestSilence = 45 * time.Second

// connect makes one connection and reads it to its end.
func (f *follower) connect(ctx context.Context) error {
	w, hangUp, err := f.dial(ctx)
	if err != nil {
		return err
	}
	defer hangUp()
	if err := f.request(w); err != nil {
		return err
	}
	for {
		frame, err := w.next()
		if err == nil {
			err = f.take(w, &frame)
		}
		if f.over && !f.r.Live && err == nil {
			w.conn.Close(websocket.StatusNormalClosure, "")
		}
		if f.over || err != nil {
			return err
		}
	}
}

// dial makes a connection, which ends after a long silence; hangUp ends it before.
func (f *follower) dial(ctx context.Context) (w *wire, hangUp func(), err error) {
	live, silent := context.WithCancelCause(ctx)
	w = &wire{ctx: live, alarm: time.AfterFunc(longestSilence, func() { silent(fmt.Errorf("nothing came for %s", longestSilence)) })}
	hangUp = func() {
		w.alarm.Stop()
		silent(nil)
		if w.conn != nil {
			w.conn.CloseNow()
		}
	}
	conn, resp, err := websocket.Dial(live, f.r.URL, &websocket.DialOptions{
		HTTPClient: f.r.HTTP, HTTPHeader: f.r.Header,
		Subprotocols: []string{f.r.Codec.Subprotocol()}, CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil {
		err = f.refused(resp, w.failed(err))
		hangUp()
		return nil, nil, err
	}
	conn.SetReadLimit(protocol.MaxFrame + 1024)
	w.conn, w.codec = conn, protocol.CodecOf(conn.Subprotocol())
	return w, hangUp, nil
}

// request asks for what follows the cursor.
func (f *follower) request(w *wire) error {
	return w.send(protocol.Request{Type: protocol.FrameReplayRequest, SessionID: f.r.Run, FromSeq: &f.at.Seq, ToSeq: f.r.To, LastCID: f.at.CID,
		Live: f.r.Live, Batch: true})
}

// refused is the error of a handshake that failed.
func (f *follower) refused(resp *http.Response, err error) error {
	if resp == nil {
		return unreachable(err)
	}
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		return f.end(fmt.Errorf("%s: %w", f.r.URL, protocol.ErrUnauthorized))
	case http.StatusForbidden, http.StatusMisdirectedRequest:
		return f.end(fmt.Errorf("%s: %w", f.r.URL, protocol.ErrForbidden))
	case http.StatusNotFound:
		return f.end(fmt.Errorf("%s is no replay interface of wf: %w", f.r.URL, protocol.ErrNotFound))
	}
	return err
}

// take handles one frame. An error ends the connection; f.over makes it final.
func (f *follower) take(w *wire, frame *protocol.Frame) error {
	switch frame.Type {
	case protocol.FrameReplayEvent, protocol.FrameEvent:
		return f.events(w, []protocol.WireEvent{frame.Event}, frame.Type == protocol.FrameEvent)
	case protocol.FrameReplayBatch:
		return f.events(w, frame.Events, frame.Live)
	case protocol.FrameReplayComplete:
		if !f.stands(frame) {
			return f.lost(w, fmt.Errorf("complete at event %d, the cursor is at %d", frame.LastSeq, f.at.Seq))
		}
		return f.complete()
	case protocol.FrameHeartbeat:
		if !f.stands(frame) {
			return f.lost(w, fmt.Errorf("a heartbeat at event %d, the cursor is at %d", frame.LastSeq, f.at.Seq))
		}
	case protocol.FrameDelta:
		f.delta(frame)
	case protocol.FrameReset:
		return f.reset(frame)
	case protocol.FrameReplayError:
		return f.told(frame)
	}
	return nil
}

// complete is the end of what is stored, or of what is wanted.
func (f *follower) complete() error {
	f.progress = true
	f.over = !f.r.Live
	if f.c.Complete != nil {
		if err := f.c.Complete(f.at); err != nil {
			return f.end(err)
		}
	}
	return nil
}

// stands reports whether a frame names the cursor as the newest event. A cursor that began
// without a CID takes it over.
func (f *follower) stands(frame *protocol.Frame) bool {
	if frame.LastSeq == f.at.Seq && !f.at.CID.Defined() {
		f.at.CID = frame.LastCID
	}
	return frame.LastSeq == f.at.Seq && frame.LastCID == f.at.CID
}

// told is a replay_error.
func (f *follower) told(frame *protocol.Frame) error {
	err := fmt.Errorf("run %s after event %d: %w", f.r.Run, f.at.Seq, frame.Err())
	for _, mends := range []*protocol.Error{protocol.ErrWorkerAway, protocol.ErrWorkerMoved, protocol.ErrTooSlow, protocol.ErrRateLimited,
		protocol.ErrShuttingDown, protocol.ErrInternal} {
		if errors.Is(err, mends) {
			return err
		}
	}
	return f.end(err)
}

func (f *follower) reset(frame *protocol.Frame) error {
	if frame.CommonSeq > f.at.Seq {
		return fmt.Errorf("a reset to event %d, the cursor is at %d: %w", frame.CommonSeq, f.at.Seq, protocol.ErrBadRequest)
	}
	f.progress = true
	f.at = Cursor{frame.CommonSeq, frame.CommonCID}
	f.spoke = nil
	if f.c.Reset != nil {
		if err := f.c.Reset(f.at); err != nil {
			return f.end(err)
		}
	}
	return nil
}

// delta passes on output that no later event of its step has replaced.
func (f *follower) delta(frame *protocol.Frame) {
	if f.c.Delta == nil || f.spoke[frame.Step] > frame.AfterSeq {
		return
	}
	f.c.Delta(f.said(frame))
}

// said is the delta of a frame.
func (f *follower) said(frame *protocol.Frame) protocol.LiveDelta {
	return protocol.LiveDelta{Run: f.r.Run, After: frame.AfterSeq, Step: frame.Step, N: frame.N,
		Delta: protocol.Delta{Kind: frame.Kind, Text: frame.Text}}
}
