package chat_test

import (
	"slices"
	"strings"
	"testing"

	"wf/api"
	"wf/cmd/internal/chat"
	"wf/cmd/internal/screentest"
	"wf/protocol"
)

type obj = map[string]any

// talk is one turn of a person and an agent with a tool.
func talk(r *room) {
	r.happen("", protocol.EvRunStarted, obj{"title": "talk"})
	r.happen("you#1", protocol.EvStepStarted, obj{"role": "you"})
	r.happen("you#1", protocol.EvWaiting, obj{"kind": "question", "question": ""})
	r.happen("you#1", protocol.EvAnswered, obj{"source": "chat", "text": "What is in this directory?"})
	r.happen("you#1", protocol.EvStepCompleted, obj{})
	r.happen("wf#1", protocol.EvStepStarted, obj{"role": "wf"})
	r.happen("wf#1", protocol.EvPrompt, obj{"model": "local/tiny"})
	r.happen("wf#1", protocol.EvThinking, obj{"content": "I should look.\nThen tell."})
	r.happen("wf#1", protocol.EvToolCall, obj{"call": "1", "name": "list_files", "args": `{"path":".","all":true}`})
	r.happen("wf#1", protocol.EvToolResult, obj{"call": "1", "content": strings.Join(strings.Split("abcdefghijklm", ""), "\n")})
	r.happen("wf#1", protocol.EvUsage, obj{"model": "local/tiny", "input": 3000, "output": 200, "ttfe_ms": 100, "total_ms": 2100})
	r.happen("wf#1", protocol.EvText, obj{"content": "---\nstatus: done\n---\nThirteen files, one for each letter."})
	r.happen("wf#1", protocol.EvStepCompleted, obj{})
	r.happen("you#2", protocol.EvStepStarted, obj{"role": "you"})
	r.happen("you#2", protocol.EvWaiting, obj{"kind": "question", "question": ""})
}

func TestB12TheScreenOfAConversation(t *testing.T) {
	r := newRoom()
	talk(r)
	s := show(t, r, 80, 24)
	s.Shows("Thirteen files")
	got := s.Shows("your turn")
	want := `· talk

you What is in this directory?

wf ▸ thinking, 2 lines (/t)

$ list_files(path=., all=true)
  a
  b
  c
  d
  e
  f
  g
  h
  i
  j
  … 3 more lines (Ctrl+O)

wf Thirteen files, one for each letter.

────────────────────────────────────────────────────────────────────────────────
> Write, or /help
 100.0 t/s ctx 10% (28800 tok left) (turns: 1) your turn             local/tiny
`
	if got != want {
		t.Errorf("the screen is\n%s", got)
	}
}

func TestB12ThinkingUnfoldsAndFolds(t *testing.T) {
	r := newRoom()
	talk(r)
	s := show(t, r, 80, 30)
	s.Shows("Thirteen")
	s.Press("/t\r")
	s.Shows("I should look.")
	s.Press("/think\r")
	s.Hides("I should look.")
}

func TestB12CommandsReachTheSession(t *testing.T) {
	r := newRoom()
	talk(r)
	s := show(t, r, 80, 24)
	s.Shows("Thirteen")
	for line, want := range map[string]string{"/cp": "/compact ", "/compact": "/compact ", "/dump out.json": "/dump out.json", "/fork wf#1": "/fork wf#1",
		"/cost": "/cost ", "$": "/cost ", "/usage": "/cost ", "/memory go": "/memory go", "/model x/y": "/model x/y", "/reset": "/reset "} {
		if line == "$" {
			s.Press("$")
		} else {
			s.Press(line + "\r")
		}
		if got := r.heard(t); got != want {
			t.Errorf("%s: %q", line, got)
		}
	}
	s.Press("/nonsense\r")
	s.Shows("/nonsense is no command")
	s.Press("/h\r")
	s.Shows("Alt+Enter")
	s.Press("q")
	s.Shows("Thirteen")
	s.Press("/c\r")
	s.Hides("Thirteen")
	s.Press(screentest.PageUp)
	s.Shows("Thirteen")
}

func TestALineAnswersAndASecondOneIsOnItsWayUp(t *testing.T) {
	r := newRoom()
	talk(r)
	s := show(t, r, 80, 24)
	s.Press("first line" + screentest.Esc + "\r" + "second line\r") // Alt+Enter
	if got := r.heard(t); got != "you#2: first line\nsecond line" {
		t.Errorf("said %q", got)
	}
	s.Press("//etc is a path\r")
	if got := r.heard(t); got != "you#2: /etc is a path" {
		t.Errorf("said %q", got)
	}
	s.Press(screentest.Up)
	s.Shows("//etc is a path")
	s.Press("\r")
	if got := r.heard(t); got != "you#2: /etc is a path" {
		t.Errorf("said %q again", got)
	}
	s.Press("\x1b[200~pasted\ntwo lines\x1b[201~")
	s.Shows("two lines")
	s.Press("\r")
	if got := r.heard(t); got != "you#2: pasted\ntwo lines" {
		t.Errorf("pasted %q", got)
	}
}

