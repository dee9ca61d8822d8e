package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// batchMax is how many messages a line may hold: to look at millions takes minutes, and gigabytes.
const batchMax = 1000

// strangeMax is how many bytes of a line that is no message are kept, for people.
const strangeMax = 200

// lines speaks with a program: each message is a line. Programs print other lines too (a banner, a log, what a library
// says): those are skipped, since the next line is a message again.
type lines struct {
	proc    *program
	in      *bufio.Reader
	strange func(line string) // called with each line that is skipped, or its beginning

	queue []jsonrpc.Message // of a line with several, still to be read

	writing sync.Mutex

	mu   sync.Mutex
	open map[jsonrpc.ID]bool // requests that have no answer
}

var (
	_ sdk.Transport  = (*lines)(nil)
	_ sdk.Connection = (*lines)(nil)
)

func newLines(p *program, strange func(line string)) *lines {
	return &lines{proc: p, in: bufio.NewReaderSize(p, 64<<10), strange: strange, open: map[jsonrpc.ID]bool{}}
}

// Connect is that of a transport with one connection.
func (l *lines) Connect(context.Context) (sdk.Connection, error) { return l, nil }

// SessionID is none: the program is the session.
func (l *lines) SessionID() string { return "" }

// Close ends both streams, and with them a Read or Write that waits. They may be closed already: the program was stopped.
func (l *lines) Close() error {
	l.proc.stdin.Close()
	l.proc.stdout.Close()
	return nil
}

// Read gives the next message.
func (l *lines) Read(context.Context) (jsonrpc.Message, error) {
	for len(l.queue) == 0 {
		line, err := l.line()
		if err != nil {
			return nil, err
		}
		var all bool
		if l.queue, all = messages(line); !all {
			l.strange(string(line))
		}
		l.queue = l.asked(l.queue)
	}
	m := l.queue[0]
	l.queue = l.queue[1:]
	return m, nil
}

// asked leaves out the answers to what was not asked.
func (l *lines) asked(all []jsonrpc.Message) []jsonrpc.Message {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := all[:0]
	for _, m := range all {
		if r, ok := m.(*jsonrpc.Response); ok {
			if !l.open[r.ID] {
				l.strange(fmt.Sprintf("an answer to a request with the id %v, which was not made or has its answer", r.ID.Raw()))
				continue
			}
			delete(l.open, r.ID)
		}
		out = append(out, m)
	}
	return out
}

// line is the next line that is not blank: whole where it may hold a message, else its beginning.
func (l *lines) line() ([]byte, error) {
	for {
		var line []byte
		end, most := false, 0
		for !end {
			part, err := l.in.ReadSlice('\n')
			end = err == nil || errors.Is(err, io.EOF) && len(line)+len(part) > 0 // the last one may have no end
			if !end && !errors.Is(err, bufio.ErrBufferFull) {
				return nil, err
			}
			if most == 0 {
				if part = bytes.TrimLeft(bytes.TrimPrefix(part, []byte(mark)), " \t\r\n"); len(part) == 0 {
					continue
				}
				most = strangeMax
				if bytes.HasPrefix(bytes.TrimLeft(part, "[ \t"), []byte("{")) {
					most = messageMax
				}
			}
			if over := len(line) + len(part) - most; over > 0 && most == messageMax {
				return nil, fmt.Errorf("a message has more than %d bytes", messageMax)
			} else if over > 0 {
				part = part[:len(part)-over]
			}
			line = append(line, part...)
		}
		if line = bytes.TrimRight(line, " \t\r\n"); len(line) > 0 {
			return line, nil
		}
	}
}

// messages are those of a line, one or a list; all is false where it holds something else, or too many.
func messages(line []byte) (out []jsonrpc.Message, all bool) {
	list := []json.RawMessage{line}
	if line[0] == '[' {
		var ok bool
		if list, ok = listed(line); !ok {
			return nil, false
		}
	}
	all = len(list) > 0
	for _, raw := range list {
		m, err := jsonrpc.DecodeMessage(raw)
		if err != nil {
			all = false
			continue
		}
		out = append(out, m)
	}
	return out, all
}

// listed are the values of a list; ok is false for something else, and for a list of more than batchMax.
func listed(line []byte) (list []json.RawMessage, ok bool) {
	in := json.NewDecoder(bytes.NewReader(line))
	if _, err := in.Token(); err != nil {
		return nil, false
	}
	for in.More() {
		var raw json.RawMessage
		if err := in.Decode(&raw); err != nil || len(list) == batchMax {
			return nil, false
		}
		list = append(list, raw)
	}
	if _, err := in.Token(); err != nil {
		return nil, false
	}
	_, err := in.Token()
	return list, errors.Is(err, io.EOF)
}

// Write sends a message, until ctx ends: a program that hangs reads nothing.
func (l *lines) Write(ctx context.Context, m jsonrpc.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	raw, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	raw = append(raw, '\n')
	r, isRequest := m.(*jsonrpc.Request)
	isCall := isRequest && r.IsCall()
	l.mu.Lock()
	if isCall {
		l.open[r.ID] = true
	}
	l.mu.Unlock()
	// What was cut off cannot be gone on with: no later write succeeds either.
	defer context.AfterFunc(ctx, func() { _ = l.proc.stdin.SetWriteDeadline(time.Unix(1, 0)) })()
	l.writing.Lock() // where a call lies among the others counts
	defer l.writing.Unlock()
	from := l.proc.written.Add(int64(len(raw))) - int64(len(raw))
	n, err := l.proc.stdin.Write(raw)
	l.proc.written.Add(int64(n - len(raw)))
	if isCall {
		attemptOf(ctx).wrote(from, n, len(raw))
	}
	return err
}
