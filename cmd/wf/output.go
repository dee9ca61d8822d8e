package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"wf/cmd/internal/plain"
	"wf/hub/reply"
	"wf/protocol"
)

// asJSON reports whether the answer is for a program.
func (a *app) asJSON() bool { return a.format == "json" || a.format == "jsonl" }

// answer writes one object: indented for json, on one line for jsonl.
func (a *app) answer(v any) error {
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	if a.format == "json" {
		enc.SetIndent("", "  ")
	}
	a.reported = true
	return enc.Encode(v)
}

// line writes one object on a line of its own, in a stream.
func line(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// finish reports an error and gives the exit status.
func (a *app) finish(err error) int {
	a.Close()
	status := statusOf(err)
	if err == nil || errors.As(err, new(silent)) {
		return status
	}
	message, hint := messageOf(err), protocol.HintOf(err)
	p := paint{a.err.color}
	fmt.Fprintln(a.err, p.red("error:")+" "+message)
	if hint != "" {
		fmt.Fprintln(a.err, p.bold("fix:")+"   "+hint)
	}
	if a.asJSON() && !a.reported {
		code := protocol.CodeOf(err)
		if code == "" {
			code = "error"
		}
		if err := a.answer(errorJSON{reply.Failure{Schema: reply.ErrorSchema, Code: code, Message: message, Fix: hint}, hint, status}); err != nil {
			fmt.Fprintln(a.err, "error: "+err.Error())
		}
	}
	return status
}

// errorJSON is wf.error/v1 as servers write it too, with the exit status.
type errorJSON struct {
	reply.Failure
	Hint string `json:"hint"` // Fix, by its older name
	Exit int    `json:"exit"`
}

// silent is an error that the answer has told already; only its exit status is left.
type silent struct{ error }

func (s silent) Unwrap() error { return s.error }

// messageOf is an error as a sentence for people, without control characters.
func messageOf(err error) string {
	return strings.TrimRight(visible(err.Error()), "\n")
}

// visible is a text that came from elsewhere: it must not move the cursor, change the colours, turn what
// stands beside it, or hide. A screen sees to that too; here it has the width that it is shown with.
func visible(s string) string { return plain.Visible(s) }

// oneLine is the first line of a text, cut to n runes.
func oneLine(s string, n int) string {
	s, _, more := strings.Cut(strings.TrimSpace(visible(s)), "\n")
	s = strings.ReplaceAll(s, "\t", " ")
	r := []rune(s)
	switch {
	case len(r) > n && n > 0:
		return string(r[:n-1]) + "…"
	case more:
		return s + " …"
	}
	return s
}
