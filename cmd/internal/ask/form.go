package ask

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"wf/api"
	"wf/cmd/internal/plain"
	"wf/cmd/internal/render"
	"wf/protocol"
	"wf/roles/frontmatter"
)

// A Form asks on a screen for what answers a question: one of its choices or a text, and the fields of its form, one
// after the other as they were written. What does not fit is asked for again, with the reason below the field.
type Form struct {
	question api.Waiting
	entries  []entry
	at       int // in entries; len(entries) when all are filled in
	area     textarea.Model
	filled   map[string]any // fields of the form
	left     bool
}

// entry is a value that is asked for.
type entry struct {
	field protocol.FormField
	own   bool   // no field of the form: the answer itself
	text  string // that was written
	wrong string
}

// FormState says how far a form is.
type FormState int

// The states of a form.
const (
	Filling FormState = iota
	Filled
	Left // the person leaves the question open
)

// NewForm asks for the answer to a question.
func NewForm(w api.Waiting) *Form {
	f := &Form{question: w, filled: map[string]any{}, area: textarea.New()}
	switch {
	case len(w.Choices) > 0:
		f.entries = append(f.entries, entry{own: true, field: protocol.FormField{Name: "answer", Required: true}})
	case len(w.Form) == 0:
		f.entries = append(f.entries, entry{own: true, field: protocol.FormField{Name: "answer", Type: "string", Required: true}})
	}
	for _, x := range protocol.FormFields(string(w.Form)) {
		f.entries = append(f.entries, entry{field: x})
	}
	f.area.ShowLineNumbers = false
	f.area.SetPromptFunc(2, func(at textarea.PromptInfo) string {
		if at.LineNumber == 0 {
			return "> "
		}
		return "  "
	})
	f.area.CharLimit = 0
	f.area.MaxHeight = 0
	f.area.KeyMap.InsertNewline.SetKeys("alt+enter", "shift+enter", "ctrl+j")
	looks := textarea.Styles{}
	looks.Cursor.Color = lipgloss.NoColor{}
	f.area.SetStyles(looks)
	f.area.Focus()
	return f
}

// State says whether the form is filled in.
func (f *Form) State() FormState {
	switch {
	case f.left:
		return Left
	case f.at == len(f.entries):
		return Filled
	}
	return Filling
}

// Update takes a key, or what was pasted.
func (f *Form) Update(msg tea.Msg) {
	if f.State() != Filling {
		return
	}
	switch m := msg.(type) {
	case tea.KeyPressMsg:
		switch m.String() {
		case "esc", "ctrl+c":
			f.left = true
			return
		case "ctrl+d":
			if f.area.Length() == 0 {
				f.left = true
				return
			}
		case "enter", "tab":
			f.take()
			return
		case "shift+tab":
			f.goTo(max(0, f.at-1))
			return
		case "up", "down":
			if f.area.LineCount() == 1 && len(f.values()) > 0 {
				f.pick(map[string]int{"up": -1, "down": 1}[m.String()])
				return
			}
		}
	case tea.PasteMsg:
		f.area.InsertString(plain.Text(m.Content))
		return
	}
	f.area, _ = f.area.Update(msg)
}

// goTo asks for another entry; what was written for it is there again.
func (f *Form) goTo(i int) {
	if f.at < len(f.entries) {
		f.entries[f.at].text = f.area.Value()
	}
	f.at = i
	f.area.Reset()
	if i < len(f.entries) {
		f.area.SetValue(f.entries[i].text)
		f.area.MoveToEnd()
	}
}

// values are what the entry may be, as texts; none is anything.
func (f *Form) values() (out []string) {
	e := f.entries[f.at]
	if e.own {
		for _, c := range f.question.Choices {
			out = append(out, c.Value)
		}
		return out
	}
	for _, v := range e.field.Enum {
		out = append(out, protocol.JSONText(v))
	}
	return out
}

// picks are what the box holds when a value is picked: the value, or its number where the value itself would be read as
// another one or has no place on a line.
func (f *Form) picks() []string {
	out := f.values()
	for i, v := range out {
		picked := false
		if f.entries[f.at].own {
			picked = choiceIn(f.question, v).Choice == f.question.Choices[i].Value
		} else {
			n, err := strconv.Atoi(v)
			picked = err != nil || n < 1 || n > len(out) || n == i+1
		}
		if !picked || v == "" || v != plain.Line(plain.Text(v), valueMax) {
			out[i] = strconv.Itoa(i + 1)
		}
	}
	return out
}

// pick puts the next or previous of the values into the box.
func (f *Form) pick(by int) {
	all := f.picks()
	i := slices.Index(all, f.area.Value()) + by
	if i < 0 {
		i = len(all) - 1
	}
	f.area.SetValue(all[i%len(all)])
	f.area.MoveToEnd()
}

// take takes what was written, and goes on where it fits.
func (f *Form) take() {
	e := &f.entries[f.at]
	text := strings.TrimSpace(f.area.Value())
	if e.own {
		e.wrong = f.takeAnswer(text)
	} else {
		e.wrong = fillField(f.filled, e.field, text, string(f.question.Form))
	}
	if e.wrong == "" {
		f.goTo(f.at + 1)
	}
	if f.at == len(f.entries) {
		f.check()
	}
}

// takeAnswer says what is wrong with an answer.
func (f *Form) takeAnswer(text string) string {
	switch {
	case text == "":
		return "an answer is required (Esc leaves the question open)"
	case len(f.question.Choices) > 0 && len(f.question.Form) > 0 && choiceIn(f.question, text).Choice == "":
		return "pick one by its number or name"
	}
	return ""
}

