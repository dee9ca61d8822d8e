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

func choices(values ...string) (out []protocol.Choice) {
	for _, v := range values {
		out = append(out, protocol.Choice{Label: "label of " + v, Value: v})
	}
	return out
}

// What is picked is what is taken, whatever an agent named the choices.
func TestAChoiceIsTheOneThatWasPicked(t *testing.T) {
	for _, values := range [][]string{{"yes", "no"}, {"2", "1"}, {"2 days", "5 days"}, {"try again", "try", "A", "a"}, {"one\n  2  no", "2\x1b[2J", "3", " ", "2", "(empty)"}} {
		w := api.Waiting{Choices: choices(values...)}
		for i, want := range values {
			down, up := NewForm(w), NewForm(w)
			for range i + 1 {
				down.Update(tea.KeyPressMsg{Code: tea.KeyDown})
			}
			for range len(values) - i {
				up.Update(tea.KeyPressMsg{Code: tea.KeyUp})
			}
			for _, f := range []*Form{down, up} {
				f.Update(tea.KeyPressMsg{Code: tea.KeyEnter})
				if a, err := f.Answer(); f.State() != Filled || a.Choice != want || a.Text != "" || err != nil {
					t.Errorf("%q of %q: %+v, %v", want, values, a, err)
				}
			}
		}
	}
}

// A number is the place of a choice only where none of them begins with a number; else it is the value.
func TestANumberNeverMeansTwoThings(t *testing.T) {
	for _, x := range []struct {
		values []string
		answer map[string]api.Answer
	}{
		{[]string{"keep it", "drop", "Drop", "four"}, map[string]api.Answer{"2": {Choice: "drop"}, "2 later": {Choice: "drop", Text: "later"}, "2\nlater": {Choice: "drop", Text: "later"}, "keep it": {Choice: "keep it"},
			"Label of DROP": {Choice: "drop"}, "Drop": {Choice: "Drop"}, "DROP all  of it": {Choice: "drop", Text: "all  of it"}, "4": {Choice: "four"}, "0 x": {Text: "0 x"}, "5 x": {Text: "5 x"}, "keep": {Text: "keep"}, "": {}}},
		{[]string{"3", "1", "2"}, map[string]api.Answer{"3": {Choice: "3"}, "1": {Choice: "1"}, "2": {Choice: "2"}, "2 of them": {Choice: "2", Text: "of them"}, "label of 1": {Choice: "1"}, "4": {Text: "4"}}},
		{[]string{"10", "20"}, map[string]api.Answer{"1": {Text: "1"}, "2": {Text: "2"}, "20": {Choice: "20"}, "20 now": {Choice: "20", Text: "now"}}},
		{[]string{"keep", "2 days"}, map[string]api.Answer{"1": {Text: "1"}, "2": {Text: "2"}, "2 days": {Choice: "2 days"}, "keep": {Choice: "keep"}}},
		{[]string{"#1", "\u200b2", "-3"}, map[string]api.Answer{"1": {Text: "1"}, "#1": {Choice: "#1"}, "-3": {Choice: "-3"}}},
	} {
		for text, want := range x.answer {
			if got := (pickable{choices(x.values...)}).answer(text); got.Choice != want.Choice || got.Text != want.Text {
				t.Errorf("%q of %q is %+v", text, x.values, got)
			}
		}
	}
	if (pickable{[]protocol.Choice{{Label: "2 more", Value: "more"}, {Label: "none", Value: "none"}}}).byPlace() {
		t.Error("a label that begins with a number has a number in front of it")
	}
	f := NewForm(api.Waiting{Choices: choices("10", "20")})
	if now := strings.Join(f.Lines(80, 20), "\n"); !strings.Contains(now, "    10  label of 10\n    20  label of 20\n") || !strings.Contains(now, "write one of them, or ↑ ↓ picks it") {
		t.Errorf("the list is\n%s", now)
	}
	write(f, "2")
	if now := strings.Join(f.Lines(80, 20), "\n"); f.State() != Filling || !strings.Contains(now, "2 is none of them") {
		t.Errorf("the list is\n%s", now)
	}
	f = NewForm(api.Waiting{Choices: choices("keep", "drop")})
	if now := strings.Join(f.Lines(80, 20), "\n"); !strings.Contains(now, "    1  label of keep\n    2  label of drop\n") || !strings.Contains(now, "a number or ↑ ↓ picks one") {
		t.Errorf("the list is\n%s", now)
	}
	write(f, "3")
	if now := strings.Join(f.Lines(80, 20), "\n"); f.State() != Filling || !strings.Contains(now, "there are choices 1 to 2") {
		t.Errorf("the list is\n%s", now)
	}
}

