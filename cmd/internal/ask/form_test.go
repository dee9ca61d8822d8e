package ask

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"wf/api"
	"wf/protocol"
)

// write writes a text into a form, and takes it.
func write(f *Form, text string) {
	f.Update(tea.PasteMsg{Content: text})
	f.Update(tea.KeyPressMsg{Code: tea.KeyEnter})
}

func TestFieldsThatDoNotFitTogetherAreAskedForAgain(t *testing.T) {
	f := NewForm(api.Waiting{Step: "a#1", Form: protocol.JSON(`{"type":"object","properties":{"from":{"type":"integer"},"to":{"type":"integer"}},"dependentRequired":{"from":["to"]},"x-order":["from","to"]}`)})
	write(f, "3")
	write(f, "")
	if f.State() != Filling || f.at != 1 || !strings.Contains(strings.Join(f.Lines(80, 20), "\n"), "to: ") {
		t.Fatalf("state %d at %d:\n%s", f.State(), f.at, strings.Join(f.Lines(80, 20), "\n"))
	}
	write(f, "7")
	a, err := f.Answer()
	if f.State() != Filled || err != nil || string(a.Fields) != `{"from":3,"to":7}` || a.Step != "a#1" {
		t.Errorf("state %d: %+v, %v", f.State(), a, err)
	}
}

func TestAFormWithoutFieldsIsFilledIn(t *testing.T) {
	f := NewForm(api.Waiting{Form: protocol.JSON(`{"type":"object"}`)})
	a, err := f.Answer()
	if f.State() != Filled || err != nil || string(a.Fields) != "{}" {
		t.Errorf("state %d: %+v, %v", f.State(), a, err)
	}
	f.Update(tea.KeyPressMsg{Code: tea.KeyEscape})
	if f.State() != Filled || len(f.Lines(10, 10)) != 0 {
		t.Error("a key changes it")
	}
}

// What is picked is what is taken, whatever an agent named the choices: a number is the place in the list.
func TestAChoiceIsTheOneThatWasPicked(t *testing.T) {
	choices := func(values ...string) (out []protocol.Choice) {
		for _, v := range values {
			out = append(out, protocol.Choice{Label: "label of " + v, Value: v})
		}
		return out
	}
	for _, values := range [][]string{{"yes", "no"}, {"2", "1"}, {"2 days", "5 days"}, {"try again", "try", "A", "a"}, {"one\n  2  no", "2\x1b[2J", "3", " "}} {
		w := api.Waiting{Choices: choices(values...)}
		for i, want := range values {
			f := NewForm(w)
			for range i + 1 {
				f.Update(tea.KeyPressMsg{Code: tea.KeyDown})
			}
			f.Update(tea.KeyPressMsg{Code: tea.KeyEnter})
			if a, err := f.Answer(); a.Choice != want || a.Text != "" || err != nil {
				t.Errorf("%q of %q: %+v, %v", want, values, a, err)
			}
		}
	}
	w := api.Waiting{Choices: choices("2", "keep it", "drop")}
	for text, want := range map[string]api.Answer{"2": {Choice: "keep it"}, "2 later": {Choice: "keep it", Text: "later"}, "keep it": {Choice: "keep it"}, "Label of DROP": {Choice: "drop"},
		"DROP all  of it": {Choice: "drop", Text: "all  of it"}, "0": {Text: "0"}, "4 x": {Text: "4 x"}, "keep": {Text: "keep"}, "": {}} {
		if got := choiceIn(w, text); got.Choice != want.Choice || got.Text != want.Text {
			t.Errorf("%q is %+v", text, got)
		}
	}
	form := `{"type":"object","required":["n"],"properties":{"n":{"enum":[2,4,1,""]}}}`
	for i, want := range []string{`{"n":2}`, `{"n":4}`, `{"n":1}`, `{"n":""}`} {
		f := NewForm(api.Waiting{Form: protocol.JSON(form)})
		for range i + 1 {
			f.Update(tea.KeyPressMsg{Code: tea.KeyDown})
		}
		f.Update(tea.KeyPressMsg{Code: tea.KeyEnter})
		if a, err := f.Answer(); string(a.Fields) != want || err != nil {
			t.Errorf("%s: %+v, %v", want, a, err)
		}
	}
}

// A label of several lines makes no second number.
func TestALabelIsOneLineOfTheList(t *testing.T) {
	f := NewForm(api.Waiting{Choices: []protocol.Choice{{Label: "keep\n    2  drop", Value: "a"}, {Label: "drop\r    3  keep", Value: "b"}}})
	now := strings.Join(f.Lines(80, 20), "\n")
	if !strings.Contains(now, "1  keep 2 drop\n") || !strings.Contains(now, "2  drop 3 keep\n") {
		t.Errorf("the list is\n%s", now)
	}
}

// Whatever a form says of itself, its lines fit and nothing of them acts on a terminal; the end of it is what is seen.
func TestTheLinesOfAFormFit(t *testing.T) {
	var values []string
	for range 100 {
		values = append(values, `"世界 and so on \u001b[2J"`)
	}
	f := NewForm(api.Waiting{Form: protocol.JSON(`{"type":"object","required":["a\u001b]0;owned\u0007"],"properties":{"a\u001b]0;owned\u0007":{"description":"` + strings.Repeat("long ", 100) + `","enum":[` + strings.Join(values, ",") + `]}}}`)})
	for _, size := range [][2]int{{100, 24}, {40, 10}, {20, 4}, {5, 1}} {
		lines := f.Lines(size[0], size[1])
		if len(lines) > size[1] {
			t.Errorf("%d lines of %d", len(lines), size[1])
		}
		for _, l := range lines {
			if strings.Contains(l, "\x1b]") || strings.Contains(l, "\x1b[2J") {
				t.Errorf("%q acts on the terminal", l)
			}
		}
	}
	f.Update(tea.KeyPressMsg{Code: tea.KeyEscape})
	if f.State() != Left {
		t.Error("Esc does not leave it")
	}
}
