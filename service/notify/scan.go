package notify

import (
	"slices"

	"wf/protocol"
)

// A candidate is an event that a sink may be notified of.
type candidate struct {
	protocol.DeliveryDue // without its id
	event                protocol.Link
	kind                 protocol.WaitKind // of a question that is asked
}

// A scan gathers the candidates of a run from its events, in their order:
//
//	waiting    a question, an approval, a task that asks; a reminder of one, and that it was put to further people.
//	           No timer or signal, and nothing that was answered, or that the run ended with, before the look;
//	           reminders that were not looked at are one
//	failed     done with failed; suspended by an error, without a way on, or for want of an answer
//	done       done
//	limit      limit_reached; suspended by the limit of an edge or role
//
// Nothing that a fork shares with its origin is one. What a person did, such as a cancellation, is none.
type scan struct {
	found  []candidate
	last   protocol.EventType // of the event before
	forked bool               // an event said that the run is a fork
}

// add looks at the next event.
func (s *scan) add(run protocol.RunID, e *protocol.Entry) error {
	defer func() { s.last = e.Type }()
	switch e.Type {
	case protocol.EvForked:
		s.found, s.forked = nil, true
		return nil
	case protocol.EvAnswered, protocol.EvTimerFired:
		s.found = slices.DeleteFunc(s.found, func(c candidate) bool { return c.On == protocol.OnWaiting && c.Step == e.StepName() })
		return nil
	case protocol.EvDone, protocol.EvCancelled, protocol.EvClosing:
		s.found = slices.DeleteFunc(s.found, func(c candidate) bool { return c.On == protocol.OnWaiting })
	case protocol.EvWaiting, protocol.EvReminded, protocol.EvEscalated, protocol.EvSuspended, protocol.EvLimitReached:
	default:
		return nil
	}
	data, err := e.AnyData()
	if err != nil {
		return err
	}
	on := momentOf(data, s.last)
	if on == "" {
		return nil
	}
	c := candidate{protocol.DeliveryDue{Run: run, Seq: e.Seq, Event: e.CID.String(), On: on, Step: e.StepName()}, e.CID, ""}
	switch d := data.(type) {
	case protocol.WaitingFor:
		c.kind, c.Reminder, c.Escalated = d.Kind, d.Reminded, d.Escalated
	case protocol.Reminded:
		c.Reminder = d.N
	case protocol.Escalated:
		c.Escalated = d.N
	}
	s.found = append(slices.DeleteFunc(s.found, func(x candidate) bool { return c.Overtakes(x.DeliveryDue) }), c)
	return nil
}

// momentOf is "" where nothing is to be told.
func momentOf(data protocol.Data, before protocol.EventType) protocol.Moment {
	switch d := data.(type) {
	case protocol.WaitingFor:
		if d.Kind != protocol.WaitTimer && d.Kind != protocol.WaitSignal {
			return protocol.OnWaiting
		}
	case protocol.Reminded, protocol.Escalated:
		return protocol.OnWaiting
	case protocol.LimitReached:
		return protocol.OnLimit
	case protocol.SuspendedBy:
		switch d.Reason {
		case protocol.ByError, protocol.ByStall, protocol.ByAnswer:
			return protocol.OnFailed
		case protocol.ByLimit:
			if before != protocol.EvLimitReached {
				return protocol.OnLimit
			}
		}
	case protocol.Finished:
		switch d.Status {
		case protocol.Done:
			return protocol.OnDone
		case protocol.Failed:
			return protocol.OnFailed
		}
	}
	return ""
}
