package notify

import (
	"slices"

	"wf/protocol"
)

// A candidate is an event that a sink may be notified of.
type candidate struct {
	on    protocol.Moment
	seq   protocol.Seq
	event protocol.Link
	step  string
	kind  protocol.WaitKind // of waiting
}

// A scan gathers the candidates of a run from its events, in their order:
//
//	waiting    a question, an approval, a task that asks; no timer or signal, and nothing that was answered
//	           before the look
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
func (s *scan) add(e *protocol.Entry) error {
	defer func() { s.last = e.Type }()
	is := func(on protocol.Moment, kind protocol.WaitKind) {
		s.found = append(s.found, candidate{on, e.Seq, e.CID, e.StepName(), kind})
	}
	switch e.Type {
	case protocol.EvForked:
		s.found, s.forked = nil, true
	case protocol.EvLimitReached:
		is(protocol.OnLimit, "")
	case protocol.EvAnswered, protocol.EvTimerFired:
		s.found = slices.DeleteFunc(s.found, func(c candidate) bool { return c.on == protocol.OnWaiting && c.step == e.StepName() })
	case protocol.EvWaiting, protocol.EvSuspended, protocol.EvDone:
		data, err := e.AnyData()
		if err != nil {
			return err
		}
		if on := momentOf(data, s.last); on != "" {
			w, _ := data.(protocol.WaitingFor)
			is(on, w.Kind)
		}
	}
	return nil
}

// momentOf is "" where nothing is to be told.
func momentOf(data protocol.Data, before protocol.EventType) protocol.Moment {
	switch d := data.(type) {
	case protocol.WaitingFor:
		if d.Kind != protocol.WaitTimer && d.Kind != protocol.WaitSignal {
			return protocol.OnWaiting
		}
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
