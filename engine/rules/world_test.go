package rules_test

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"testing"

	"wf/cas"
	"wf/engine/lang"
	"wf/engine/rules"
	"wf/protocol"
)

// world is a run without a store, a clock or goroutines: its journal and what that names lie in maps.
type world struct {
	t       testing.TB
	s       *rules.State
	opened  map[protocol.Link]*rules.Opened
	records map[protocol.Link]*protocol.StepRecord
	bytes   map[protocol.Link][]byte
	files   map[protocol.Link][]rules.File
	data    []protocol.Data // of the events, by Entry.Data
	journal []protocol.Entry

	// conclude says what a visit concludes, which is what its role sets where it is nil.
	conclude func(protocol.Turn) (data protocol.JSON, status protocol.StepStatus)
	// choose draws one of n things that can happen next: nil is the first. Those that begin come before
	// those that end.
	choose func(n int) int
}

// newWorld is a run of a workflow that has begun.
func newWorld(t testing.TB, yaml string, inputs map[string]any) *world {
	t.Helper()
	p, diags := lang.Load([]byte(yaml), lang.Options{File: "test.yaml"})
	if p == nil {
		t.Fatalf("%v\n%s", diags, yaml)
	}
	return worldOf(t, p, inputs)
}

func worldOf(t testing.TB, p *lang.Program, inputs map[string]any) *world {
	t.Helper()
	w := &world{t: t, opened: map[protocol.Link]*rules.Opened{}, records: map[protocol.Link]*protocol.StepRecord{}, bytes: map[protocol.Link][]byte{}, files: map[protocol.Link][]rules.File{}}
	raw, err := p.Inputs(inputs)
	w.must(err)
	def, err := p.Block()
	w.must(err)
	start := protocol.Start{Kind: protocol.KindStart, V: protocol.RecordVersion, Workflow: def.Link, Inputs: w.keep(raw),
		Format: protocol.Format, Semantics: rules.SemanticsOf(p.Workflow)}
	block, err := cas.Encode(start)
	w.must(err)
	given, err := lang.DecodeObject(raw)
	w.must(err)
	w.opened[block.Link] = &rules.Opened{Start: start, Program: p, Inputs: given, Raw: raw}
	w.s = rules.New(w)
	w.say("", protocol.RunStarted{Start: block.Link})
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) keep(payload []byte) protocol.Link {
	l := w.Name(payload)
	w.bytes[l] = payload
	return l
}

func (w *world) Open(l protocol.Link) (*rules.Opened, error)        { return found(w.opened, l) }
func (w *world) Step(l protocol.Link) (*protocol.StepRecord, error) { return found(w.records, l) }
func (w *world) Payload(l protocol.Link) ([]byte, error)            { return found(w.bytes, l) }
func (w *world) Files(root protocol.Link, most int) ([]rules.File, int, error) {
	files, err := found(w.files, root)
	return files[:min(most, len(files))], len(files), err
}
func (w *world) Name(payload []byte) protocol.Link { return cas.Raw(payload).Link }
func (w *world) Data(e protocol.Event) (protocol.Data, error) {
	i, err := strconv.Atoi(string(e.Data))
	if err != nil {
		return nil, err
	}
	return w.data[i], nil
}

func found[T any](in map[protocol.Link]T, l protocol.Link) (T, error) {
	x, ok := in[l]
	if !ok {
		return x, fmt.Errorf("%s: %w", l, protocol.ErrNotFound)
	}
	return x, nil
}

// say adds an event to the journal, 1 ms after the one before.
func (w *world) say(step string, d protocol.Data) {
	w.t.Helper()
	w.sayAt(w.s.TS+1000, step, d)
}

func (w *world) sayAt(ts int64, step string, d protocol.Data) {
	w.t.Helper()
	e := protocol.Entry{Event: protocol.Event{Seq: w.s.Seq + 1, TS: ts, Type: d.EventType(), Data: []byte(strconv.Itoa(len(w.data)))}}
	if step != "" {
		e.Step = &step
	}
	w.data, w.journal = append(w.data, d), append(w.journal, e)
	w.must(w.s.Apply(step, e.Seq, e.TS, e.Type, d))
}

