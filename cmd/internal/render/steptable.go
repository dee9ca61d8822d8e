package render

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"wf/api"
	"wf/protocol"
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
	if s.CutOff {
		note = "(cut off) " + note
	}
	if len(s.Compactions) > 0 {
		note = "(compacted) " + note
	}
	return []string{"  " + p.Out.step(s.Status), s.ID, Span(time.Duration(s.MS) * time.Millisecond), result(s), p.Out.Dim(ShortOf(s.CID)), note}
}

// foldedRows are a line for a fan-out, and those of its items that want to be looked at.
func (p *Printer) foldedRows(fan []*api.Step) [][]string {
	counts, ms, worst := map[string]int{}, int64(0), string(protocol.StepOK)
	var rows [][]string
	odd := 0
	for _, s := range fan {
		how := s.Status
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
		if s.Status == "running" {
			continue
		}
		if odd++; odd <= oddMax {
			rows = append(rows, p.stepRow(s))
		}
	}
	if odd > oddMax {
		rows = append(rows, []string{"", fmt.Sprintf("… %d more of %s: --all shows them", odd-oddMax, fanOf(fan[0]))})
	}
	first := []string{"  " + p.Out.step(worst), fmt.Sprintf("%s[%d items]", fanOf(fan[0]), len(fan)), Span(time.Duration(ms) * time.Millisecond), tally(counts)}
	return slices.Concat([][]string{first}, rows)
}
