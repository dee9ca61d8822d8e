package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"

	"wf/roles"
)

// attempt is what a transport saw of a call on its way: where there is no answer it tells whether the server can have taken
// it, and why there is none.
type attempt struct {
	mu      sync.Mutex
	sent    bool  // some of it left
	n, size int   // bytes of it that a program was given, of how many
	from    int64 // bytes that the program was given before

	reached bool   // by a connection that stood
	session bool   // as a part of a session
	status  int    // of HTTP; 0 is none
	said    []byte // with a status that is no success
	lost    error  // why the connection ended
}

type attemptKey struct{}

// attemptOf is the attempt of which a request is a part. What is a part of none has one that nobody reads.
func attemptOf(ctx context.Context) *attempt {
	if a, ok := ctx.Value(attemptKey{}).(*attempt); ok {
		return a
	}
	return &attempt{}
}

func (a *attempt) note(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}

// wrote is called with how much of the request was given to a program, and behind how many bytes.
func (a *attempt) wrote(from int64, n, size int) {
	a.note(func() { a.sent, a.from, a.n, a.size = true, from, n, size })
}

// untaken reports whether the server cannot have performed the call, so that it can be made again: none of it was sent, a
// program was not given all of it or has read nothing of it, or a server by HTTP does not know the session (404 in answer to a request with a session,
// Model Context Protocol, basic/transports#session-management).
func (a *attempt) untaken(proc *program) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case !a.sent:
		return true
	case proc != nil:
		return a.n < a.size || proc.written.Load()-proc.unread <= a.from // what lies behind the call may be unread, too
	}
	return a.status == http.StatusNotFound && a.session
}

// failed says what became of a call by HTTP that has no answer; "" where nothing
// is known of it.
func (a *attempt) failed() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var op *net.OpError
	switch {
	case a.status == 0 && a.lost != nil && (!a.reached || errors.As(a.lost, &op) && op.Op == "dial"):
		return fmt.Sprintf("cannot be reached, and the call was not made: %v", a.lost)
	case a.status < 300 && a.lost != nil:
		return fmt.Sprintf("lost the connection during the call, its outcome is unknown: %v", a.lost)
	case a.status < 300:
		return ""
	}
	text, isError := a.refusal()
	if text = strings.TrimSpace(strings.ToValidUTF8(text, "�")); text != "" {
		text = ": " + text[:roles.CutRunes(text, stderrMax)]
	}
	text = fmt.Sprintf("HTTP %d %s%s", a.status, http.StatusText(a.status), text)
	if a.status >= 500 && !isError {
		return "failed during the call, its outcome is unknown: " + text
	}
	return "refuses the call: " + text
}

// refusal is what came with a status that is no success; isError reports that it is an answer of the protocol.
func (a *attempt) refusal() (text string, isError bool) {
	var said struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(a.said, &said) == nil && said.Error.Message != "" {
		return said.Error.Message, true
	}
	return string(a.said), false
}
