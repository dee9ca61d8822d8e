package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"wf/api"
	"wf/protocol"
)

// A FanOut is a fan-out of a run that is folded, with what its steps do not say.
type FanOut struct {
	Items []*api.Step   // in the order in which they began
	Of    int           // how many it has in all; 0 is as many as Items
	Span  time.Duration // from the beginning of the first to the end of the last; 0 is unknown
	Cost  string        // of its model calls, "" without any
	Tally *api.FanTally // where Items are not all of them
	Idle  api.Idle      // of the run then
	Whole bool          // each of the items that want to be looked at has a line
}

// Folds reports whether a fan-out has too many items to show them one by one.
func Folds(t *api.FanTally) bool {
	begun := 0
	for _, n := range t.States {
		begun += n
	}
	return begun > FoldFrom
}

// Open reports whether an item has not ended.
func (f *FanOut) Open() bool {
	ended := 0
	for _, state := range []string{string(protocol.StepOK), api.StepNonzero, api.StepCutOff, string(protocol.StepFailed), string(protocol.StepSkipped)} {
		ended += f.Tally.States[state]
	}
	return ended < f.Tally.Items
}

// tally are the states of all items, and how many of them want to be looked at.
func (f *FanOut) tally() (all Tally, odd int) {
	all = NewTally(f.Tally.Items)
	for state, n := range f.Tally.States {
		if api.StepOdd(state) {
			odd += n
		}
		all.counts[toCome] -= n
		switch {
		case state == api.StepCutOff:
			all.counts[cutShort] += n
		case state == api.StepRunning && f.Idle != "":
			all.counts[string(api.Interrupted)] += n // as AtRest has it
		case state != api.StepNonzero:
			all.counts[state] += n
		}
	}
	for code, n := range f.Tally.Exits {
		all.counts["exit "+code] += n
	}
	if all.counts[toCome] <= 0 {
		delete(all.counts, toCome)
	}
	return all, odd
}

// FanOf is the name that the items of a fan-out share, "" for a step that is none.
func FanOf(s *api.Step) string { return fanName(s.ID) }

func fanName(step string) string {
	name, _, item := strings.Cut(step, "[")
	if !item {
		return ""
	}
	return name
}

// Fans are the fan-outs among the steps that have too many items to show them one by one, by name.
func (p *Printer) Fans(steps []*api.Step) map[string]*FanOut {
	fans := map[string]*FanOut{}
	if p.All {
		return fans
	}
	for _, s := range steps {
		if name := FanOf(s); name != "" {
			if fans[name] == nil {
				fans[name] = &FanOut{}
			}
			fans[name].Items = append(fans[name].Items, s)
		}
	}
	maps.DeleteFunc(fans, func(_ string, x *FanOut) bool { return len(x.Items) <= FoldFrom })
	return fans
}

// stepTable writes the steps of a run, a line each; those of long fan-outs are folded.
func (p *Printer) stepTable(run protocol.RunID, steps []*api.Step, fans map[string]*FanOut) error {
	var rows [][]string
	for _, s := range steps {
		switch fan := fans[FanOf(s)]; {
		case fan == nil:
			rows = append(rows, p.stepRow(s))
		case fan.Items[0] == s:
			rows = append(rows, p.foldedRows(run, fan)...)
		}
	}
	return notes(p.Out, rows)
}

// ShowFan writes the items of a fan-out: those that want to be looked at, below a line for all of them.
func (p *Printer) ShowFan(run protocol.RunID, items []*api.Step, fans map[string]*FanOut) error {
	for _, fan := range fans {
		fan.Whole = true
	}
	return p.stepTable(run, items, fans)
}

// Note is what a step concluded, or why it failed or waits, on one line.
func Note(s *api.Step) string {
	note := OneLine(said(s), 60)
	if n := failures(s); n > 0 && s.Status != string(protocol.StepFailed) {
		note = fmt.Sprintf("(after %s) %s", protocol.Plural(n, "failed attempt"), note)
	}
	switch {
	case s.Queue != nil:
		note = Queued(s.Queue)
	case s.Held != "":
		note = "held: " + s.Held
	}
	if s.CutOff {
		note = "(cut off) " + note
	}
	if s.Reuse != nil && s.Reuse.From != "" {
		note = fmt.Sprintf("(reused from %s) %s", s.Reuse.From, note)
	}
	if len(s.Compactions) > 0 {
		note = "(compacted) " + note
	}
	return note
}

