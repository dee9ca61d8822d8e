package rules

import (
	"fmt"
	"iter"

	"wf/protocol"
)

// Mode is where a visit stands.
//
//	Runs ──► Waits ──► Ready ──► Runs        answered, timer fired
//	  │ └──► Retries ──────────► Runs        retry_at
//	  └────► Parked ───────────► Ready       wf resume
//	  └────► Ended
type Mode int

const (
	Runs    Mode = iota // started; after a crash: cut off
	Waits               // for an answer, a signal or a timer
	Ready               // answered or resumed, to be performed again
	Retries             // a further attempt is due
	Parked              // failed for want of something, until a resume
	Ended               // step_completed
)

// Visit is a visit of the live region as it stands: a copy, which does not move with the State.
type Visit struct {
	Step   protocol.StepID
	Mode   Mode
	First  protocol.Seq         // of its first step_started
	Last   protocol.Seq         // of its newest one; 0 where that was not folded since the state was stored
	Begun  protocol.StepStarted // what each step_started of it repeats; Attempt is that of the newest
	Again  bool                 // it was started more than once: there is a transcript
	Anew   bool                 // the next step_started is a further attempt
	Reused bool                 // it has taken an earlier result, which may be half laid out
	Told   bool                 // it was sent messages from outside
	Error  string               // why it was parked, or its attempt failed; "" once it is begun again
	Held   *protocol.Held       // while it runs: what keeps it back
	Base   protocol.Link        // of the own copies of its fan-out; null before there is one
}

// seen is the copy of v.
func (s *State) seen(v *visit) Visit {
	a := v.of
	return Visit{Step: v.id(), Mode: v.Mode, First: v.First, Last: v.last, Again: v.Again, Anew: v.Anew, Reused: v.Reused, Told: v.Told, Error: v.LastErr, Held: v.Held, Base: a.Base,
		Begun: protocol.StepStarted{Start: s.Start, Parents: a.Links, Role: a.Role, Visit: v.Number, Item: v.Item,
			Edge: a.Edge, Via: a.Via, EdgePrompt: v.Prompt, Resumes: v.Resumes, Tools: v.Tools, Inject: v.Inject,
			Attempt: v.Attempt, Of: max(0, a.Of), Preparing: v.Preparing}}
}

// Visit is a visit of the live region by the name of its step. Where there is none, since it never
// began or is too far back, the error wraps protocol.ErrNotFound.
func (s *State) Visit(step string) (Visit, error) {
	v, _, err := s.visitNamed(step)
	if err != nil {
		return Visit{}, err
	}
	return s.seen(v), nil
}

// Visits are those of the live region in the order of their activations, those that have ended included.
func (s *State) Visits() iter.Seq[Visit] {
	return func(yield func(Visit) bool) {
		for _, a := range s.acts {
			for _, v := range a.visits {
				if v != nil && !yield(s.seen(v)) {
					return
				}
			}
		}
	}
}

// Record is the StepRecord of a visit as far as it follows from the journal: all but what it concluded. The
// errors are those of Visit and of Records.
func (s *State) Record(step string, status protocol.StepStatus) (protocol.StepRecord, error) {
	v, _, err := s.visitNamed(step)
	if err == nil {
		err = s.wholePrompt(v)
	}
	if err != nil {
		return protocol.StepRecord{}, err
	}
	begun := s.seen(v).Begun
	r := RecordOf(&begun)
	r.Status = status
	return r, nil
}

// RecordOf is the StepRecord of a visit as far as its step_started says it; the edge prompt of that was read.
func RecordOf(d *protocol.StepStarted) protocol.StepRecord {
	return protocol.StepRecord{Kind: protocol.KindStep, V: protocol.RecordVersion, Start: d.Start, Parents: d.Parents,
		Role: d.Role, Visit: d.Visit, Item: d.Item, Edge: d.Edge, Via: d.Via, EdgePrompt: d.EdgePrompt.S, Resumes: d.Resumes,
		Tools: d.Tools, Inject: d.Inject}
}

// wholePrompt reads the edge prompt of a visit, once: it is kept until the visit has ended, beside the link
// that is stored of it.
func (s *State) wholePrompt(v *visit) (err error) {
	if v.Prompt.S, err = s.text(v.Prompt); err != nil {
		return fmt.Errorf("edge prompt of %s: %w", v.id(), err)
	}
	return nil
}