func TestChoicesAreNumbered(t *testing.T) {
	r := newRoom()
	talk(r)
	r.happen("you#2", protocol.EvAnswered, obj{"text": "go"})
	r.happen("gate#1", protocol.EvWaiting, obj{"kind": "choice", "question": "Publish?", "choices": []obj{{"label": "Yes, now", "value": "yes", "primary": true}, {"label": "No", "value": "no"}}})
	s := show(t, r, 80, 24)
	s.Shows(" 2  No")
	s.Press("maybe\r")
	s.Shows("pick one by its number or name")
	s.Press("2\r")
	if got := r.heard(t); got != "gate#1=no" {
		t.Errorf("chose %q", got)
	}
}

func TestLiveOutputGivesWayToTheJournal(t *testing.T) {
	r := newRoom()
	talk(r)
	s := show(t, r, 80, 40)
	s.Shows("your turn")
	r.happen("you#2", protocol.EvAnswered, obj{"text": "more", "source": "bluesky"})
	s.Shows("bluesky more")
	r.happen("wf#2", protocol.EvStepStarted, obj{"role": "wf"})
	r.live("wf#2", "thinking", "hmm")
	s.Shows("thinking, 1 line (")
	r.live("wf#2", "text", "Half a sen")
	s.Shows("Half a sen")
	r.happen("wf#2", protocol.EvText, obj{"content": "Half a sentence, whole."})
	s.Shows("Half a sentence, whole.")
	s.Hides("Half a senHalf")
	r.happen("wf#2", protocol.EvToolCall, obj{"call": "9", "name": "shell", "args": `{"command":"make"}`})
	s.Shows("running…")
	r.live("wf#2", "stdout", "cc -c x.c\n")
	s.Shows("cc -c x.c")
	r.happen("wf#2", protocol.EvToolResult, obj{"call": "9", "content": "exit 2", "is_error": true})
	s.Shows("exit 2")
}

// What an agent left on which programs of the user act stands below the call.
func TestWhatAppearedIsShown(t *testing.T) {
	r := newRoom()
	r.happen("", protocol.EvRunStarted, obj{"title": "talk"})
	r.happen("wf#1", protocol.EvStepStarted, obj{"role": "wf"})
	r.happen("wf#1", protocol.EvToolCall, obj{"call": "1", "name": "shell", "args": `{"command":"git init sub"}`})
	r.happen("wf#1", protocol.EvToolResult, obj{"call": "1", "content": "exit code: 0", "appeared": obj{"found": []obj{{"kind": "repository", "path": "sub/\x1b[2J"}}}})
	s := show(t, r, 120, 24)
	s.Shows("wf#1: made a git repository in sub/")
	s.Shows("wf does not act on it; your git may")
	r.happen("test#1", protocol.EvSandbox, obj{"tier": "x", "appeared": obj{"found": []obj{{"kind": "store", "path": "sub/"}}}})
	s.Shows("test#1: made a .wf in sub/")
}

func TestB09OlderPagesComeWithoutGapOrDuplicate(t *testing.T) {
	r := newRoom()
	r.happen("", protocol.EvRunStarted, obj{"title": "long"})
	const n = 700
	for i := range n {
		r.happen("you#1", protocol.EvAnswered, obj{"text": "line " + strings.Repeat("0", 3-len(itoa(i))) + itoa(i) + "."})
	}
	s := show(t, r, 80, 24)
	s.Shows("line 699.")
	seen := map[string]bool{}
	note := func(now string) (first string) {
		for _, l := range slices.Backward(strings.Split(now, "\n")) {
			if text, ok := strings.CutPrefix(l, "you "); ok {
				seen[text], first = true, text
			}
		}
		return first
	}
	for first := note(s.String()); first > "line 000."; {
		s.Press(screentest.PageUp)
		first = note(s.Until("older lines", func(now string) bool {
			at := strings.Index(now, "you line ")
			return at >= 0 && now[at+len("you "):] < first && !strings.Contains(now, "reading older")
		}))
	}
	s.Press(screentest.PageUp)
	s.Shows("· long")
	note(s.String())
	if len(seen) != n {
		t.Errorf("%d lines were seen on the way up, want %d", len(seen), n)
	}
	if r.pages < 4 {
		t.Errorf("%d pages were read: all at once is no paging", r.pages)
	}
}