// check looks at the fields together. Where they do not fit, the first one that is named is asked for again.
func (f *Form) check() {
	if len(f.question.Form) == 0 || len(f.entries) == 0 {
		return
	}
	last := len(f.entries) - 1
	all, err := protocol.CanonicalJSON(f.filled)
	if err != nil {
		f.entries[last].wrong = err.Error()
		f.goTo(last)
		return
	}
	again := len(f.entries)
	for _, v := range frontmatter.Validate(all, string(f.question.Form)) {
		i := slices.IndexFunc(f.entries, func(e entry) bool {
			at := render.FieldPointer(e.field.Name)
			return !e.own && (v.Pointer == at || strings.HasPrefix(v.Pointer, at+"/"))
		})
		if i < 0 { // of the form as a whole
			i = last
		}
		f.entries[i].wrong = v.Reason
		again = min(again, i)
	}
	if again < len(f.entries) {
		f.goTo(again)
	}
}

// Answer is what was filled in.
func (f *Form) Answer() (api.Answer, error) {
	var a api.Answer
	if len(f.entries) > 0 && f.entries[0].own {
		a = choiceIn(f.question, strings.TrimSpace(f.entries[0].text))
	}
	a.Step, a.Shown, a.Source = f.question.Step, f.question.Shown, "terminal"
	if len(f.question.Form) == 0 {
		return a, nil
	}
	fields, err := protocol.CanonicalJSON(f.filled)
	a.Fields = json.RawMessage(fields)
	return a, err
}

// choiceIn reads an answer: a number, or the value or label of a choice, picks that; with a text behind a number or value, the text goes along.
// A number is always the place in the list: the values may be those of an agent.
func choiceIn(w api.Waiting, text string) api.Answer {
	first, rest, more := strings.Cut(text, " ")
	at, err := strconv.Atoi(first)
	number := err == nil && at >= 1 && at <= len(w.Choices)
	named := func(name string) int {
		return slices.IndexFunc(w.Choices, func(c protocol.Choice) bool { return strings.EqualFold(name, c.Value) })
	}
	whole := named(text)
	if whole < 0 {
		whole = slices.IndexFunc(w.Choices, func(c protocol.Choice) bool { return strings.EqualFold(text, c.Label) })
	}
	switch {
	case number && !more:
		return api.Answer{Choice: w.Choices[at-1].Value}
	case whole >= 0:
		return api.Answer{Choice: w.Choices[whole].Value}
	case !number:
		at = named(first) + 1
	}
	if at < 1 {
		return api.Answer{Text: text}
	}
	return api.Answer{Choice: w.Choices[at-1].Value, Text: strings.TrimSpace(rest)}
}

const (
	areaMax   = 8   // lines of the box
	valuesMax = 12  // values that are listed
	valueMax  = 200 // letters of each
)

// Lines draws the form: what was filled in, and the entry that is asked for. Where there is no room, the end of it.
func (f *Form) Lines(width, height int) []string {
	var out []string
	add := func(style lipgloss.Style, indent, text string) {
		if text == "" {
			return
		}
		for _, l := range plain.Wrap(plain.Text(text), max(1, width-len(indent))) {
			out = append(out, indent+style.Render(l))
		}
	}
	for i, e := range f.entries {
		if i != f.at {
			if i < f.at {
				add(lipgloss.NewStyle(), "  ", e.field.Name+": "+render.OneLine(f.shown(e), 200))
			}
			continue
		}
		heading := e.field.Name
		switch {
		case !e.own:
			heading += "  " + render.AboutField(e.field)
		case len(f.question.Choices) > 0:
			heading += "  one of them, required"
		}
		if n := len(f.entries); n > 1 {
			heading += fmt.Sprintf("  (%d of %d)", i+1, n)
		}
		add(bold, "  ", heading)
		add(dim, "    ", e.field.Description)
		for n, v := range f.labels() {
			if n == valuesMax && len(f.values()) > valuesMax+1 {
				add(dim, "    ", fmt.Sprintf("… %d more: ↑ ↓ go through them", len(f.values())-n))
				break
			}
			add(lipgloss.NewStyle(), "    ", fmt.Sprintf("%d  %s", n+1, plain.Line(plain.Text(v), valueMax)))
		}
		f.area.SetWidth(max(4, width-2))
		f.area.SetHeight(max(1, min(areaMax, f.area.LineCount(), height/3)))
		for l := range strings.SplitSeq(f.area.View(), "\n") {
			out = append(out, "  "+l)
		}
		if e.wrong != "" {
			add(bad, "    ", e.field.Name+": "+e.wrong)
		}
		hint := "Enter takes it · Alt+Enter: new line · Esc leaves it open"
		if i > 0 {
			hint = "Enter takes it · Shift+Tab: back · Alt+Enter: new line · Esc leaves it open"
		}
		add(dim, "  ", hint)
	}
	return out[max(0, len(out)-max(1, height)):]
}

var (
	bold = lipgloss.NewStyle().Bold(true)
	dim  = lipgloss.NewStyle().Faint(true)
	bad  = lipgloss.NewStyle().Foreground(lipgloss.Color("1"))
)

// labels are the values of the entry as they are listed.
func (f *Form) labels() (out []string) {
	if !f.entries[f.at].own {
		return f.values()
	}
	for _, c := range f.question.Choices {
		out = append(out, c.Label)
	}
	return out
}

// shown is what was filled in for an entry.
func (f *Form) shown(e entry) string {
	if e.own {
		return e.text
	}
	v, there := f.filled[e.field.Name]
	if !there {
		return "–"
	}
	b, err := protocol.CanonicalJSON(v)
	if err != nil {
		return e.text
	}
	return protocol.JSONText(b)
}
