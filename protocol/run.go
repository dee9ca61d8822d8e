package protocol

import (
	"fmt"
	"strconv"
	"strings"
)

// RunID names one execution of a workflow; "sessionId" on the replay wire.
type RunID string

// Seq is the place of an event in its journal, dense from 1; 0 is before the first.
type Seq int64

// RunHead is the name of the head of a run.
func RunHead(id RunID) string { return "run/" + string(id) }

// RunStatus is the state of a run.
//
//	queued ───► running                   a slot of its concurrency group is free
//	running ──► waiting ──► running       an answer came, a timer fired
//	   │  └───► suspended ─► running      interrupt, error, limit, stalled; wf resume
//	   └──────► done │ failed │ cancelled for good
//
// A run with always roles that closes is running, or suspended: what it ends as stands, and is in its state.
type RunStatus string

// The states of a run.
const (
	Queued    RunStatus = "queued"
	Running   RunStatus = "running"
	Waiting   RunStatus = "waiting"
	Suspended RunStatus = "suspended"
	Done      RunStatus = "done"
	Failed    RunStatus = "failed"
	Cancelled RunStatus = "cancelled"
)

// Final reports whether nothing can happen to the run any more, but a fork.
func (s RunStatus) Final() bool { return s == Done || s == Failed || s == Cancelled }

// ChatType is the type of the runs that are chats.
const ChatType = "chat"

// SuspendReason says why a run was suspended.
type SuspendReason string

// The reasons of a suspension.
const (
	ByInterrupt SuspendReason = "interrupt"
	ByError     SuspendReason = "error"
	ByStall     SuspendReason = "stalled"
	ByLimit     SuspendReason = "limit"
	ByAnswer    SuspendReason = "answer" // a question without an answer
)

// StepID names a visit within a run, for people and the journal: coder#2, and in a fan-out
// coder#1[0]. The number counts the dispatches of the role in the run.
type StepID struct {
	Role  string
	N     int
	Index int // place in the fan-out; −1 outside of one
}

// String is the written form.
func (s StepID) String() string {
	if s.Index < 0 {
		return s.Role + "#" + strconv.Itoa(s.N)
	}
	return fmt.Sprintf("%s#%d[%d]", s.Role, s.N, s.Index)
}

// FirstItem is the step that a fan-out begins with: check#1[0] of check#1.
func FirstItem(fan string) string { return fan + "[0]" }

// ParseStepID reads coder#2 and coder#1[0].
func ParseStepID(s string) (StepID, error) {
	bad := func() error { return fmt.Errorf("%q is no step id (want role#n or role#n[i])", s) }
	role, rest, ok := strings.Cut(s, "#")
	if !ok || role == "" {
		return StepID{}, bad()
	}
	id := StepID{Role: role, Index: -1}
	if num, idx, ok := strings.Cut(rest, "["); ok {
		i, err := strconv.Atoi(strings.TrimSuffix(idx, "]"))
		if err != nil || i < 0 || !strings.HasSuffix(idx, "]") {
			return StepID{}, bad()
		}
		rest, id.Index = num, i
	}
	n, err := strconv.Atoi(rest)
	if err != nil || n < 1 {
		return StepID{}, bad()
	}
	id.N = n
	return id, nil
}

// RunOf is the run of a head that RunHead names.
func RunOf(head string) RunID { return RunID(strings.TrimPrefix(head, RunHead(""))) }
