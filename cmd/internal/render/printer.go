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
		fmt.Fprintf(p.Err, format+"\n", args...)
	}
}

// AsJSON reports whether the answer is for a program.
func (p *Printer) AsJSON() bool { return p.Format == "json" || p.Format == "jsonl" }

// Answer writes one object: indented for json, on one line for jsonl.
func (p *Printer) Answer(v any) error {
	enc := json.NewEncoder(p.Out)
	enc.SetEscapeHTML(false)
	if p.Format == "json" {
		enc.SetIndent("", "  ")
	}
	p.Answered = true
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

// AnswerIndented writes one object indented, for people and programs alike.
func (p *Printer) AnswerIndented(v any) error {
	enc := json.NewEncoder(p.Out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	p.Answered = true
	return enc.Encode(v)
}

// WriteLine writes one object on a line of its own, in a stream.
func WriteLine(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
