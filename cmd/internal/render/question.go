package render

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"wf/api"
	"wf/protocol"
)

// showQuestions shows what a run waits for; of the items of a long fan-out the first ones.
func (p *Printer) showQuestions(v *api.Run) error {
	asking := map[string]int{}
	for _, w := range v.Waiting {
		asking[fanName(w.Step)]++
	}
	shown := map[string]int{}
	for _, w := range v.Waiting {
		name := fanName(w.Step)
		if shown[name]++; name == "" || p.All || asking[name] <= FoldFrom || shown[name] <= oddMax {
			if err := p.showQuestion(w); err != nil {
				return err
			}
			continue
		}
		if shown[name] == asking[name] {
			fmt.Fprintf(p.Out, "  … %s more of %s wait too: %s\n", grouped(asking[name]-oddMax), name, allCommand("show", v.ID))
		}
	}
	return nil
}

func (p *Printer) showQuestion(w api.Waiting) error {
	switch w.Kind {
	case protocol.WaitTimer:
		due := "its time"
		if w.Due != nil {
			due = *w.Due
		}
		fmt.Fprintf(p.Out, "  %s waits until %s\n", w.Step, due)
	case protocol.WaitSignal:
		fmt.Fprintf(p.Out, "  %s waits for the signal %s\n", w.Step, w.Question)
	default:
		fmt.Fprintf(p.Out, "  %s\n", p.Out.Wrap(w.Step+" asks: "+Visible(w.Question), "    "))
	}
	for _, c := range w.Choices {
		mark := " "
		if c.Primary {
			mark = "*"
		}
		line := p.Out.Bold(OneLine(c.Value, 200))
		if c.Label != c.Value {
			line += "  " + Visible(c.Label)
		}
		fmt.Fprintf(p.Out, "  %s %s\n", mark, p.Out.Wrap(line, "      "))
	}
	if text := Asking(w); text != "" {
		fmt.Fprintf(p.Out, "    %s\n", p.Out.Dim(text))
	}
	return p.showForm(string(w.Form))
}

// Asking says until when a question is to be answered, what happens then, and who is asked; "" where there is
// nothing to say.
func Asking(w api.Waiting) string {
	var parts []string
	if at, err := time.Parse(time.RFC3339, deref(w.Due)); err == nil && w.Kind != protocol.WaitTimer {
		until := "answers until "
		if at.Before(time.Now()) { // no process has driven the run since
			until = "the time to answer was over at "
		}
		parts = append(parts, until+clock(at.UnixMicro()))
		switch w.OnTimeout {
		case "":
		case "fail":
			parts = append(parts, "then it fails")
		case "escalate":
			parts = append(parts, "then it is escalated")
		default:
			parts = append(parts, "then "+Visible(w.OnTimeout))
		}
	}
	if len(w.Assignees) > 0 {
		parts = append(parts, "asked of "+Visible(strings.Join(w.Assignees, ", ")))
	}
	return strings.Join(parts, ", ")
}

func deref(t *api.Time) string {
	if t == nil {
		return ""
	}
	return *t
}

// AboutField is what a field takes, in a few words.
func AboutField(f protocol.FormField) string {
	var parts []string
	switch {
	case len(f.Enum) > 0:
		parts = append(parts, "one of them")
	case f.Type == "boolean":
		parts = append(parts, "yes or no")
	case f.Type == "array" || f.Type == "object":
		parts = append(parts, f.Type+", as JSON")
	default:
		parts = append(parts, cmp.Or(f.Type, "any value"))
	}
	switch {
	case len(f.Default) > 0:
		parts = append(parts, "Enter is "+OneLine(protocol.JSONText(f.Default), 40))
	case f.Required:
		parts = append(parts, "required")
	default:
		parts = append(parts, "may be left empty")
	}
	return strings.Join(parts, ", ")
}

func (p *Printer) showForm(form string) error {
	var rows [][]string
	for _, f := range protocol.FormFields(form) {
		var values []string
		for _, v := range f.Enum {
			values = append(values, protocol.JSONText(v))
		}
		about := OneLine(strings.Join(values, "|"), 60)
		if about == "" {
			about = cmp.Or(f.Type, "any")
		}
		switch {
		case len(f.Default) > 0:
			about += ", default " + OneLine(protocol.JSONText(f.Default), 40)
		case f.Required:
			about += ", required"
		}
		rows = append(rows, []string{"    " + p.Out.Bold(Visible(f.Name)), about, OneLine(f.Description, 100)})
	}
	return Table(p.Out, rows)
}
