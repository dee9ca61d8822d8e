package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"wf/api"
	"wf/protocol"
	"wf/roles/frontmatter"
)

// A fan-out of more than foldFrom items is one line of a table of steps, with how many ended in
// which way; of its items only those that did not end well have lines, listed of them at most.
const (
	foldFrom = 10
	oddMax   = 10
)

// stepTable writes the steps of a run, a line each; those of long fan-outs are folded.
func (p *Printer) stepTable(steps []*api.Step) error {
	fans := map[string][]*api.Step{}
	for _, s := range steps {
		if s.Item != nil && !p.All {
			fans[fanOf(s)] = append(fans[fanOf(s)], s)
		}
	}
	var rows [][]string
	for _, s := range steps {
		fan := fans[fanOf(s)]
		switch {
		case s.Item == nil || len(fan) <= foldFrom:
			rows = append(rows, p.stepRow(s))
		case fan[0] == s:
			rows = append(rows, p.foldedRows(fan)...)
		}
	}
	return Table(p.Out, rows)
}

// fanOf is the name that the items of a fan-out share.
func fanOf(s *api.Step) string {
	name, _, _ := strings.Cut(s.ID, "[")
	return name
}

func (p *Printer) stepRow(s *api.Step) []string {
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
	return []string{"  " + p.Out.sign(s.Status), s.ID, Span(time.Duration(s.MS) * time.Millisecond), result(s), p.Out.Dim(ShortOf(s.CID)), note}
}

// foldedRows are a line for a fan-out, and those of its items that want to be looked at.
func (p *Printer) foldedRows(fan []*api.Step) [][]string {
	counts, ms, worst := map[string]int{}, int64(0), string(protocol.StepOK)
	var rows [][]string
	odd := 0
	for _, s := range fan {
		how := s.Status
		if s.Held != "" {
			how = "held"
		}
		if r := result(s); strings.HasPrefix(r, "exit ") && r != "exit 0" {
			how = r
		}
		counts[how]++
		ms += s.MS
		if how == string(protocol.StepOK) || how == string(protocol.StepSkipped) {
			continue
		}
		if worst == string(protocol.StepOK) || s.Status == string(protocol.StepFailed) {
			worst = s.Status
		}
		if s.Status == "running" { // held or not
			continue
		}
		if odd++; odd <= oddMax {
			rows = append(rows, p.stepRow(s))
		}
	}
	if odd > oddMax {
		rows = append(rows, []string{"", fmt.Sprintf("… %d more of %s: --all shows them", odd-oddMax, fanOf(fan[0]))})
	}
	first := []string{"  " + p.Out.sign(worst), fmt.Sprintf("%s[%d items]", fanOf(fan[0]), len(fan)), Span(time.Duration(ms) * time.Millisecond), tally(counts)}
	return slices.Concat([][]string{first}, rows)
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
	switch {
	case s.Error != nil:
		return why(s.Error)
	case s.Text != "":
		return gist(s.Text)
	}
	fields, err := fieldsOf(s.Output)
	if err != nil {
		return string(s.Output)
	}
	var parts []string
	for _, f := range fields {
		if text := f.text(); text != "" && (f.name != "exit_code" || s.Action != protocol.ActRun) { // which result tells
			parts = append(parts, f.name+": "+text)
		}
	}
	return strings.Join(parts, ", ")
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

// withoutFences is an answer with the fields in front of it on one line, without their fences.
func withoutFences(text string) string {
	fields, body := fieldsAndBody(text)
	return strings.TrimLeft(fields+"\n"+body, "\n")
}

// gist is the most telling line of an answer: the last one, or the fields where they are all.
func gist(text string) string {
	fields, body := fieldsAndBody(text)
	return cmp.Or(lastLine(body), fields)
}

func fieldsAndBody(text string) (fields, body string) {
	fields, body, err := frontmatter.Split(text)
	if err != nil {
		return "", text
	}
	return strings.Join(strings.FieldsFunc(fields, func(r rune) bool { return r == '\n' }), ", "), body
}
