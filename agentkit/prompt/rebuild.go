package prompt

import (
	"fmt"

	"wf/protocol"
)

// Rebuild gives the messages of the request that a visit had come to when its transcript ended:
// P_k, and behind it what was said since, compactions included. It is what a process that resumes
// the visit there goes on with; Work.Conclude may add to it before it is sent. A Turn without a
// Transcript gives P_k. The errors are those of BuildMessages and of Work.Replay.
func Rebuild(turn protocol.Turn) ([]protocol.Message, error) {
	w, err := NewWork(&turn, turn.Models, nil)
	if err != nil {
		return nil, err
	}
	for i := range turn.Transcript {
		if _, err := w.Replay(&turn.Transcript[i]); err != nil {
			return nil, fmt.Errorf("transcript of %s: %w", turn.Step, err)
		}
	}
	return w.Request(), nil
}

// Replay takes in the next event of the transcript, and returns its data; nil for a type that this
// binary does not know. The errors are those of Add, and of data that cannot be read.
func (w *Work) Replay(e *protocol.Entry) (protocol.Data, error) {
	data, err := e.AnyData()
	if err == nil && data != nil {
		err = w.add(data, e.Step == nil)
	}
	if err != nil {
		return nil, fmt.Errorf("event %d (%s): %w", e.Seq, e.Type, err)
	}
	return data, nil
}

// Add takes in what was journaled of the visit, in its order. The events of one reply are
// committed together and end with its usage; a usage alone is a call that failed. The errors are
// those of BuildMessages; the end of a task with a final response that does not fit the role's
// schema is one wrapping protocol.ErrCorrupt.
func (w *Work) Add(data ...protocol.Data) error {
	for _, d := range data {
		if err := w.add(d, false); err != nil {
			return err
		}
	}
	return nil
}

// add takes in data; ofRun is that of an event which belongs to no step.
func (w *Work) add(data protocol.Data, ofRun bool) error {
	switch d := data.(type) {
	case protocol.AttemptFailed:
		if d.Keeps {
			w.goOn(d.Error.Code)
		} else {
			w.again()
		}
	case protocol.StepStarted:
		if d.Messages > 0 {
			w.Announced = false // P_k holds what was said while the visit was interrupted
			w.Unbind()
		}
	case protocol.PromptSent:
		w.Announced = true
	case protocol.Thinking:
		w.reply.Opaque, w.said = d.Block.S, true
	case protocol.TextSaid:
		w.reply.Content, w.said = d.Content.S, true
	case protocol.ToolCall:
		w.reply.ToolCalls = append(w.reply.ToolCalls, protocol.CallMessage{ID: d.Call, Name: d.Name, Arguments: d.Args.S})
		w.said = true
	case protocol.Usage:
		w.used(d)
	case protocol.ToolResult:
		w.result(d.Call, d.Content.S, d.IsError)
	case protocol.Correction:
		w.Corrected = nil
	case protocol.Compacted:
		switch {
		case d.Scope != protocol.ScopeVisit:
			w.moveOn() // P_k is already that which follows from the record of it
		case d.Replies < 0:
			return fmt.Errorf("a compaction of %d replies: %w", d.Replies, protocol.ErrCorrupt)
		default:
			w.giveWay(d)
		}
	case protocol.CompactionDraft:
		h := w.compacted(d)
		p, err := BuildMessages(h)
		if err != nil {
			return err
		}
		w.turn.History, w.Prompt = h, p
		w.moveOn()
	case protocol.SuspendedBy:
		if !ofRun {
			w.same = 0
			w.unsuspend()
		}
	case protocol.ModelFallback:
		w.fallBack(d.To)
	}
	if w.Task == nil {
		return nil
	}
	switch d := data.(type) {
	case protocol.TaskStarted:
		w.Task.Goal, w.turn.History.Goal = d.Goal, d.Goal // and with it P_k
		p, err := BuildMessages(w.turn.History)
		w.Prompt = p
		return err
	case protocol.TaskStateUpdated:
		if w.Task.state = d.State.S; d.Shared.S != "" {
			w.Task.Shared = protocol.JSON(d.Shared.S)
		}
	case protocol.TaskWaitingOn:
		w.Task.question = d.Question.S
	case protocol.TaskDone:
		return w.complete(d)
	}
	return nil
}

// used takes in a usage, and the reply that it ends. A call that was given up is made again under
// the same number; one that was no turn adds nothing.
func (w *Work) used(u protocol.Usage) {
	if !IsTurn(u) {
		return
	}
	w.Corrected = nil // of an answer before: journaled, or by a version that did not
	if u.Stop == protocol.StopOverflow {
		w.Conclude()
		w.refused(u)
	}
	reply, said := w.reply, w.said
	if w.reply, w.said = (protocol.Message{}), false; said {
		reply.Role = protocol.RoleAssistant
		w.Conclude()
		w.take(reply, u)
	}
}

// IsTurn reports whether a usage is of a turn of the visit that came to an end, with or without a
// reply: not of a summary or the like, nor of a call that was given up.
func IsTurn(u protocol.Usage) bool {
	return u.Kind == protocol.UsageTurn && u.Stop != protocol.StopGivenUp
}
