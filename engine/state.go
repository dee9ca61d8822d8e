package engine

import (
	"wf/api"
	"wf/engine/lang"
	"wf/protocol"
)

// A State is a run folded from its journal.
//
// It keeps what the rules can still reach: the activations from the open ones back to the
// nearest one that all of them descend from. Older ones are summed up in counts, latest and
// conversations, so that a State does not grow with the history of a loop.
type State struct {
	Info   Info            // who started what, and where
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
	timed   timed // of visits that left the live region

	stored storedState // the snapshot that it was made of

	prog  *lang.Program
	begun *opened // the Start in force
	read  Reader
	vals  map[protocol.Link]*stepValue           // values of records, a cache
	lists map[*ref]*lang.Step                    // outputs of fan-outs, a cache
	made  map[protocol.Link]*protocol.StepRecord // records of visits that ended just now, a cache
}

// storedState is a snapshot in the store; seq is 0 where there is none.
type storedState struct {
	seq   protocol.Seq
	bytes int
}

// Reader fetches an immutable block.
type Reader func(protocol.Link) ([]byte, error)

// Info is what run_started and forked say.
type Info struct {
	protocol.RunStarted
	Started int64         // unix µs of run_started
	Forked  protocol.Link // base of the newest fork, or null
}

// Totals are sums over the journal.
type Totals struct {
	Steps    int   // visits dispatched
	Active   int64 // µs in which something ran
	Input    int64 // prompt tokens
	Cached   int64 // of Input
	Output   int64 // completion tokens
	Calls    int   // model calls
	Attempts int   // failed attempts
	Scripted int   // model calls answered by a script or a tape

	// Told sums what providers told, apart from what they did not.
	Told api.Usage

	// Models are the tokens by model, which is what a price needs. Every call counts, also
	// those of attempts that failed.
	Models map[string]Tokens
}

// Tokens are sums over calls to one model.
type Tokens struct {
	Calls        int
	Unreported   int   // calls of which the provider told no tokens: most of them failed
	Input        int64 // all prompt tokens
	Cached       int64 // of Input: read from the prefix cache
	CacheWrite5m int64 // of Input: written to a cache of 5 minutes
	CacheWrite1h int64
	Output       int64
}

// Usage is the sums in the form of one call to the model of that name.
func (t Tokens) Usage(model string) protocol.Usage {
	return protocol.Usage{Model: model, Input: &t.Input, Cached: &t.Cached, CacheWrite5m: &t.CacheWrite5m, CacheWrite1h: &t.CacheWrite1h, Output: &t.Output}
}

// stop is why nothing moves.
type stop struct {
	status protocol.RunStatus // suspended, cancelled, done, failed
	reason protocol.SuspendReason
	detail string
	code   string // of the Error behind it, or ""
}

// Status is where the run stands, as far as the journal knows: a run whose process was
// killed is still running.
func (s *State) Status() protocol.RunStatus {
	if s.stop != nil {
		return s.stop.status
	}
	if s.agenda.moving() {
		return protocol.Running
	}
	if len(s.agenda.visits[waits]) > 0 {
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

// Inputs are the inputs in force: a canonical JSON object.
func (s *State) Inputs() protocol.JSON { return s.begun.raw }

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
	for _, v := range s.agenda.visits[waits] {
		out = append(out, v.waitingFor())
	}
	return out
}
