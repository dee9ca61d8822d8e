package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"wf/cmd/internal/plain"
)

// arguments shows the arguments of a call as name=value, in the order written.
func arguments(raw string) string {
	dec := json.NewDecoder(strings.NewReader(raw))
	dec.UseNumber()
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return plain.Text(plain.Line(raw, argumentMax))
	}
	var parts []string
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			break
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			break
		}
		var text string
		if json.Unmarshal(value, &text) != nil {
			var compact bytes.Buffer
			if json.Compact(&compact, value) == nil {
				text = compact.String()
			}
		}
		parts = append(parts, fmt.Sprintf("%v=%s", name, plain.Line(text, argumentMax)))
	}
	return plain.Text(strings.Join(parts, ", "))
}

// argumentMax bounds one argument in the header of a tool, in runes.
const argumentMax = 120

// withoutFields is the body of an answer that begins with frontmatter.
func withoutFields(s string) string {
	rest, ok := strings.CutPrefix(s, "---\n")
	if !ok {
		return s
	}
	if fields, body, ok := strings.Cut(rest, "\n---\n"); ok {
		if strings.TrimSpace(body) == "" {
			return fields
		}
		return body
	}
	if fields, ok := strings.CutSuffix(rest, "\n---"); ok {
		return fields
	}
	return s
}

// foreign is the source of words that did not come from a person's own screen.
func (t *Transcript) foreign(source string) string {
	switch source {
	case "", "cli", "terminal", "chat", "http", t.Me:
		return ""
	}
	return plain.Text(source)
}
