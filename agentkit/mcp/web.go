package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"mime"
	"net/http"
	"net/http/httptrace"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// mark is what some programs write before a text in UTF-8 (RFC 8259, section 8.1: a reader may ignore it).
const mark = "\ufeff"

// refusalMax is how many bytes are read of what comes with a status that is no success.
const refusalMax = 64 << 10

// web carries the requests to one server: it adds headers to each, notes what becomes of calls, and leaves out of streams
// what is no message, which would end the session.
type web struct {
	add     http.Header
	strange func(text string) // called with what is left out
}

func (w web) RoundTrip(r *http.Request) (*http.Response, error) {
	a := &attempt{}
	if r.Method == http.MethodPost { // what goes on with a stream says nothing of the call
		a = attemptOf(r.Context())
	}
	a.note(func() { a.sent, a.session = true, r.Header.Get("Mcp-Session-Id") != "" })
	r = r.Clone(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { a.note(func() { a.reached = true }) },
	}))
	maps.Copy(r.Header, w.add)
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		a.note(func() { a.lost = err })
		return nil, err
	}
	a.note(func() { a.status = resp.StatusCode })
	if resp.StatusCode >= 300 {
		said, err := io.ReadAll(io.LimitReader(resp.Body, refusalMax))
		if err != nil {
			said = fmt.Appendf(said, " (%v)", err)
		}
		resp.Body.Close()
		a.note(func() { a.said = said })
		resp.Body = io.NopCloser(bytes.NewReader(said))
		return resp, nil
	}
	b := &body{ReadCloser: resp.Body, in: bufio.NewReader(resp.Body), left: messageMax, lost: func(err error) { a.note(func() { a.lost = err }) }}
	resp.Body = b
	if kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err == nil && kind == "text/event-stream" {
		b.left = math.MaxInt // each event has its bound
		resp.Body = &events{Closer: b, in: bufio.NewReader(b), strange: w.strange, lost: b.lost}
	}
	return resp, nil
}

// body is that of an answer, without a mark before it.
type body struct {
	io.ReadCloser
	in    *bufio.Reader
	begun bool
	left  int         // bytes that may come
	lost  func(error) // called when it ends before its end
}

func (b *body) Read(p []byte) (int, error) {
	if !b.begun {
		b.begun = true
		if begin, err := b.in.Peek(len(mark)); err == nil && string(begin) == mark {
			_, _ = b.in.Discard(len(mark)) // it was peeked at
		}
	}
	n, err := b.in.Read(p)
	if b.left -= n; b.left < 0 {
		err = fmt.Errorf("a message has more than %d bytes", messageMax)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		b.lost(err)
	}
	return n, err
}

// events is a stream of server-sent events without the lines that are none, and without the data that is no message.
type events struct {
	io.Closer
	in      *bufio.Reader
	strange func(string)
	lost    func(error)
	out     []byte
	err     error
}

func (e *events) Read(p []byte) (int, error) {
	for len(e.out) == 0 {
		if e.err != nil {
			return 0, e.err
		}
		e.out, e.err = e.event()
	}
	n := copy(p, e.out)
	e.out = e.out[n:]
	return n, nil
}

var errTooLong = fmt.Errorf("an event has more than %d bytes", messageMax)

// line is the next one with its end, of at most so many bytes.
func (e *events) line(most int) (line []byte, err error) {
	for {
		part, err := e.in.ReadSlice('\n')
		if len(line)+len(part) > most {
			return nil, errTooLong
		}
		if line = append(line, part...); !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// event is the next one, and why nothing follows it.
func (e *events) event() (event []byte, err error) {
	var data, rest []byte
	message := true
	for size := 0; err == nil; {
		var line []byte
		if line, err = e.line(messageMax - size); errors.Is(err, errTooLong) {
			e.lost(err)
			return nil, err
		}
		size += len(line)
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		name, value, field := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case !field:
			e.strange(string(line))
			continue
		case string(name) == "data":
			data = append(append(data, value...), '\n')
			continue
		case string(name) == "event":
			message = len(value) == 0 || string(value) == "message"
		}
		rest = append(append(rest, line...), '\n')
	}
	data = bytes.TrimSpace(data)
	if _, bad := jsonrpc.DecodeMessage(data); bad != nil && len(data) > 0 && message {
		e.strange(string(data))
		data = nil
	}
	if len(data) > 0 {
		for line := range bytes.SplitSeq(data, []byte("\n")) {
			rest = append(append(append(rest, "data: "...), line...), '\n')
		}
	}
	return append(rest, '\n'), err
}
