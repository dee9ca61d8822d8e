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
	Info   Info            // what was started, by which person or program, and where
	Start  protocol.Link   // the Start in force: a fork may bring another
	Seq    protocol.Seq    // newest event folded
	TS     int64           // its time, unix µs
	Totals Totals          // counted over the whole run
	Limits protocol.Limits // as raised

	acts    []*act               // live region, ascending n
	agenda  agenda               // what of it has not ended
	nums    map[string]int       // dispatches per role
	nextN   int                  // number of the next activation
	tidyAt  int                  // prune when acts grow to this
	stop    *stop                // suspended, cancelled or done
	inbox   []protocol.MessageIn // that no agent has read yet
	compact bool                 // a person asked for a compaction
	windows map[string]int64     // tokens that models read at most, as far as refusals told
	allowed map[string]string    // tool calls that are allowed for the run: digest → by whom
	result  protocol.Link
	path    path
	active  bool  // something ran at the last event: the time since counts
	timed   Times // of visits that left the live region

	prog  *lang.Program
	begun *Opened // the Start in force
	from  Records
	vals  map[protocol.Link]*stepValue // values of records, a cache
	lists map[*ref]*lang.Step          // outputs of fan-outs, a cache
}

// ReadFrom has the state read from another place from now on.
func (s *State) ReadFrom(r Records) { s.from = r }

// Info is what run_started and forked say.
type Info struct {
	protocol.RunStarted
	Started int64         // unix µs of run_started
	Forked  protocol.Link // base of the newest fork, or null
}

// stop is why nothing moves.
type stop struct {
	status protocol.RunStatus // suspended, cancelled, done, failed
	reason protocol.SuspendReason
	detail string
	code   string // of the Error behind it, or ""
}

// Status is the status of the run, as far as the journal knows: a run after its process was
// killed is still running.
func (s *State) Status() protocol.RunStatus {
	if s.stop != nil {
		return s.stop.status
	}
	if s.agenda.moving() {
		return protocol.Running
	}
	if len(s.agenda.visits[Waits]) > 0 {
		return protocol.Waiting
	}
	return protocol.Running
}

// Reason says in words why a run is suspended, cancelled or failed; "" otherwise.
func (s *State) Reason() string {
	switch {
	case s.stop == nil:
		return ""
	case s.stop.status == protocol.Failed:
		f, t, _ := s.toFail(s.firings())
		return s.failedBy(f, t)
	}
	return s.stop.detail
}

// SuspendedBy is the reason of a suspension, "" otherwise.
func (s *State) SuspendedBy() protocol.SuspendReason {
	if s.stop == nil {
		return ""
	}
	return s.stop.reason
}

// Code is the code of the Error behind a suspension, for example model_unavailable, or "".
func (s *State) Code() string {
	if s.stop == nil {
		return ""
	}
	return s.stop.code
}

// Result is the CID of what the run concluded, null until it is done.
func (s *State) Result() protocol.Link { return s.result }

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
}

func (v *visit) waitingFor() WaitingVisit {
	return WaitingVisit{v.id, v.waiting, v.question, v.choices, v.form, v.due, v.shown}
}

// Waiting lists what the run waits for, in order of dispatch; nothing once it has ended.
func (s *State) Waiting() []WaitingVisit {
	if s.Status().Final() {
		return nil
	}
	var out []WaitingVisit
	for _, v := range s.agenda.visits[Waits] {
		out = append(out, v.waitingFor())
	}
	return out
}