func (p *Printer) stepRow(s *api.Step) []string {
	note := Note(s)
	sign := s.Status
	if s.Item != nil && isRed(StepState(s)) {
		sign = redItem
	}
	if s.Child != "" && s.Item != nil && s.Status == string(protocol.StepFailed) {
		note += "  " + p.Commands(wf("show", string(s.Child)))
	}
	return []string{"  " + p.Out.sign(sign), s.ID, Span(time.Duration(s.MS) * time.Millisecond), result(s), p.Out.Dim(ShortOf(s.CID)), note}
}

// foldedRows are a line for a fan-out, and those of its items that want to be looked at.
func (p *Printer) foldedRows(run protocol.RunID, fan *FanOut) [][]string {
	var rows [][]string
	odd, all := 0, NewTally(0)
	for _, s := range fan.Items {
		if all.Take(s); !all.Odd(s.ID) {
			continue
		}
		if odd++; odd <= oddMax || fan.Whole {
			rows = append(rows, p.stepRow(s))
		}
	}
	name := FanOf(fan.Items[0])
	if all.Of(fan.Of); fan.Tally != nil {
		all, odd = fan.tally()
	}
	if odd > oddMax && !fan.Whole {
		rows = append(rows, []string{"", fmt.Sprintf("… %s more of %s: %s shows them", grouped(odd-oddMax), name, p.Commands(wf("show", string(run)+":"+name)))})
	}
	span := ""
	if fan.Span > 0 {
		span = Span(fan.Span)
	}
	text := strings.TrimSpace(all.String() + "  " + fan.Cost)
	return slices.Concat([][]string{{"  " + p.Out.sign(all.Worst()), name, span, text}}, rows)
}

// StepState is the state of a step in a word: its status, held, or what is to be looked at of one that ended ok: the
// code of a command other than 0, or that its answer was cut off.
func StepState(s *api.Step) string {
	if s.Held != "" && s.Status == "running" {
		return "held"
	}
	return howEnded(s.Status, result(s), s.CutOff)
}

// result is how a step ended, in a word or two.
func result(s *api.Step) string {
	var d struct {
		ExitCode *int `json:"exit_code"`
	}
	switch {
	case s.CID == nil: // it has not ended
		return s.Status
	case s.Action == protocol.ActRun && json.Unmarshal(s.Output, &d) == nil && d.ExitCode != nil:
		return fmt.Sprintf("exit %d", *d.ExitCode)
	case s.Usage.Calls > 0:
		return used(s.Usage)
	}
	return s.Status
}

// said is the most telling text of a step: why it failed, or what it concluded.
func said(s *api.Step) string {
	if s.Error != nil && !(isExit(result(s)) && s.Text != "" && strings.HasPrefix(s.Error.Message, "exit status ")) { // which result tells
		return why(s.Error)
	}
	fields, err := fieldsOf(s.Output)
	if err != nil {
		return string(s.Output)
	}
	if s.Action == protocol.ActRun { // result tells of its exit code
		fields = slices.DeleteFunc(fields, func(f field) bool { return f.name == "exit_code" })
	}
	structured, body := answered(s.Text)
	switch {
	case s.Action == protocol.ActAsk && len(fields) > 0:
		return telling(fields, "")
	case s.Text == "", len(structured) > 0 && len(fields) > 0:
		return telling(inOrder(fields, s.Text), body)
	}
	return gist(s.Text)
}

// why says why a step failed; the reason of a parked one holds its phase already.
func why(e *protocol.ErrorInfo) string {
	if e.Phase == "" || strings.HasPrefix(e.Message, e.Phase+": ") {
		return e.Message
	}
	return e.Error()
}

// failures counts the attempts that did not work.
func failures(s *api.Step) int {
	n := 0
	for _, t := range s.Attempts {
		if t.Error != nil {
			n++
		}
	}
	return n
}
