// Package socketend is the server's end of a WebSocket of the replay protocol: it accepts one, reads the
// requests of the client, finds out that the client is gone, and says why the socket is closed.
package socketend

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"wf/hub/reply"
	"wf/protocol"
)

// LastWrite is how long a write that is under way has when the socket ends.
const LastWrite = time.Second

// Writers are the goroutines that write to a socket. The zero value is ready for use.
//
// The reader of a socket begins some of them with what it reads, while the socket may be ending
// already: so the group closes, where a sync.WaitGroup alone may be awaited and missed.
type Writers struct {
	mu     sync.Mutex
	closed bool
	all    sync.WaitGroup
}

// Go calls f in a goroutine of its own; false when Wait was called before: f is then not called.
func (w *Writers) Go(f func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.all.Go(f)
	}
	return !w.closed
}

// Wait lets nothing new begin, and returns when all that began has ended.
func (w *Writers) Wait() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.all.Wait()
}

// Wanted reports whether a request asks for a WebSocket; one that does not is answered with an error.
func Wanted(w http.ResponseWriter, r *http.Request, protocols ...string) bool {
	if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return true
	}
	w.Header().Set("Connection", "Upgrade")
	w.Header().Set("Upgrade", "websocket")
	reply.Error(w, protocol.ErrUpgrade.With("send Upgrade: websocket", "%s is a WebSocket of the subprotocol %s", r.URL.Path, strings.Join(protocols, " or ")))
	return false
}

// ErrGone is the cause of a socket that ended because its client went away.
var ErrGone = errors.New("the client closed the connection")

// A Socket is a WebSocket that was accepted.
type Socket struct {
	Conn  *websocket.Conn
	Codec protocol.Codec
	Ctx   context.Context // ends with the socket; its cause says why
	Fail  context.CancelCauseFunc
	Writers
	patience time.Duration // with a client that reads one frame
}

// Accept makes a socket that ends with ctx at the latest; nil where the request was answered with an
// error instead. patience is how long the client may take for one frame.
func Accept(ctx context.Context, w http.ResponseWriter, r *http.Request, patience time.Duration) *Socket {
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		// The library compares Origin with Host, which DNS rebinding makes equal: that check proves
		// nothing, and is left to hub/guard, which knows the exact names.
		InsecureSkipVerify: true,
		Subprotocols:       []string{protocol.FramesCBOR, protocol.FramesJSON},
		CompressionMode:    websocket.CompressionDisabled, // it costs more than the wire, and opens bombs
	})
	if err != nil {
		return nil
	}
	conn.SetReadLimit(-1) // read keeps the limit, and says so in a frame
	s := &Socket{Conn: conn, Codec: protocol.CodecOf(conn.Subprotocol()), patience: patience}
	s.Ctx, s.Fail = context.WithCancelCause(ctx)
	return s
}

// Serve gives the requests of the client to handle, with their bytes, until the socket has ended, also
// because r lost its credentials. Errors of handle, and of frames that are none, are answered. The
// client is pinged at the interval ping; two that are not answered in a row end the socket.
func (s *Socket) Serve(r *http.Request, ping time.Duration, handle func(protocol.Request, []byte) error) {
	defer context.AfterFunc(r.Context(), func() { s.Fail(context.Cause(r.Context())) })()
	s.Go(func() { s.ping(ping) })
	ended := make(chan struct{})
	go func() { // the cause of Ctx says why the socket ends; then the reader ends too
		defer close(ended)
		<-s.Ctx.Done()
		s.Wait()
		s.bye(context.Cause(s.Ctx))
	}()
	s.Fail(s.read(handle))
	<-ended
}

