package render

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// A Printer is what wf prints with: the answer on one stream, progress on the other, in the form
// that the flags ask for. New makes one.
type Printer struct {
	Out *Screen // the answer
	Err *Screen // progress, questions and errors

	Format  string // of -o: human, json, jsonl and what a command adds
	Color   string // of --color: auto, always or never; UseColors applies it
	Quiet   bool   // no progress
	Verbose bool   // more detail
	All     bool   // items of long fan-outs too

	// Through gives the name of the command that words begin with, and the flags that it takes to work where this one does; ""
	// where it wants none. It is nil where no command does.
	Through func(words []string) (name, flags string)

	// Answered says that the answer is complete: an error in JSON would be a second one.
	Answered bool
}

// New is a printer for people, with colours where a stream is a terminal.
func New(out, err *Screen) *Printer {
	p := &Printer{Out: out, Err: err, Format: "human", Color: "auto"}
	p.UseColors()
	return p
}

// UseColors decides for each stream whether it has colours.
func (p *Printer) UseColors() { p.Out.Color, p.Err.Color = p.colored(p.Out), p.colored(p.Err) }

// colored decides for one stream (https://no-color.org, https://bixense.com/clicolors).
func (p *Printer) colored(s *Screen) bool {
	force := os.Getenv("CLICOLOR_FORCE")
	switch {
	case p.Color != "auto":
		return p.Color == "always"
	case os.Getenv("NO_COLOR") != "":
		return false
	case force != "" && force != "0":
		return true
	}
	return s.TTY
}

// Progress writes a line to stderr, unless -q.
func (p *Printer) Progress(format string, args ...any) {
	if !p.Quiet {
		fmt.Fprintln(p.Err, p.Commands(fmt.Sprintf(format, args...)))
	}
}

// AsJSON reports whether the answer is for a program.
func (p *Printer) AsJSON() bool { return p.Format == "json" || p.Format == "jsonl" }

// Answer writes one object: on one line for jsonl, else indented.
func (p *Printer) Answer(v any) error {
	p.Answered = true
	if p.Format == "jsonl" {
		return WriteLine(p.Out, v)
	}
	enc := json.NewEncoder(p.Out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// Say answers with an object for programs, with a text for people.
func (p *Printer) Say(v any, format string, args ...any) error {
	if p.AsJSON() {
		return p.Answer(v)
	}
	_, err := fmt.Fprintf(p.Out, format, args...)
	return err
}

// answerLine answers with one object on a line of its own, whatever the form.
func (p *Printer) answerLine(v any) error {
	p.Answered = true
	return WriteLine(p.Out, v)
}

// AnswerAll answers with an object for json, and with its items, a line each, for jsonl.
func AnswerAll[T any](p *Printer, v any, items []T) error {
	if p.Format == "json" {
		return p.Answer(v)
	}
	for _, x := range items {
		if err := WriteLine(p.Out, x); err != nil {
			return err
		}
	}
	return nil
}

// WriteLine writes one object on a line of its own, in a stream.
func WriteLine(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
