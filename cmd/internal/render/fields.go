package render

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"

	"wf/protocol"
	"wf/roles/frontmatter"
)

// A field is one value of an object, for people.
type field struct {
	name  string
	value json.RawMessage
}

// fieldsOf lists the fields of an object by name.
func fieldsOf(object json.RawMessage) ([]field, error) {
	var all map[string]json.RawMessage
	if len(object) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(object, &all); err != nil {
		return nil, fmt.Errorf("not a JSON object: %w", err)
	}
	var out []field
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, field{name, all[name]})
	}
	return out, nil
}

// text is a string as it is, everything else as JSON.
func (f field) text() string {
	var s string
	if bytes.HasPrefix(f.value, []byte(`"`)) && json.Unmarshal(f.value, &s) == nil {
		return Visible(s)
	}
	return Visible(string(f.value))
}

func noOutputs(object protocol.JSON) bool {
	fields, err := fieldsOf(object)
	return err == nil && len(fields) == 0
}

// showFields writes the fields of an object, one per line, texts of several lines indented.
func (p *Printer) showFields(indent string, object protocol.JSON) error {
	return p.showAnswered(indent, object, "")
}

// showAnswered writes the fields of an object in the order of the answer.
func (p *Printer) showAnswered(indent string, object protocol.JSON, text string) error {
	fields, err := fieldsOf(object)
	if err != nil {
		return err
	}
	fields = inOrder(fields, text)
	for _, f := range fields {
		fmt.Fprintf(p.Out, "%s  %s %s\n", indent, p.Out.Bold(f.name+":"), IndentLines(f.text(), indent+"    "))
	}
	return nil
}

// fence is the line before and behind the fields of an answer.
const fence = "---"

// fieldMax is how much of a field is shown where all of them share a line.
const fieldMax = 40

// telling is an answer on one line: its fields, and the last line of the text behind them. That it is done is left
// out where it tells more: the sign in front of it says so.
func telling(fields []field, body string) string {
	var parts []string
	done := ""
	for _, f := range fields {
		text := OneLine(f.text(), fieldMax)
		switch {
		case text == "":
		case f.name == "status" && (text == "done" || text == "ok"):
			done = f.name + ": " + text
		default:
			parts = append(parts, f.name+": "+text)
		}
	}
	if last := lastSaid(body); last != "" {
		parts = append(parts, last)
	}
	if len(parts) == 0 {
		return done
	}
	return strings.Join(parts, " · ")
}

// gist is the most telling part of an answer on one line: its fields, and the last line of the text behind them.
func gist(text string) string { return telling(answered(text)) }

// answered are the fields in front of an answer, as they were written, and the text behind them. An answer whose
// fields cannot be read is what it is.
func answered(text string) (fields []field, body string) {
	raw, body, err := frontmatter.Split(text)
	if err != nil {
		return nil, text
	}
	data, err := frontmatter.Fields(raw)
	if err != nil {
		return nil, text
	}
	if fields, err = fieldsOf(data); err != nil {
		return nil, text
	}
	return inOrder(fields, text), body
}

// inOrder sorts fields in the order of their lines in an answer; those that have none come last.
func inOrder(fields []field, text string) []field {
	raw, _, err := frontmatter.Split(text)
	if err != nil {
		return fields
	}
	places := map[string]int{}
	for line := range strings.Lines(raw) {
		name, _, ok := strings.Cut(line, ":")
		name = strings.Trim(name, `"'`)
		if _, known := places[name]; ok && !known {
			places[name] = len(places) + 1
		}
	}
	slices.SortStableFunc(fields, func(a, b field) int {
		return cmp.Compare(cmp.Or(places[a.name], math.MaxInt), cmp.Or(places[b.name], math.MaxInt))
	})
	return fields
}

// beginning is the first line of an answer, behind its fields.
func beginning(text string) string {
	fields, body := answered(text)
	for more := true; more; { // of fields that do not end
		body, more = strings.CutPrefix(strings.TrimLeft(body, "\n"), fence+"\n")
	}
	first := OneLine(body, 0)
	if rest, cut := strings.CutSuffix(telling(fields, first), first); cut {
		return rest + body
	}
	return telling(fields, "")
}

// question is the beginning of what is asked, on a line of n letters.
func question(text string, n int) string { return OneLine(cmp.Or(beginning(text), text), n) }

// lastSaid is the last line that has a letter or a digit: a rule or a fence tells nothing. Without one it is the last.
func lastSaid(text string) string {
	for rest := strings.TrimSpace(text); rest != ""; {
		line := lastLine(rest)
		if strings.ContainsFunc(line, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			return strings.TrimSpace(line)
		}
		rest = strings.TrimSpace(strings.TrimSuffix(rest, line))
	}
	return lastLine(text)
}

// within reports whether an object has all of the fields.
func within(fields []field, object protocol.JSON) bool {
	var all map[string]json.RawMessage
	if json.Unmarshal(object, &all) != nil {
		return false
	}
	return !slices.ContainsFunc(fields, func(f field) bool { return all[f.name] == nil })
}
