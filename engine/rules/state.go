package rules

import (
	"wf/engine/lang"
	"wf/protocol"
)

// A State is a run folded from its journal.
//
// It keeps what the rules can still reach: the activations from the open ones back to the
// nearest one that all of them descend from. Older ones are summed up in counts, latest and
// conversations, so that a State does not grow with the history of a loop.
type State struct {
	storedState

	acts   []*act // live region, ascending N
	agenda agenda // what of it has not ended
	tidyAt int    // prune when acts grow to this
	ways   map[protocol.Way]int

	prog  *lang.Program
	begun *Opened // the Start in force
	from  Records
	vals  map[protocol.Link]*lang.Step // values of records, a cache
	lists map[*ref]*lang.Step          // outputs of fan-outs, a cache
	filed map[*ref]*lang.Step          // those with their artifacts
}

// storedState is what a snapshot holds of a State as it is.
type storedState struct {
	Info   Info                           `cbor:"info"`   // what was started, by which person or program, and where
	Start  protocol.Link                  `cbor:"start"`  // the Start in force: a fork may bring another
	Seq    protocol.Seq                   `cbor:"seq"`    // newest event folded
	TS     int64                          `cbor:"ts"`     // its time, unix µs
	Totals Totals                         `cbor:"totals"` // counted over the whole run
	Timed  Times                          `cbor:"timed"`  // of visits that left the live region
	Limits protocol.Limits                `cbor:"limits"` // as raised
	Nums   map[string]int                 `cbor:"nums"`   // dispatches per role
	Fates  map[string]protocol.StepStatus `cbor:"fates"`  // of the newest visit of a role, once it has ended
	NextN  int                            `cbor:"next"`   // number of the next activation
	Active bool                           `cbor:"active"` // something ran at the last event: the time since counts
	End    protocol.Link                  `cbor:"result"`
	stop                                  // suspended, cancelled or done

	Inbox   []protocol.MessageIn `cbor:"inbox,omitempty"`   // that no agent has read yet
	Compact bool                 `cbor:"compact,omitempty"` // a person asked for a compaction
	Windows map[string]int64     `cbor:"windows,omitempty"` // tokens that models read at most, as far as refusals showed
	Allowed map[string]string    `cbor:"allowed,omitempty"` // tool calls that are allowed for the run: digest → by whom

	Lead   protocol.Seq                     `cbor:"lead,omitempty"`    // the newest of the events of a group directly behind run_started
	Queue  *protocol.QueuedFor              `cbor:"queue,omitempty"`   // of a run that waits for a slot of its group
	InLine map[string]protocol.GroupWaiting `cbor:"in_line,omitempty"` // visits that began, and wait for a slot of the group of their role

	Uncounted int64 `cbor:"uncounted,omitempty"` // µs before TS that count if the run was driven then, as the next event tells

	Tracked *protocol.FilesTracked `cbor:"tracked,omitempty"` // what was said of the files of the workspace

	Closing *closing `cbor:"closing,omitempty"` // once the verdict stands of a run that has always roles
}

// ReadFrom has the state read from another place from now on.
func (s *State) ReadFrom(r Records) { s.from = r }

// Info is what run_started and forked say.
type Info struct {
	protocol.RunStarted
	Started int64         // unix µs of run_started
	Forked  protocol.Link // base of the newest fork, or null
}

// stop is why nothing moves; the zero stop where something can.
type stop struct {
	Stopped bool                   `cbor:"stopped"`
	Status  protocol.RunStatus     `cbor:"status"` // suspended, cancelled, done, failed
	Reason  protocol.SuspendReason `cbor:"reason"`
	Detail  string                 `cbor:"detail"`
	Code    string                 `cbor:"code"` // of the Error behind it, or ""
}

// Status is the status of the run, as far as the journal knows: a run after its process was
// killed is still running.
func (s *State) Status() protocol.RunStatus {
	if s.Stopped {
		return s.stop.Status
	}
	if s.Queue != nil {
		return protocol.Queued
	}
	if s.due().moving() {
		return protocol.Running
	}
	if len(s.due().visits[Waits]) > 0 {
		return protocol.Waiting
	}
	return protocol.Running
}

// Reason says in words why a run is suspended, cancelled or failed; "" otherwise.
func (s *State) Reason() string {
	if s.Closing != nil && !s.Stopped {
		return s.words(s.Closing.Message)
	}
	if s.stop.Status == protocol.Failed {
		f, t, _ := s.toFail(s.firings())
		return s.failedBy(f, t)
	}
	return s.stop.Detail
}

// SuspendedBy is the reason of a suspension, "" otherwise.
func (s *State) SuspendedBy() protocol.SuspendReason { return s.stop.Reason }

// Code is the code of the Error behind a suspension, for example model_unavailable, or "".
func (s *State) Code() string { return s.stop.Code }

// Result is the CID of what the run concluded, null until it is done.
func (s *State) Result() protocol.Link { return s.End }

// Program is the definition in force.
func (s *State) Program() *lang.Program { return s.prog }

// Opened is the Start in force, with its definition and inputs.
func (s *State) Opened() *Opened { return s.begun }

// WaitingVisit is a visit that waits, for people.
type WaitingVisit struct {
	Step     protocol.StepID
	Kind     protocol.WaitKind
	Question protocol.Text
	Choices  []protocol.Choice
	Form     protocol.Text // canonical JSON Schema of the fields to fill in, "" is none
	Due      int64         // unix µs, 0 is never
	Shown    string        // digest of the tool call under approval, "" is none

	Wake      int64    // when something is due of it, a reminder or its end: unix µs, 0 is never
	Remind    []int64  // reminders to come, unix µs
	Assignees []string // whose authenticated answers count; none is everybody
	Reminded  int      // how many reminders are over, of the people it is put to now
	Escalated int      // how often it was put to further people
	OnTimeout string   // what happens to a question at Due: the value of a choice, fail or escalate
}

func (v *visit) waitingFor() WaitingVisit {
	return WaitingVisit{v.id(), v.Waiting, v.Question, v.Choices, v.Form, v.Due, v.Shown, v.wake(), v.Remind[v.Reminded:], v.Assignees, v.Before + v.Reminded, v.Escalated, ""}
}

// Waiting lists what the run waits for, in order of dispatch; nothing once it has ended.
func (s *State) Waiting() []WaitingVisit {
	if s.Status().Final() {
		return nil
	}
	var out []WaitingVisit
	for _, v := range s.due().visits[Waits] {
		w := v.waitingFor()
		w.OnTimeout = s.onTimeout(v)
		out = append(out, w)
	}
	return out
}
