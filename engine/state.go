package engine

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
	Info   Info            // who started what, and where
	Start  protocol.Link   // the Start in force: a fork may bring another
	Seq    protocol.Seq    // newest event folded
	TS     int64           // its time, unix µs
	Totals Totals          // counted over the whole run
	Limits protocol.Limits // as raised

	acts    []*act               // live region, ascending n
	nums    map[string]int       // dispatches per role
	nextN   int                  // number of the next activation
	tidyAt  int                  // prune when acts grow to this
	stop    *stop                // suspended, cancelled or done
	inbox   []protocol.MessageIn // that no agent has read yet
	compact bool                 // a person asked for a compaction
	result  protocol.Link
	active  bool // something ran at the last event: the time since counts

	prog  *lang.Program
	begun *opened // the Start in force
	read  Reader
	vals  map[protocol.Link]*stepValue // values of records, a cache
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

// startNode is the number of the activation that stands for START.
const startNode = 0

// noEdge is the edge of an activation that came by none of the definition in force.
const noEdge = -1

// act is an activation.
type act struct {
	n       int
	take    int // activations of one firing (to: [a, b]) share it
	role    string
	num     int // coder#num
	edge    int // noEdge for START, and for what ended under the definition before a fork
	via     protocol.Via
	parents []int                     // activations, in declared order
	links   []protocol.Link           // StepRecords of the parents, or Start
	of      int                       // number of items in a fan-out, −1 outside of one
	visits  []*visit                  // by item index; nil while an item was not dispatched
	edges   []int                     // firings of each edge among self and ancestors
	entries map[string]int            // activations of each role among self and ancestors
	latest  map[string]ref            // nearest ancestor of each role
	convs   map[string]*conversations // of the ancestors

	offer *offer     // once complete
	items []Decision // of an open fan-out, evaluated once; never stored
}

// visit is one entry of a role.
type visit struct {
	id       protocol.StepID
	number   int // StepRecord.Visit
	item     *protocol.Item
	resumes  protocol.Link
	tools    protocol.Link
	inject   protocol.Link
	prompt   protocol.Text
	attempt  int
	mode     mode
	waiting  protocol.WaitKind // while waits
	due      int64             // of a wait or a retry, unix µs; 0 is never
	question protocol.Text
	choices  []protocol.Choice
	form     protocol.Text
	first    protocol.Seq // of the first step_started
	record   protocol.Link
	status   protocol.StepStatus
	lastErr  string
	lastCode string // of the Error that parked it
	again    bool   // it was started before: there is a transcript
	anew     bool   // the next step_started is a further attempt

	size      int64 // tokens of its first request, 0 while that is not known, or unsized
	compacted bool  // resumes is a Compaction that it made itself
	compact   bool  // a person asked that it begin with one
}

// mode is where a visit stands.
//
//	runs ──► waits ──► ready ──► runs        answered, timer fired
//	  │ └──► retries ──────────► runs        retry_at
//	  └────► parked ───────────► ready       wf resume
//	  └────► ended
type mode int

const (
	runs    mode = iota // started; after a crash: cut off
	waits               // for an answer, a signal or a timer
	ready               // answered or resumed, to be performed again
	retries             // a further attempt is due
	parked              // failed for want of something, until a resume
	ended               // step_completed
)

// ref names a completed activation that may have left the live region.
type ref struct {
	n       int
	records []protocol.Link // by item; one outside of a fan-out
	batch   bool
}

// conversations are the newest ok visits of a role: the plain one, and per item value.
type conversations struct {
	plain *convo
	items map[protocol.Link]*convo
}

type convo struct {
	n      int           // activation
	record protocol.Link // StepRecord, or the Compaction of a visit that failed
	visit  int
	size   int64 // tokens of the first request of that visit, 0 is not known
}

// offer is the token of a completed activation until all its firings are dispatched.
type offer struct {
	failed  bool
	taken   map[int]map[string]bool // edge → targets dispatched already
	closed  bool                    // nothing is left of it
	granted bool                    // a person resumed it past a bound
	route   *route                  // computed once, never stored
	latest  map[string]ref          // what the token hands on: the activation included
	convs   map[string]*conversations
}

// Status is where the run stands, as far as the journal knows: a run whose process was
// killed is still running.
func (s *State) Status() protocol.RunStatus {
	if s.stop != nil {
		return s.stop.status
	}
	waiting := false
	for _, a := range s.acts {
		for _, v := range a.visits {
			switch {
			case v == nil || v.mode == ended || v.mode == parked:
			case v.mode == waits:
				waiting = true
			default:
				return protocol.Running
			}
		}
	}
	if waiting {
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
}

func (v *visit) waitingFor() WaitingVisit {
	return WaitingVisit{v.id, v.waiting, v.question, v.choices, v.form, v.due}
}

// Waiting lists what the run waits for, in order of dispatch; nothing once it has ended.
func (s *State) Waiting() []WaitingVisit {
	if s.Status().Final() {
		return nil
	}
	var out []WaitingVisit
	for _, a := range s.acts {
		for _, v := range a.visits {
			if v != nil && v.mode == waits {
				out = append(out, v.waitingFor())
			}
		}
	}
	return out
}

// open reports whether a visit of a has not ended.
func (a *act) open() bool {
	if len(a.visits) < a.of {
		return true
	}
	for _, v := range a.visits {
		if v == nil || v.mode != ended {
			return true
		}
	}
	return false
}

// batch reports whether a is a fan-out.
func (a *act) batch() bool { return a.of >= 0 }

// live reports whether the rules may still look at a on its own account.
func (a *act) live() bool { return a.open() || a.offer != nil && !a.offer.closed }

func (s *State) act(n int) *act {
	for i := len(s.acts) - 1; i >= 0; i-- {
		if s.acts[i].n == n {
			return s.acts[i]
		}
		if s.acts[i].n < n {
			return nil
		}
	}
	return nil
}
