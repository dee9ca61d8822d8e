package trace

import (
	"maps"
	"slices"
	"strings"

	"wf/protocol"
)

// A fold makes the spans of one run of its events, in their order. Its fields are set before the first.
type fold struct {
	trace  protocol.TraceID
	run    protocol.RunID
	parent protocol.SpanID // of the visit that a sub-workflow belongs to; zero for none
	flow   *protocol.Workflow
	about  []attribute // of the run, for its first stretch
	links  []link
	text   func(protocol.Text) (string, error) // what was said; nil where that stays out
	prompt func(step string) ([]attribute, error)
	offers func(protocol.Link) (names []string, err error) // of tools, to a visit
	to     func(span) error

	first  *stretch // of the run
	now    *stretch // of the run; nil while it waits or is stopped
	idle   int64    // when the last visit came to rest, 0 while one is at work
	woken  protocol.Seq
	wokeAt int64
	last   int64                 // time of the event before
	visits map[string]*stretch   // at work, by step
	calls  map[string]*call      // of tools, without a result yet, by step and call
	began  map[string][]*stretch // of visits with a sub-workflow, by step
	failed *status
}

// A stretch is a time in which the run or a visit is at work.
type stretch struct {
	span
	id      protocol.SpanID
	step    string // "" for the run
	attempt int
	tools   []string // that it may call
	asked   []*call  // by the model, since its last call ended
	said    []part   // by it, likewise
	replied bool     // it said anything
}

// A call of a tool.
type call struct {
	name, call string // name is unoffered of a tool that the visit has none of: what a model calls so are its own words
	parent     protocol.SpanID
	seq        protocol.Seq
	from       int64 // 0 while it is not performed: the run waits for leave, or was stopped
	again      bool  // it was broken off, and has a span of that
	args       string
}

// part is one of a message: https://opentelemetry.io/docs/specs/semconv/gen-ai/, gen_ai.output.messages.
type part struct {
	Type    string `json:"type"`
	Content string `json:"content,omitempty"`
	ID      string `json:"id,omitempty"`
	Name    string `json:"name,omitempty"`
	Args    any    `json:"arguments,omitempty"`
}

// message is one of gen_ai.input.messages and gen_ai.output.messages.
type message struct {
	Role   string `json:"role"`
	Parts  []part `json:"parts"`
	Finish string `json:"finish_reason,omitempty"`
}

// add takes the next event.
func (f *fold) add(e *protocol.Entry) error {
	d, err := e.AnyData()
	if err != nil {
		return err
	}
	step, at := e.StepName(), max(e.TS, f.last)
	if f.first == nil { // the first event of the run's own
		f.first = f.enter(nil, e.Seq, at)
		f.now = f.first
	}
	v := f.visits[step]
	switch d := d.(type) {
	case protocol.StepStarted:
		err = f.begin(step, e.Seq, at, d)
	case protocol.StepCompleted:
		if v != nil {
			v.Attributes = append(v.Attributes, text("wf.record", d.Record.String()), text("wf.status", string(d.Status)))
			if d.Status == protocol.StepFailed {
				v.Status.Code = statusError
			}
		}
		err = f.rest(step, at)
	case protocol.AttemptFailed:
		if v != nil {
			f.fail(v, d.Error.Code, protocol.NewText(d.Error.Message))
		}
		err = f.rest(step, at)
	case protocol.WaitingFor:
		if c := f.calls[step+"\x00"+d.Call]; c != nil && d.Call != "" {
			c.from = 0
		}
		err = f.rest(step, at)
	case protocol.Answered, protocol.TimerFired, protocol.ResumedBy:
		if _, resumed := d.(protocol.ResumedBy); resumed && len(f.visits) > 0 { // the process before this one died
			if err := f.restAll(f.last); err != nil {
				return err
			}
		}
		if f.idle > 0 && f.woken == 0 {
			f.woken, f.wokeAt = e.Seq, at
		}
	case protocol.SuspendedBy:
		if step != "" && v != nil {
			f.fail(v, d.Code, d.Detail)
			err = f.rest(step, at)
		} else if step == "" {
			err = f.restAll(at)
		}
	case protocol.CancelledBy, protocol.Closing, protocol.ClosingSkipped:
		err = f.restAll(at)
	case protocol.Finished:
		if err = f.restAll(at); err == nil && f.now != nil {
			f.idle = at
		}
	case protocol.Thinking, protocol.TextSaid, protocol.ToolCall, protocol.Usage, protocol.ToolResult, protocol.Approval:
		if v != nil {
			err = f.work(v, step, e.Seq, at, d)
		}
	}
	f.last = at
	return err
}

// enter begins a stretch of the run.
func (f *fold) enter(below *stretch, seq protocol.Seq, at int64) *stretch {
	s := &stretch{id: f.trace.Span(f.run, "", 0, seq)}
	s.span = f.span(s.id, f.parent, "invoke_workflow "+f.flow.Name, at, text("gen_ai.operation.name", "invoke_workflow"),
		text("gen_ai.workflow.name", f.flow.Name), text("gen_ai.conversation.id", string(f.run)), text("wf.run", string(f.run)))
	if below != nil {
		s.ParentSpanID = below.SpanID
		return s
	}
	s.Attributes, s.Links = append(s.Attributes, f.about...), f.links
	return s
}

