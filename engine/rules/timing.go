package rules

import "wf/protocol"

// Times sums up, in µs, what the time of visits of agents and commands went into, waiting for people and
// timers left out.
type Times struct {
	Total int64 `cbor:"total"`
	TTFE  int64 `cbor:"ttfe"`  // until the model's first event, once for each visit
	Tools int64 `cbor:"tools"` // in which a tool or command ran; side by side counts once
	Calls int   `cbor:"calls"` // of tools and commands
}

// lap measures a visit of an agent or a command by the times of its events, in µs.
type lap struct {
	From     int64 `cbor:"from"` // of the stretch that is open, 0 is none
	Last     int64 `cbor:"last"` // newest event
	Total    int64 `cbor:"total"`
	TTFE     int64 `cbor:"ttfe"`
	Answered bool  `cbor:"told"` // the first answer of a model came
	Calls    int   `cbor:"calls"`
	Running  int   `cbor:"running"` // tools that run
	Since    int64 `cbor:"since"`   // when the first of them began
	Tools    int64 `cbor:"tools"`
	Held     int64 `cbor:"held,omitempty"` // since when it is held, 0 is not: that time is left out
}

// clock takes the time of an event. That of a step_started is taken after the state has moved by
// it, that of any other before.
func (s *State) clock(step string, ts int64, typ protocol.EventType, d protocol.Data) {
	if step == "" {
		s.clockRun(ts, typ, d)
		return
	}
	v, a, err := s.visitNamed(step)
	if err != nil || v.Mode == Ended {
		return
	}
	if v.Lap == nil {
		role, ok := s.prog.Workflow.RoleNamed(a.Role)
		if !ok || !role.Action.ActsOnFiles() {
			return
		}
		v.Lap = &lap{}
	}
	l := v.Lap
	l.Last = ts
	switch typ {
	case protocol.EvStepStarted:
		l.end(ts)
		l.From = ts
		if role, ok := s.prog.Workflow.RoleNamed(a.Role); ok && role.Action == protocol.ActRun {
			l.begin(ts)
			l.Calls++
		}
	case protocol.EvGroupWaiting: // the time until it enters is not its own
		l.end(ts)
	case protocol.EvGroupEntered:
		if l.From == 0 {
			l.From = ts
			if role, ok := s.prog.Workflow.RoleNamed(a.Role); ok && role.Action == protocol.ActRun {
				l.begin(ts)
			}
		}
	case protocol.EvUsage:
		if u, ok := d.(protocol.Usage); ok && !l.Answered && u.Kind == protocol.UsageTurn {
			l.Answered, l.TTFE = true, u.TTFE*1000
		}
	case protocol.EvToolCall:
		l.begin(ts)
		l.Calls++
	case protocol.EvToolResult:
		l.finish(ts)
	case protocol.EvHeld:
		if l.From != 0 && l.Held == 0 {
			l.Held = ts
		}
	case protocol.EvReleased:
		l.release(ts)
	case protocol.EvStepCompleted, protocol.EvWaiting, protocol.EvAttemptFailed, protocol.EvSuspended:
		l.end(ts)
	}
}

// clockRun ends every stretch where the run itself stops.
func (s *State) clockRun(ts int64, typ protocol.EventType, d protocol.Data) {
	switch {
	case afterGap(typ, d): // the time between is not counted
		s.laps(func(l *lap) { l.end(l.Last) })
	case typ == protocol.EvSuspended, typ == protocol.EvCancelled, typ == protocol.EvDone:
		s.laps(func(l *lap) { l.end(ts) })
	}
}

// count counts the time up to an event, if something ran. What a person or another process wrote does not tell that the run
// was driven until then: the next event of what drives it does.
func (s *State) count(ts int64, typ protocol.EventType, d protocol.Data) {
	since := max(0, ts-s.TS)
	switch {
	case !s.Active, afterGap(typ, d):
		s.Uncounted = 0
	case fromOutside[typ]:
		s.Uncounted += since
	default:
		s.Totals.Active += s.Uncounted + since
		s.Uncounted = 0
	}
}

// fromOutside are the events that processes write beside the one that drives the run, if one does.
var fromOutside = map[protocol.EventType]bool{protocol.EvAnswered: true, protocol.EvMessage: true, protocol.EvCompactionAsked: true,
	protocol.EvCancelAsked: true, protocol.EvLimitChanged: true}

// afterGap reports whether the run was not driven before an event.
func afterGap(typ protocol.EventType, d protocol.Data) bool {
	x, suspended := d.(protocol.SuspendedBy)
	return typ == protocol.EvResumed || typ == protocol.EvForked || suspended && x.Code == protocol.RestoredCode
}

// active is for how many µs something ran, until now.
func (s *State) active(now int64) int64 {
	if !s.Active {
		return s.Totals.Active
	}
	return s.Totals.Active + s.Uncounted + max(0, now-s.TS)
}

// laps are those of the live region.
func (s *State) laps(f func(*lap)) {
	for _, a := range s.acts {
		a.laps(f)
	}
}

func (a *act) laps(f func(*lap)) {
	for _, v := range a.visits {
		if v != nil && v.Lap != nil {
			f(v.Lap)
		}
	}
}

func (l *lap) begin(ts int64) {
	if l.Running == 0 {
		l.Since = ts
	}
	l.Running++
}

func (l *lap) finish(ts int64) {
	if l.Running == 0 {
		return
	}
	if l.Running--; l.Running == 0 {
		l.Tools += max(0, ts-l.Since)
	}
}

// release has the stretch go on as if it had not been held.
func (l *lap) release(ts int64) {
	if l.Held == 0 {
		return
	}
	held := max(0, ts-l.Held)
	l.From, l.Held = l.From+held, 0
	if l.Running > 0 {
		l.Since += held
	}
}

func (l *lap) end(ts int64) {
	if l.From == 0 {
		return
	}
	if l.Held != 0 {
		ts, l.Held = l.Held, 0
	}
	if l.Running > 0 {
		l.Running = 1
		l.finish(ts)
	}
	l.Total += max(0, ts-l.From)
	l.From = 0
}

// add counts a lap; what is still open counts up to its newest event.
func (t *Times) add(l *lap) {
	open := *l
	open.end(open.Last)
	tools := min(open.Tools, open.Total)
	t.Tools += tools
	t.TTFE += min(open.TTFE, open.Total-tools)
	t.Total += open.Total
	t.Calls += open.Calls
}

// Times are those of the run so far.
func (s *State) Times() Times {
	sum := s.Timed
	s.laps(sum.add)
	return sum
}