// play performs visits until nothing can move, and says how the run ends.
func (w *world) play() *rules.Verdict {
	w.t.Helper()
	for {
		p, err := w.s.Next()
		w.must(err)
		if p.End != nil {
			if w.closes(p.End) {
				continue
			}
			w.end(p.End)
			return p.End
		}
		if w.s.Totals.Steps >= w.s.Limits.Steps {
			p.Start = nil
		}
		n := len(p.Start) + len(p.Again) + len(p.Running)
		if n == 0 {
			return &rules.Verdict{Status: protocol.Suspended, Reason: protocol.ByLimit}
		}
		i := 0
		if w.choose != nil {
			i = w.choose(n)
		}
		switch {
		case i < len(p.Start):
			w.begin(p.Start[i])
		case i < len(p.Start)+len(p.Again):
			v, err := w.s.Visit(p.Again[i-len(p.Start)].Step.String())
			w.must(err)
			w.say(v.Step.String(), v.Begun)
		default:
			w.perform(p.Running[i-len(p.Start)-len(p.Again)].String())
		}
	}
}

// closes has a run with always roles close, once.
func (w *world) closes(v *rules.Verdict) bool {
	w.t.Helper()
	ends := v.Status == protocol.Done || v.Status == protocol.Failed
	if w.s.Closing != nil || !ends || len(w.s.Program().Workflow.Always) == 0 {
		return false
	}
	closing, err := w.s.Closed(v)
	w.must(err)
	w.say("", closing)
	return true
}

func (w *world) end(v *rules.Verdict) {
	w.t.Helper()
	switch v.Status {
	case protocol.Suspended:
		w.say("", protocol.SuspendedBy{Reason: v.Reason, Detail: protocol.NewText(v.Detail), Code: v.Code})
	case protocol.Done, protocol.Failed:
		w.say("", protocol.Finished{Status: v.Status})
	}
}

func (w *world) begin(d rules.Decision) {
	w.t.Helper()
	if d.Item != nil {
		w.keep(d.ItemValue)
	}
	w.say(d.Step.String(), protocol.StepStarted{Start: w.s.Start, Parents: d.Parents, Role: d.Role, Visit: d.Visit, Item: d.Item,
		Edge: d.Edge, Via: d.Via, EdgePrompt: protocol.NewText(d.EdgePrompt), Resumes: d.Resumes, Attempt: 1, Of: max(0, d.Of)})
	if d.Empty {
		w.completed(d.Step.String(), nil, protocol.StepSkipped)
	}
}

func (w *world) perform(step string) {
	w.t.Helper()
	turn, err := w.s.Turn("R", step)
	w.must(err)
	data, status := turn.Values, protocol.StepOK
	if w.conclude != nil {
		data, status = w.conclude(turn)
	}
	w.completed(step, data, status)
}

func (w *world) completed(step string, data protocol.JSON, status protocol.StepStatus) {
	w.t.Helper()
	rec, err := w.s.Record(step, status)
	w.must(err)
	if data != nil {
		rec.Data = w.keep(data)
	}
	block, err := cas.Encode(&rec)
	w.must(err)
	w.records[block.Link] = &rec
	w.say(step, protocol.StepCompleted{Record: block.Link, Status: status})
}

// steps are the steps in the order of their beginnings, each with how it ended.
func (w *world) steps() []string {
	var order []string
	ends := map[string]string{}
	for _, e := range w.journal {
		switch d := w.data[index(e)].(type) {
		case protocol.StepStarted:
			if !slices.Contains(order, e.StepName()) {
				order = append(order, e.StepName())
			}
		case protocol.StepCompleted:
			ends[e.StepName()] = string(d.Status)
		}
	}
	for i, step := range order {
		order[i] = step + " " + ends[step]
	}
	return order
}

// recordOf is the StepRecord of a step that has ended.
func (w *world) recordOf(step string) (link protocol.Link, rec *protocol.StepRecord) {
	w.t.Helper()
	for _, e := range w.journal {
		if d, ok := w.data[index(e)].(protocol.StepCompleted); ok && e.StepName() == step {
			link, rec = d.Record, w.records[d.Record]
		}
	}
	if rec == nil {
		w.t.Fatalf("no record of %s in %v", step, w.steps())
	}
	return link, rec
}

// conclusions are the names of all records, sorted.
func (w *world) conclusions() string {
	var out []string
	for l, r := range w.records {
		out = append(out, r.Role+" "+l.String())
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

func index(e protocol.Entry) int {
	i, err := strconv.Atoi(string(e.Data))
	if err != nil {
		panic(err)
	}
	return i
}

func each(entries []protocol.Entry) iter.Seq2[protocol.Entry, error] {
	return func(yield func(protocol.Entry, error) bool) {
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}