// read takes the frames of the client until the socket ends.
func (s *Socket) read(handle func(protocol.Request, []byte) error) error {
	for {
		// Not with Ctx: when that ends the library would close without a word.
		typ, r, err := s.Conn.Reader(context.Background())
		if err != nil {
			return ErrGone
		}
		b, err := io.ReadAll(io.LimitReader(r, protocol.MaxRequest+1))
		if err != nil {
			return ErrGone
		}
		if len(b) > protocol.MaxRequest {
			return fmt.Errorf("a frame of more than %d bytes: %w", protocol.MaxRequest, protocol.ErrTooLarge)
		}
		if typ != Kind(s.Codec) {
			s.Send(protocol.ReplayError("", fmt.Errorf("a %s message, this socket speaks %s: %w", typ, s.Codec.Subprotocol(), protocol.ErrBadRequest)))
			continue
		}
		req, err := protocol.ParseRequest(s.Codec, b)
		if err == nil {
			err = handle(req, b)
		}
		if err != nil {
			s.Send(protocol.ReplayError(req.ID, err))
		}
	}
}

// Send writes one frame of the server's own; false when the socket ended by it.
func (s *Socket) Send(f *protocol.Frame) bool { return s.SendFrame(f) == nil }

// SendFrame writes one frame of the server's own; an error of writing ends the socket.
func (s *Socket) SendFrame(f *protocol.Frame) error {
	b, err := f.Encode(s.Codec)
	if err != nil {
		return err
	}
	return s.WriteOne(b)
}

// WriteOne sends one frame.
func (s *Socket) WriteOne(b []byte) error {
	return s.Write(func(send func([]byte) error) error { return send(b) })
}

// Write sends frames, each within the write deadline: what the server takes to read and to encode
// is not the client's slowness. There is some time behind the deadline, so that a client that still
// reads gets the error too_slow; one that does not is cut off. An error ends the socket.
func (s *Socket) Write(frames func(send func([]byte) error) error) error {
	ctx, done := context.WithCancel(context.Background())
	defer done()
	cutOff := time.AfterFunc(time.Hour, done)
	cutOff.Stop()
	// A write that is cut off takes the connection with it, and with it the word why the socket
	// ends: so the one under way has a moment more, and no client holds up a server that stops.
	defer context.AfterFunc(s.Ctx, func() { time.AfterFunc(LastWrite, done) })()
	return frames(func(b []byte) error {
		begun := time.Now()
		cutOff.Reset(s.patience + s.patience/5)
		err := s.Conn.Write(ctx, Kind(s.Codec), b)
		cutOff.Stop()
		switch {
		case err != nil && ctx.Err() == nil:
			s.Fail(ErrGone)
		case err != nil || time.Since(begun) > s.patience:
			err = protocol.ErrTooSlow
			s.Fail(err)
		}
		return err
	})
}

// ping finds out whether the client is still there. Browsers answer pings by themselves.
func (s *Socket) ping(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for missed := 0; missed < 2; {
		select {
		case <-s.Ctx.Done():
			return
		case <-tick.C:
		}
		ping, done := context.WithTimeout(s.Ctx, every)
		err := s.Conn.Ping(ping)
		done()
		if missed++; err == nil {
			missed = 0
		}
	}
	s.Fail(ErrGone)
}

// bye closes the connection with a frame and a status that say why, if the client still reads.
func (s *Socket) bye(why error) {
	if errors.Is(why, ErrGone) {
		s.Conn.CloseNow()
		return
	}
	status := websocket.StatusInternalError
	switch {
	case errors.Is(why, protocol.ErrShuttingDown):
		status = websocket.StatusGoingAway
	case errors.Is(why, protocol.ErrTooLarge):
		status = websocket.StatusMessageTooBig
	case errors.Is(why, protocol.ErrTooSlow):
		status = websocket.StatusTryAgainLater
	case errors.Is(why, protocol.ErrUnauthorized):
		status = websocket.StatusPolicyViolation
	}
	f := protocol.ReplayError("", why)
	b, err := f.Encode(s.Codec)
	if err == nil {
		ctx, done := context.WithTimeout(context.Background(), time.Second)
		defer done()
		err = s.Conn.Write(ctx, Kind(s.Codec), b)
	}
	if err != nil {
		s.Conn.CloseNow()
		return
	}
	s.Conn.Close(status, f.Code)
}

// Kind is the type of the messages of a codec.
func Kind(c protocol.Codec) websocket.MessageType {
	if c == protocol.CBORFrames {
		return websocket.MessageBinary
	}
	return websocket.MessageText
}
