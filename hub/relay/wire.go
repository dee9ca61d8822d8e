package relay

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"wf/protocol"
)

// WorkerPath is where workers dial in.
const WorkerPath = "/v1/agent"

// wireVersion of the control stream. A hub refuses workers of another one.
const wireVersion = 1

// Subprotocol of the WebSocket of a link.
const Subprotocol = "wf.agent.v1"

// Headers of requests from the hub to a worker. The worker believes them, because only its hub
// can open streams; the hub takes them off what clients send.
const (
	headerBy     = "Wf-By"     // name of the client
	headerScopes = "Wf-Scopes" // of the client, with spaces between
	headerJob    = "Wf-Job"    // id of the job that a POST /v1/runs starts
	headerEpoch  = "Wf-Epoch"  // of its lease
	// Of a job whose body is a box (package seal): the key of it, sealed to the worker, in base64; and the workflow, escaped.
	headerKey      = "Wf-Key"
	headerWorkflow = "Wf-Workflow"
)

// The control messages.
const (
	// From a worker.
	msgRegister  = "register"  // Wire, Worker, Instance, Name, Version, Caps, Key, Capacity
	msgRuns      = "runs"      // Runs: all of them between register and ready, then those that moved
	msgReady     = "ready"     // all runs were told
	msgCaps      = "caps"      // Caps
	msgHeartbeat = "heartbeat" // answered with a heartbeat
	msgConfirm   = "confirm"   // Job, Epoch: does the lease hold?
	msgBegun     = "begun"     // Job, OK: it begins a job of another hub, or could not
	msgPassed    = "passed"    // Job, To, Sealed: the key that msgPass asked for

	// From the hub.
	msgRegistered = "registered" // HeartbeatMS, TTLMS
	msgRefused    = "refused"    // Code, Message; the link ends
	msgConfirmed  = "confirmed"  // Job, Epoch, OK, LeftMS
	msgMoved      = "moved"      // Run, To: a run of the sender belongs to another worker
	msgPass       = "pass"       // Job, Workflow, Sealed, To, Key: seal the key of a box to another worker too
)

// message is a line of the control stream.
type message struct {
	Type string `json:"type"`

	Wire     int      `json:"wire,omitempty"`
	Worker   string   `json:"agentId,omitempty"`
	Instance string   `json:"instance,omitempty"` // of the process: tells a reconnect from a copy
	Name     string   `json:"name,omitempty"`
	Version  string   `json:"version,omitempty"`
	Caps     []string `json:"caps,omitempty"`
	Runs     []Run    `json:"runs,omitempty"`
	Key      []byte   `json:"key,omitempty"`      // public, of a worker
	Capacity int      `json:"capacity,omitempty"` // how many runs it drives at once for jobs to be given to it; 0 is any number

	Workflow string `json:"workflow,omitempty"`
	Sealed   []byte `json:"sealed,omitempty"` // key of a box

	Job    string `json:"job,omitempty"`
	Epoch  uint64 `json:"epoch,omitempty"`
	OK     bool   `json:"ok,omitempty"`
	LeftMS int64  `json:"leftMs,omitempty"` // of the lease: a span, so that clocks need not agree

	Run protocol.RunID `json:"run,omitempty"`
	To  string         `json:"to,omitempty"`

	HeartbeatMS int64  `json:"heartbeatMs,omitempty"`
	TTLMS       int64  `json:"ttlMs,omitempty"`
	Code        string `json:"code,omitempty"`
	Message     string `json:"message,omitempty"`
}

// A Run is what a worker says of a run that it has.
type Run struct {
	ID        protocol.RunID `json:"id"`
	HeadSeq   protocol.Seq   `json:"headSeq"`
	HeadCID   string         `json:"headCid"`
	RequestID string         `json:"requestId,omitempty"` // by which it was started
	// Foreign is a run that came from elsewhere and is not gone on with at the worker, such as an imported one. Its
	// RequestID started it elsewhere, and is left out.
	Foreign bool `json:"foreign,omitempty"`
	Busy    bool `json:"busy,omitempty"` // it is being driven
}

// Bounds of the control stream.
const (
	maxLine     = 1 << 20
	runsPerLine = 500
	maxCaps     = 6144 // three for each workflow
)

// lines reads and writes messages on a connection. send is safe for concurrent use.
type lines struct {
	conn net.Conn
	in   *bufio.Reader
	mu   sync.Mutex
}

func newLines(c net.Conn) *lines { return &lines{conn: c, in: bufio.NewReaderSize(c, maxLine)} }

// sendTime is how long the other end may take to read a message.
const sendTime = 10 * time.Second

func (l *lines) send(m message) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(b) >= maxLine {
		return fmt.Errorf("a %s message of %d bytes: %w", m.Type, len(b), protocol.ErrTooLarge)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.conn.SetWriteDeadline(time.Now().Add(sendTime)); err != nil {
		return err
	}
	_, err = l.conn.Write(append(b, '\n'))
	return err
}

// next waits for a message, patience long.
func (l *lines) next(patience time.Duration) (message, error) {
	var m message
	if err := l.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return m, err
	}
	line, err := l.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return m, fmt.Errorf("a message of more than %d bytes: %w", maxLine, protocol.ErrTooLarge)
	}
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(line, &m); err != nil {
		return m, fmt.Errorf("control stream: %w: %w", protocol.ErrBadRequest, err)
	}
	return m, nil
}
