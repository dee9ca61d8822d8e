package chat_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"wf/cmd/internal/screentest"
	"wf/protocol"
)

// asksForEdit has an agent ask for an edit whose difference has n lines of new text.
func asksForEdit(r *room, n int, repeats bool) {
	var old, added strings.Builder
	diff := "--- a.go\n+++ a.go\n@@ -1 +1," + itoa(n) + " @@\n-**old** _line_\n"
	old.WriteString("**old** _line_")
	for i := range n {
		fmt.Fprintf(&added, "line %03d of `it`\n", i)
		diff += fmt.Sprintf("+line %03d of `it`\n", i)
	}
	choices := []obj{{"label": "Allow once", "value": "allow"}}
	if repeats {
		choices = append(choices, obj{"label": "Allow exactly this for the whole run", "value": "allow_run"})
	}
	args := fmt.Sprintf(`{"path":"a.go","old":%q,"new":%q}`, old.String(), strings.TrimSuffix(added.String(), "\n"))
	r.happen("you#2", protocol.EvAnswered, obj{"text": "go"})
	r.happen("wf#2", protocol.EvStepStarted, obj{"role": "wf"})
	r.happen("wf#2", protocol.EvToolCall, obj{"call": "c", "name": "edit_file", "args": args})
	r.happen("wf#2", protocol.EvWaiting, obj{"kind": "approval", "question": "wf#2 wants to call edit_file:\n\n" + diff, "call": "c", "shown": "d1",
		"choices": append(choices, obj{"label": "Deny", "value": "deny"})})
}

// asked shows a room in which an agent asks for an edit of three lines.
func asked(t *testing.T, repeats bool) (*room, *screen) {
	t.Helper()
	r := newRoom()
	asksForEdit(r, 3, repeats)
	s := show(t, r, 80, 24)
	s.Shows(aKey)
	return r, s
}

const aKey = "a key, or ↑↓ and Enter:"

// An edit is shown as it is, not as Markdown, and answered by one key; Enter is no answer.
func TestAnEditIsAllowedByAKey(t *testing.T) {
	for key, want := range map[string]string{"y": "wf#2=allow d1", "a": "wf#2=allow_run d1"} {
		r := newRoom()
		asksForEdit(r, 3, true)
		s := show(t, r, 80, 24)
		now := s.Shows(aKey)
		for _, line := range []string{"? wf#2 wants to call edit_file:\n", "  -**old** _line_\n", "  +line 002 of `it`\n", "  y  Allow once\n  a  Allow exactly this call, until the run ends\n  n  Deny\n"} {
			if !strings.Contains(now, line) {
				t.Errorf("nothing of %q in\n%s", line, now)
			}
		}
		s.Press("\r\r" + key)
		if got := r.heard(t); got != want {
			t.Errorf("%s answers %q", key, got)
		}
		r.happen("wf#2", protocol.EvAnswered, obj{"choice": "allow"})
		r.happen("wf#2", protocol.EvApproval, obj{"call": "c", "tool": "edit_file", "decision": "allow"})
		r.happen("wf#2", protocol.EvToolResult, obj{"call": "c", "content": "edited a.go"})
		now = s.Shows("edited a.go")
		if strings.Count(now, "+line 002") != 1 || strings.Contains(now, "wants to call") || strings.Contains(now, "you allow") {
			t.Errorf("the edit is not shown once:\n%s", now)
		}
	}
}

// Always is refused where it is not offered.
func TestWhatCannotBeAllowedForGoodIsNot(t *testing.T) {
	r, s := asked(t, false)
	s.Press("a")
	s.Shows("allowed once or not at all")
	s.Press("y")
	if got := r.heard(t); got != "wf#2=allow d1" {
		t.Errorf("answered %q", got)
	}
}

// A denial is written with its reason; Esc is no denial.
func TestAnEditIsDeniedWithAReason(t *testing.T) {
	r, s := asked(t, true)
	s.Press("n")
	s.Shows("Enter denies the call")
	s.Press(screentest.Esc)
	s.Shows("Write, or /help")
	s.Press("nuse tabs\r")
	if got := r.heard(t); got != "wf#2=deny d1 use tabs" {
		t.Errorf("answered %q", got)
	}
	s.Press("n\r")
	if got := r.heard(t); got != "wf#2=deny d1" {
		t.Errorf("answered %q", got)
	}
}

