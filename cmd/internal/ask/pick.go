package ask

import (
	"slices"
	"strconv"
	"strings"

	"wf/api"
	"wf/cmd/internal/plain"
	"wf/protocol"
)

// pickable are the choices of a question, or the values of a field. In front of each is what picks it: its place, or
// where one of them begins with a number the value itself, so that a number never means two things.
type pickable struct{ choices []protocol.Choice }

// enum are the values of a field as they are picked.
func enum(values []protocol.JSON) (p pickable) {
	for _, v := range values {
		text := protocol.JSONText(v)
		p.choices = append(p.choices, protocol.Choice{Value: text, Label: text})
	}
	return p
}

// byPlace reports whether a number is the place of a value.
func (p pickable) byPlace() bool {
	return !slices.ContainsFunc(p.choices, func(c protocol.Choice) bool { return numeric(c.Value) || numeric(c.Label) })
}

// numeric reports whether a text begins with a number, as it is seen.
func numeric(text string) bool {
	text = strings.TrimLeft(plain.Text(text), " \n+-.#(")
	return text != "" && text[0] >= '0' && text[0] <= '9'
}

// keys are what picks each.
func (p pickable) keys() (out []string) {
	places := p.byPlace()
	for i, c := range p.choices {
		key := strconv.Itoa(i + 1)
		if !places {
			key = seen(c.Value)
		}
		out = append(out, key)
	}
	return out
}

// seen is a value on a line.
func seen(value string) string {
	if text := plain.Line(plain.Text(value), valueMax); text != "" {
		return text
	}
	return "(empty)"
}

// Choice is the place in a list of choices of the one that a text names, −1 for none: by the value or its label, else by a number, which is its
// place where no choice begins with a number.
func Choice(choices []protocol.Choice, text string) int { return pickable{choices}.at(text) }

// at is the place of the value that a text names, −1 for none: by the value or its label, else by its number.
func (p pickable) at(text string) int {
	same := func(x, y string) bool { return x == y }
	for _, is := range []func(x, y string) bool{same, strings.EqualFold} {
		if i := slices.IndexFunc(p.choices, func(c protocol.Choice) bool { return is(text, c.Value) }); i >= 0 {
			return i
		}
		if i := slices.IndexFunc(p.choices, func(c protocol.Choice) bool { return is(text, c.Label) }); i >= 0 {
			return i
		}
	}
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(p.choices) && p.byPlace() {
		return n - 1
	}
	return -1
}

// answer reads an answer: what names a choice picks it; with a text behind it, the text goes along.
func (p pickable) answer(text string) api.Answer {
	if i := p.at(text); i >= 0 {
		return api.Answer{Choice: p.choices[i].Value}
	}
	end := strings.IndexAny(text, " \n")
	if end < 0 {
		return api.Answer{Text: text}
	}
	if i := p.at(text[:end]); i >= 0 {
		return api.Answer{Choice: p.choices[i].Value, Text: strings.TrimSpace(text[end:])}
	}
	return api.Answer{Text: text}
}

// how says what picks one of them.
func (p pickable) how() string {
	if p.byPlace() {
		return "a number or ↑ ↓ picks one"
	}
	return "write one of them, or ↑ ↓ picks it"
}
