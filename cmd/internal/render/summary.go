package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"wf/api"
	"wf/protocol"
	"wf/roles/frontmatter"
)

// Ended reports whether the visit has a record.
func Ended(s *api.Step) bool { return s.CID != nil }

// result is how a step ended, in a word or two.
func result(s *api.Step) string {
	var d struct {
		ExitCode *int `json:"exit_code"`
	}
	switch {
	case !Ended(s):
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