func (f *fold) span(id, parent protocol.SpanID, name string, from int64, with ...attribute) span {
	s := span{TraceID: f.trace.String(), SpanID: id.String(), Name: name, Kind: internal, Start: nanos(from), Attributes: with}
	if parent != (protocol.SpanID{}) {
		s.ParentSpanID = parent.String()
	}
	return s
}

// begin begins a stretch of a visit, and one of the run where that was woken.
func (f *fold) begin(step string, seq protocol.Seq, at int64, d protocol.StepStarted) error {
	if f.visits[step] != nil { // its process died, and no word of that was written
		if err := f.rest(step, f.last); err != nil {
			return err
		}
	}
	if f.woken > 0 || f.now == nil {
		if err := f.leave(f.idle); err != nil {
			return err
		}
		if f.woken == 0 {
			f.woken, f.wokeAt = seq, at
		}
		f.now = f.enter(f.first, f.woken, f.wokeAt)
	}
	f.idle, f.woken = 0, 0
	role, _ := f.flow.RoleNamed(d.Role)
	s := &stretch{id: f.trace.Span(f.run, step, d.Attempt, seq), step: step, attempt: d.Attempt}
	with := []attribute{text("wf.run", string(f.run)), text("wf.step", step), text("wf.role", d.Role), number("wf.visit", int64(d.Visit)), number("wf.attempt", int64(d.Attempt))}
	name := d.Role
	if role != nil {
		name = string(role.Action) + " " + d.Role
		with = append(with, text("wf.action", string(role.Action)))
		if role.Action == protocol.ActPrompt {
			name = "invoke_agent " + d.Role
			with = append(with, text("gen_ai.operation.name", "invoke_agent"), text("gen_ai.agent.name", d.Role), text("gen_ai.conversation.id", string(f.run)))
		}
	}
	s.span = f.span(s.id, f.now.id, name, at, with...)
	if d.Tools.Defined() && f.text == nil {
		var err error
		if s.tools, err = f.offers(d.Tools); err != nil {
			return err
		}
	}
	if role != nil && role.Action == protocol.ActPrompt && f.prompt != nil {
		said, err := f.prompt(step)
		if err != nil {
			return err
		}
		s.Attributes = append(s.Attributes, said...)
	}
	f.visits[step] = s
	if role != nil && role.Action == protocol.ActWorkflow {
		f.began[step] = append(f.began[step], s)
	}
	return nil
}

// rest ends the stretch of a visit.
func (f *fold) rest(step string, at int64) error {
	v := f.visits[step]
	if v == nil {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(f.calls)) {
		c := f.calls[key]
		if of, _, _ := strings.Cut(key, "\x00"); of != step || c.from == 0 {
			continue
		}
		if err := f.to(f.tool(v, c, c.seq, at, true)); err != nil {
			return err
		}
		c.from, c.again = 0, true
	}
	v.End = nanos(at)
	delete(f.visits, step)
	if len(f.visits) == 0 {
		f.idle = at
	}
	return f.to(v.span)
}

// restAll ends the stretches of all visits, and of the run.
func (f *fold) restAll(at int64) error {
	for _, step := range slices.Sorted(maps.Keys(f.visits)) {
		if err := f.rest(step, at); err != nil {
			return err
		}
	}
	if f.idle == 0 {
		f.idle = at
	}
	return nil
}

// leave ends the stretch of the run. The first is held back: the status of the run is its own.
func (f *fold) leave(at int64) error {
	s := f.now
	f.now = nil
	if s == nil {
		return nil
	}
	s.End = max(nanos(at), s.Start)
	if s == f.first {
		return nil
	}
	return f.to(s.span)
}

// end ends what is open at the last event of a journal, and hands the first stretch of the run on.
func (f *fold) end() error {
	if f.first == nil {
		return nil
	}
	if err := f.restAll(f.last); err != nil {
		return err
	}
	if err := f.leave(f.idle); err != nil {
		return err
	}
	if f.failed != nil {
		f.first.Status = *f.failed
	}
	return f.to(f.first.span)
}

// fail marks a stretch as failed: with what code, and, where texts are wanted, in what words.
func (f *fold) fail(v *stretch, code string, words protocol.Text) {
	v.Status.Code = statusError
	if code != "" {
		v.Attributes = append(v.Attributes, text("error.type", code))
	}
	if f.text != nil {
		v.Status.Message, _ = f.text(words)
	}
}

// stretchAt is the stretch of a visit in which its sub-workflow began, at a time; zero for none.
func (f *fold) stretchAt(step string, at int64) (id protocol.SpanID) {
	for i, s := range f.began[step] {
		if i == 0 || int64(s.Start) <= at {
			id = s.id
		}
	}
	return id
}