// A key answers once, and again where the answer came to nothing.
func TestAKeyAnswersOnce(t *testing.T) {
	r := newRoom()
	asksForEdit(r, 3, true)
	r.deaf = errors.New("the daemon is gone")
	s := show(t, r, 80, 24)
	s.Shows(aKey)
	s.Press("y")
	s.Shows("the daemon is gone")
	r.mu.Lock()
	r.deaf = nil
	r.mu.Unlock()
	s.Shows(aKey)
	s.Press("yy")
	s.Shows("> y") // the second one is a letter
	if got := r.heard(t); got != "wf#2=allow d1" || len(r.said) > 0 {
		t.Errorf("answered %q and %d times more", got, len(r.said))
	}
}

// What is long is folded, and a key first shows all of it.
func TestALongEditIsReadBeforeItIsAllowed(t *testing.T) {
	for _, n := range []int{8, 9} { // with its head 12 and 13 lines
		r := newRoom()
		asksForEdit(r, n, true)
		s := show(t, r, 80, 40)
		folded := n > 8
		now := s.Shows(aKey)
		if strings.Contains(now, "… 1 more line (Ctrl+O)") != folded || strings.Contains(now, fmt.Sprintf("+line %03d", n-1)) == folded {
			t.Errorf("%d lines:\n%s", n, now)
		}
		s.Press("y")
		if folded {
			s.Shows("all of the call is shown now; y again allows it")
			s.Shows(fmt.Sprintf("+line %03d", n-1))
			s.Press("y")
		}
		if got := r.heard(t); got != "wf#2=allow d1" {
			t.Errorf("answered %q", got)
		}
		s.Press("\x0f") // Ctrl+O
		s.Until("other lines", func(now string) bool { return strings.Contains(now, fmt.Sprintf("+line %03d", n-1)) != folded })
	}
}

// A call that was scrolled off the screen is not allowed unseen.
func TestACallThatIsNotOnTheScreenIsShownAtFirst(t *testing.T) {
	r := newRoom()
	for range 30 {
		talk(r)
	}
	asksForEdit(r, 3, true)
	s := show(t, r, 80, 24)
	s.Shows(aKey)
	s.Shows("+line 002")
	s.Press(screentest.PageUp + screentest.PageUp)
	s.Hides("+line 002")
	s.Press("y")
	s.Shows("all of the call is shown now; y again allows it")
	s.Shows("+line 002")
	r.silent(t)
	s.Press(screentest.PageUp + screentest.PageUp)
	s.Hides("+line 002")
	s.Press("y") // it was read; what follows is seen
	if got := r.heard(t); got != "wf#2=allow d1" {
		t.Errorf("answered %q", got)
	}
	s.Shows("+line 002")
}

// What a person writes when a call appears is a text, not its answer.
func TestALetterOfATextIsNoAnswer(t *testing.T) {
	r := newRoom()
	talk(r)
	s := show(t, r, 80, 24)
	s.Shows("your turn")
	s.Press("wh")
	s.Shows("> wh")
	asksForEdit(r, 3, true)
	s.Shows(aKey)
	s.Press("y?")
	s.Shows("> why?")
}

// Lines wider than the screen are broken, and nothing of them is missing.
func TestAWideEditIsWhole(t *testing.T) {
	r := newRoom()
	talk(r)
	wide := strings.Repeat("漢字", 30) + "END"
	r.happen("wf#2", protocol.EvToolCall, obj{"call": "c", "name": "write_file", "args": fmt.Sprintf(`{"path":"x","content":"a\n%s\u001b[2J"}`, wide)})
	s := show(t, r, 40, 24)
	now := s.Shows("END")
	if n := strings.Count(strings.ReplaceAll(now, " ", ""), "漢"); n != 30 {
		t.Errorf("%d of 30 letters:\n%s", n, now)
	}
	s.Shows("$ write_file(path=x)")
}
