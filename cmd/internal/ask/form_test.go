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