func TestB09TwoScreensOfOneSessionPageOnTheirOwn(t *testing.T) {
	r := newRoom()
	r.happen("", protocol.EvRunStarted, obj{"title": "long"})
	for i := range 400 {
		r.happen("you#1", protocol.EvAnswered, obj{"text": "line " + itoa(i) + "."})
	}
	r.happen("wf#1", protocol.EvPrompt, obj{"model": "m"})
	r.happen("wf#1", protocol.EvUsage, obj{"model": "m", "input": 16000, "output": 0})
	one, two := show(t, r, 80, 24), show(t, r, 100, 30)
	for _, s := range []*screen{one, two} { // the newest lines and the metrics, as soon as it is there
		s.Shows("line 399.")
		s.Shows("ctx 50% (16000 tok left)")
	}
	for range 20 {
		before := one.String()
		one.Press(screentest.PageUp)
		one.Until("other lines", func(now string) bool { return now != before })
	}
	two.Shows("line 399.")
	one.Hides("line 399.")
	r.happen("wf#1", protocol.EvStepStarted, obj{"role": "wf"})
	r.live("wf#1", "text", "said to both")
	two.Shows("said to both")
	one.Press(screentest.End)
	one.Shows("said to both")
}

func itoa(i int) string {
	s := ""
	for ; i > 0 || s == ""; i /= 10 {
		s = string(rune('0'+i%10)) + s
	}
	return s
}

func TestNothingThatWasSaidReachesTheTerminalAsACommand(t *testing.T) {
	r := newRoom()
	talk(r)
	r.happen("wf#2", protocol.EvText, obj{"content": "red \x1b[31mtext\x1b[0m, a title \x1b]0;owned\x07, a bell\x07, back\rspace, \u202eturned\u202c, \xff"})
	r.happen("wf#2", protocol.EvToolCall, obj{"call": "7", "name": "sh\x1b[2Jell", "args": "{\"x\":\"\x1b[2J\"}"})
	s := show(t, r, 80, 40)
	now := s.Shows("red text, a title , a bell, back")
	if !strings.Contains(now, "$ shell(") || !strings.Contains(now, "Thirteen files") {
		t.Errorf("the screen is\n%s", now)
	}
}

func TestTheSmallestScreenAndResizing(t *testing.T) {
	r := newRoom()
	talk(r)
	s := show(t, r, 20, 5)
	if now := s.Shows("letter."); strings.Count(now, "\n") != 5 {
		t.Errorf("the screen is\n%s", now)
	}
	for _, size := range [][2]int{{1, 1}, {3, 2}, {200, 60}, {20, 5}} {
		s.Resize(size[0], size[1])
	}
	s.Shows("letter.")
}

func TestTheScreenGoesOverToAFork(t *testing.T) {
	r := newRoom()
	talk(r)
	r.command = func(c chat.Command) (chat.Outcome, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.info.Run, r.events, r.follow = "RUN2", r.events[:3], nil
		return chat.Outcome{Moved: true}, nil
	}
	s := show(t, r, 80, 24)
	s.Shows("Thirteen")
	s.Press("/fork\r")
	<-r.joined
	s.Hides("Thirteen")
	s.Shows("now run RUN2")
}

func TestAHeadThatMovedTakesTheLinesAway(t *testing.T) {
	r := newRoom()
	talk(r)
	s := show(t, r, 80, 24)
	s.Shows("Thirteen")
	common := protocol.Seq(10)
	r.mu.Lock()
	r.tell(api.Update{Reset: &common})
	r.mu.Unlock()
	s.Hides("Thirteen")
	s.Shows("the history changed after event 10")
	r.mu.Lock()
	r.tell(api.Update{Away: "no route", Remark: "no route; it is tried again"})
	r.mu.Unlock()
	s.Shows("⚠ not connected: no route")
}

func TestCtrlCTwiceLeaves(t *testing.T) {
	r := newRoom()
	talk(r)
	s := show(t, r, 80, 24)
	s.Press("half a line\x03")
	s.Shows("Write, or /help")
	s.Press("\x03")
	s.Shows("Ctrl+C again leaves")
	s.Press("\x03")
	if err := s.Ended(); err != nil || s.app.Err() != nil {
		t.Error(err, s.app.Err())
	}
}

// The answer to a tool call is for the call that was on the screen; none is the default, and a denial
// has its reason.
func TestAToolCallIsAnsweredAsItWasShown(t *testing.T) {
	r := newRoom()
	talk(r)
	r.happen("you#2", protocol.EvAnswered, obj{"text": "go"})
	r.happen("wf#2", protocol.EvWaiting, obj{"kind": "approval", "question": "wf#2 wants to call shell:\n\nrm -rf build", "call": "c", "shown": "d1",
		"choices": []obj{{"label": "Allow once", "value": "allow"}, {"label": "Deny", "value": "deny"}}})
	s := show(t, r, 80, 24)
	now := s.Shows("a key, or ↑↓ and Enter:")
	if !strings.Contains(now, "rm -rf build") || !strings.Contains(now, "  y  Allow once\n  n  Deny\n") {
		t.Errorf("the screen is\n%s", now)
	}
	s.Press("\r")
	s.Press("1 but only once\r")
	s.Shows("the call is to be answered first")
	s.Shows("> 1 but only once")
	s.Press("\x03deny: use the test database\r")
	if got := r.heard(t); got != "wf#2=deny d1 use the test database" {
		t.Errorf("answered %q", got)
	}
	s.Press("1\r")
	if got := r.heard(t); got != "wf#2=allow d1" {
		t.Errorf("answered %q", got)
	}
}
