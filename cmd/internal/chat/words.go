package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// arguments shows the arguments of a call as name=value, in the order written.
func arguments(raw string) string {
	dec := json.NewDecoder(strings.NewReader(raw))
	dec.UseNumber()
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return clean(oneLine(raw, argumentMax))
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
		parts = append(parts, fmt.Sprintf("%v=%s", name, oneLine(text, argumentMax)))
	}
	return clean(strings.Join(parts, ", "))
}

// argumentMax bounds one argument in the header of a tool, in runes.
const argumentMax = 120

// oneLine shows a text on one line of at most n runes.
func oneLine(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	runes := 0
	for i := range s {
		if runes == n {
			return s[:i] + "…"
		}
		runes++
	}
	return s
}

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
func foreign(source string) string {
	switch source {
	case "", "cli", "terminal", "chat", "http":
		return ""
	}
	return clean(source)
}

func firstOf(texts ...string) string {
	for _, s := range texts {
		if s != "" {
			return s
		}
	}
	return ""
}
