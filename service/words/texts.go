package words

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"wf/cas"
	"wf/protocol"
)

// A piece is a text of an event.
type piece struct {
	seq  protocol.Seq
	kind kind
	step string
	text string
}

// A reading goes through the events of a run, for what is said in them.
type reading struct {
	read   func(protocol.Link) ([]byte, error)
	pieces []piece
	defs   []protocol.Link // the definitions that were pinned
	said   map[string]string
}

// event reads an event. An error is that of read, or says that what is stored is damaged.
func (r *reading) event(x *protocol.Entry) error {
	if !speaks[x.Type] {
		return nil
	}
	data, err := x.AnyData()
	if err != nil {
		return err
	}
	step := x.StepName()
	add := func(k kind, texts ...string) {
		for _, t := range texts {
			if t != "" {
				r.pieces = append(r.pieces, piece{x.Seq, k, step, t})
			}
		}
	}
	var errs error
	text := func(t protocol.Text) string {
		if t.S != "" || !t.Link.Defined() {
			return t.S
		}
		s, err := r.payload(t.Link)
		errs = errors.Join(errs, err)
		return s
	}
	switch d := data.(type) {
	case protocol.RunStarted:
		add(ofTitle, d.Title, text(d.Description))
		add(ofPerson, d.CreatedBy, d.TargetUser)
		inputs, err := r.start(d.Start)
		errs = errors.Join(errs, err)
		add(ofInput, inputs)
	case protocol.Forked:
		add(ofTitle, d.Note)
		add(ofPerson, d.By)
		if d.Start.Defined() {
			_, err := r.start(d.Start) // the inputs are those of the run that it was forked from
			errs = errors.Join(errs, err)
		}
	case protocol.StepStarted:
		add(ofPrompt, text(d.EdgePrompt))
	case protocol.TextSaid:
		s := text(d.Content)
		add(ofAnswer, s)
		r.heard(step, s)
	case protocol.StepCompleted:
		errs = errors.Join(errs, r.record(d.Record, step, add))
	case protocol.AttemptFailed:
		add(ofError, d.Error.Message)
	case protocol.SuspendedBy:
		if d.Reason == protocol.ByError {
			add(ofError, text(d.Detail))
		}
	case protocol.CancelledBy:
		add(ofError, d.Reason)
	case protocol.Closing:
		add(ofError, text(d.Message))
	case protocol.Correction:
		add(ofError, text(d.Reasons))
	case protocol.WaitingFor:
		add(ofQuestion, text(d.Question))
		for _, c := range d.Choices {
			add(ofQuestion, c.Label)
		}
	case protocol.Answered:
		add(ofAnswer, text(d.Text), d.Choice, values([]byte(text(d.Fields))))
		add(ofPerson, d.By)
	case protocol.MessageIn:
		add(ofInput, text(d.Text))
	}
	return errs
}

// speaks are the events that event reads.
var speaks = map[protocol.EventType]bool{
	protocol.EvRunStarted: true, protocol.EvForked: true, protocol.EvStepStarted: true, protocol.EvText: true, protocol.EvStepCompleted: true,
	protocol.EvAttemptFailed: true, protocol.EvSuspended: true, protocol.EvCancelled: true, protocol.EvClosing: true, protocol.EvCorrection: true,
	protocol.EvWaiting: true, protocol.EvAnswered: true, protocol.EvMessage: true,
}

// heard keeps what a step said last: its record says it again.
func (r *reading) heard(step, text string) {
	if r.said == nil {
		r.said = map[string]string{}
	}
	r.said[step] = text
}

// start reads a Start: the definition that it pins, and the values of its inputs.
func (r *reading) start(l protocol.Link) (inputs string, err error) {
	var st protocol.Start
	if err := decode(r.read, l, &st); err != nil {
		return "", err
	}
	r.defs = append(r.defs, st.Workflow)
	if !st.Inputs.Defined() {
		return "", nil
	}
	inputs, err = r.payload(st.Inputs)
	return values([]byte(inputs)), err
}

// record reads what a visit concluded.
func (r *reading) record(l protocol.Link, step string, add func(kind, ...string)) error {
	if !l.Defined() {
		return nil
	}
	var rec protocol.StepRecord
	if err := decode(r.read, l, &rec); err != nil {
		return err
	}
	var errs error
	payload := func(l protocol.Link) (s string) {
		if l.Defined() {
			var err error
			s, err = r.payload(l)
			errs = errors.Join(errs, err)
		}
		return s
	}
	if out := payload(rec.Output); out != r.said[step] {
		add(ofAnswer, out)
	}
	add(ofAnswer, values([]byte(payload(rec.Data))))
	add(ofError, values([]byte(payload(rec.Error))))
	delete(r.said, step)
	return errs
}

// payload reads as much of a payload as is indexed.
func (r *reading) payload(l protocol.Link) (string, error) {
	p, err := protocol.OpenPayload(r.read, l)
	if err != nil {
		return "", err
	}
	b, err := p.Begin(r.read, textMax)
	return cut(string(b), textMax), err
}

// values are the texts and numbers in a JSON value, a line each; what is no JSON is taken as it is.
func values(data []byte) string {
	var b strings.Builder
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			b.WriteString(v)
			b.WriteByte('\n')
		case json.Number:
			b.WriteString(v.String())
			b.WriteByte('\n')
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				walk(v[key])
			}
		}
	}
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return string(data)
	}
	walk(v)
	return strings.TrimSuffix(b.String(), "\n")
}

// prompts are the system prompts of a definition; the step of each is the name of its role.
func prompts(read func(protocol.Link) ([]byte, error), definition protocol.Link) ([]piece, error) {
	var w protocol.Workflow
	if err := decode(read, definition, &w); err != nil {
		return nil, err
	}
	var out []piece
	for i, r := range w.Roles {
		if r.Prompt != "" {
			out = append(out, piece{protocol.Seq(i + 1), ofPrompt, r.Name, r.Prompt})
		}
	}
	return out, nil
}

func decode(read func(protocol.Link) ([]byte, error), l protocol.Link, into any) error {
	b, err := read(l)
	if err != nil {
		return err
	}
	return cas.Decode(b, into)
}