// The values of a field are picked as choices are.
func TestANumberAmongTheValuesOfAField(t *testing.T) {
	for values, want := range map[string]map[string]string{
		`[3,1,2]`:               {"2": `2`, "3": `3`, "1": `1`},
		`["10","20"]`:           {"20": `"20"`, "10": `"10"`, "2": ""},
		`["small","large"]`:     {"2": `"large"`, "small": `"small"`, "3": ""},
		`["no",true,null,"1a"]`: {"true": `true`, "null": `null`, "1": "", "no": `"no"`},
	} {
		for text, value := range want {
			f := NewForm(api.Waiting{Form: protocol.JSON(`{"type":"object","required":["n"],"properties":{"n":{"enum":` + values + `}}}`)})
			write(f, text)
			a, err := f.Answer()
			if value == "" {
				if f.State() != Filling {
					t.Errorf("%s of %s is %+v", text, values, a)
				}
				continue
			}
			if string(a.Fields) != `{"n":`+value+`}` || err != nil {
				t.Errorf("%s of %s: %+v, %v", text, values, a, err)
			}
		}
	}
}

// What is pasted is one text: nothing of it takes the answer, and a long one is not drawn.
func TestWhatIsPastedIsOneText(t *testing.T) {
	lines := func(n int) string { return strings.TrimSuffix(strings.Repeat("a line\n", n), "\n") }
	for _, x := range []struct {
		text  string
		words bool
	}{
		{lines(12), false}, {lines(13), true}, {strings.Repeat("x", 2000), false}, {strings.Repeat("x", 2001), true},
		{strings.Repeat("a line of\ta file\n", 200<<10/18), true},
	} {
		f := NewForm(api.Waiting{})
		f.Update(tea.PasteMsg{Content: strings.ReplaceAll(x.text, "\n", "\r\n")})
		now := strings.Join(f.Lines(80, 40), "\n")
		if f.State() != Filling || strings.Contains(now, "[pasted 1: ") != x.words {
			t.Errorf("%d bytes are\n%s", len(x.text), now)
		}
		write(f, " and\r\x1b[31mmore\x07")
		a, err := f.Answer()
		if want := x.text + " and\nmore"; a.Text != want || err != nil {
			t.Errorf("%d bytes became %d, %v", len(want), len(a.Text), err)
		}
	}
	f := NewForm(api.Waiting{})
	f.Update(tea.PasteMsg{Content: lines(13)})
	write(f, "\n"+lines(14))
	if a, _ := f.Answer(); strings.Count(a.Text, "a line") != 27 {
		t.Errorf("two pasted texts became %q", a.Text)
	}
}

// The values of a field that are numbers, picked by arrows.
func TestAValueIsTheOneThatWasPicked(t *testing.T) {
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

// All that was written is seen as long as it fits into the box, whether its lines are long or many.
func TestTheBoxIsAsHighAsItsText(t *testing.T) {
	f := NewForm(api.Waiting{})
	f.Lines(40, 24)
	for i := range areaMax {
		if i > 0 {
			f.Update(tea.KeyPressMsg{Code: tea.KeyEnter, Mod: tea.ModAlt})
		}
		f.Update(tea.KeyPressMsg{Code: rune('a' + i), Text: string(rune('a' + i))})
		if now := strings.Join(f.Lines(100, 24), "\n"); !strings.Contains(now, "> a") || strings.Count(now, "\n") != i+2 {
			t.Fatalf("line %d:\n%s", i, now)
		}
	}
	f = NewForm(api.Waiting{})
	f.Lines(40, 24)
	for range 20 {
		f.Update(tea.KeyPressMsg{Code: 'w', Text: "word "})
	}
	if now := strings.Join(f.Lines(40, 24), "\n"); strings.Count(now, "word") != 20 {
		t.Errorf("a long line is\n%s", now)
	}
}
