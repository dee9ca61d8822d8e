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
	pastes   plain.Pastes
	answer   api.Answer // what answers the question beside the form
	listed   bool       // the question and its choices are above
	left     bool
	stopped  bool // by Ctrl-C
}

// entry is a value that is asked for.
type entry struct {
	field protocol.FormField
	own   bool   // no field of the form: the answer itself
	text  string // that was written
	wrong string

	picked int    // place of the value that was picked, counted from 1
	shown  string // what the box held then
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
	f.area.SetHeight(areaMax) // else what is above a row that comes scrolls away
	switch m := msg.(type) {
	case tea.KeyPressMsg:
		switch m.String() {
		case "esc", "ctrl+c":
			f.left, f.stopped = true, m.String() == "ctrl+c"
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
			if f.area.LineCount() == 1 && len(f.values().choices) > 0 {
				f.pick(map[string]int{"up": -1, "down": 1}[m.String()])
				return
			}
		}
	case tea.PasteMsg:
		f.area.InsertString(f.pastes.In(m.Content))
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

// values are what the entry may be; none is anything.
func (f *Form) values() pickable {
	if e := f.entries[f.at]; !e.own {
		return enum(e.field.Enum)
	}
	return pickable{f.question.Choices}
}

// pick puts the next or previous of the values into the box.
func (f *Form) pick(by int) {
	e, all := &f.entries[f.at], f.values().choices
	i := f.pickedAt() + by
	if i < 0 {
		i = len(all) - 1
	}
	i %= len(all)
	e.picked, e.shown = i+1, seen(all[i].Value)
	f.area.SetValue(e.shown)
	f.area.MoveToEnd()
}

// pickedAt is the place of the value that was picked and is in the box, −1 for none: what it is called may be read as
// another one.
func (f *Form) pickedAt() int {
	if e := f.entries[f.at]; e.picked > 0 && f.area.Value() == e.shown {
		return e.picked - 1
	}
	return -1
}

// take takes what was written, and goes on where it fits.
func (f *Form) take() {
	e := &f.entries[f.at]
	text := strings.TrimSpace(f.pastes.Out(f.area.Value()))
	picked := f.pickedAt()
	switch {
	case e.own:
		e.wrong = f.takeAnswer(text, picked)
	case picked >= 0:
		f.filled[e.field.Name], e.wrong = e.field.Enum[picked], ""
	default:
		e.wrong = fillField(f.filled, e.field, text, string(f.question.Form))
	}
	if e.wrong == "" {
		f.goTo(f.at + 1)
	}
	if f.at == len(f.entries) {
		f.check()
	}
}

// takeAnswer takes an answer, or says what is wrong with it.
func (f *Form) takeAnswer(text string, picked int) string {
	choices := f.values()
	f.answer = choices.answer(text)
	if picked >= 0 {
		f.answer = api.Answer{Choice: choices.choices[picked].Value}
	}
	_, err := strconv.Atoi(text)
	switch {
	case picked >= 0:
	case text == "":
		return "an answer is required (Esc leaves the question open)"
	case len(choices.choices) == 0 || f.answer.Choice != "":
	case err == nil && choices.byPlace():
		return fmt.Sprintf("there are choices 1 to %d", len(choices.choices))
	case err == nil:
		return text + " is none of them: a number is the value itself"
	case len(f.question.Form) > 0:
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
	a := f.answer
	a.Step, a.Shown, a.Source = f.question.Step, f.question.Shown, "terminal"
	if len(f.question.Form) == 0 {
		return a, nil
	}
	fields, err := protocol.CanonicalJSON(f.filled)
	a.Fields = json.RawMessage(fields)
	return a, err
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
		n := len(f.entries)
		if n > 1 {
			heading += fmt.Sprintf("  (%d of %d)", i+1, n)
		}
		if f.listed && n == 1 {
			heading = ""
		}
		add(bold, "  ", heading)
		add(dim, "    ", e.field.Description)
		values := f.values()
		for n, key := range values.keys() {
			switch more := len(values.choices) - n; {
			case f.listed:
			case n >= valuesMax && len(values.choices) > valuesMax+1:
				if n == valuesMax {
					add(dim, "    ", fmt.Sprintf("… %d more: ↑ ↓ go through them", more))
				}
			default:
				if label := seen(values.choices[n].Label); label != key {
					key += "  " + label
				}
				add(lipgloss.NewStyle(), "    ", key)
			}
		}
		f.area.SetWidth(max(4, width-2))
		f.area.SetHeight(max(1, min(plain.Rows(f.area.Value(), width-5, areaMax), height/3)))
		for l := range strings.SplitSeq(f.area.View(), "\n") {
			out = append(out, "  "+l)
		}
		if e.wrong != "" {
			add(bad, "    ", e.field.Name+": "+e.wrong)
		}
		hint := []string{"Enter takes it"}
		if len(values.choices) > 0 {
			hint = append(hint, values.how())
		} else {
			hint = append(hint, "Alt+Enter: new line")
		}
		if i > 0 {
			hint = append(hint, "Shift+Tab: back")
		}
		add(dim, "  ", strings.Join(append(hint, "Esc leaves it open"), " · "))
	}
	return out[max(0, len(out)-max(1, height)):]
}

var (
	bold = lipgloss.NewStyle().Bold(true)
	dim  = lipgloss.NewStyle().Faint(true)
	bad  = lipgloss.NewStyle().Foreground(lipgloss.Color("1"))
)

// shown is what was filled in for an entry.
func (f *Form) shown(e entry) string {
	if e.own {
		if c := f.answer.Choice; c != "" {
			return strings.TrimSpace(seen(c) + "  " + f.answer.Text)
		}
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
