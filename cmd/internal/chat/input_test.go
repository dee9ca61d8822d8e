package chat_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"wf/api"
	"wf/cmd/internal/chat"
	"wf/cmd/internal/screentest"
	"wf/protocol"
)

const (
	pasteBegins = "\x1b[200~"
	pasteEnds   = "\x1b[201~"
)

// A long text is one line of the box, and is said whole.
func TestAMegabyteIsPasted(t *testing.T) {
	r := newRoom()
	talk(r)
	s := show(t, r, 80, 24)
	s.Shows("your turn")
	var b strings.Builder
	for i := range 23_000 {
		fmt.Fprintf(&b, "line %06d of a text that is pasted as a whole\n", i)
	}
	text := strings.TrimSuffix(b.String(), "\n")
	s.Press("look: " + pasteBegins + strings.ReplaceAll(text, "\n", "\r") + pasteEnds + " <- this")
	s.Shows(fmt.Sprintf("> look: [pasted 1: 23000 lines, %d bytes] <- this", len(text)))
	s.Press("\r") // an agent reads only so much of it
	s.Shows("an agent reads the first 32768 of these")
	s.Shows(fmt.Sprintf("> look: [pasted 1: 23000 lines, %d bytes] <- this", len(text)))
	s.Press("\r")
	if got := r.heard(t); got != "you#2: look: "+text+" <- this" {
		t.Errorf("said %d bytes, want %d", len(got), len(text))
	}
	s.Press(screentest.Up)
	s.Shows("[pasted 1: 23000 lines")
	s.Press("\r")
	s.Shows("an agent reads the first 32768 of these")
	s.Press("\r")
	if got := r.heard(t); !strings.HasSuffix(got, text+" <- this") {
		t.Error("the line from the history lost what was pasted")
	}
	if kept := s.app.History(); len(kept) != 0 {
		t.Errorf("the history keeps words that stand for nothing: %q", kept)
	}
}

// As much as an agent reads is sent at once.
func TestAMessageOfTheGreatestLengthIsSent(t *testing.T) {
	r := newRoom()
	talk(r)
	s := show(t, r, 80, 24)
	s.Shows("your turn")
	for i, n := range []int{protocol.EdgePromptMax - 1, protocol.EdgePromptMax} {
		s.Press(pasteBegins + strings.Repeat("x", n) + pasteEnds)
		s.Shows(fmt.Sprintf("[pasted %d: 1 lines, %d bytes]", i+1, n))
		s.Press("\r")
		if got := r.heard(t); len(got) != len("you#2: ")+n {
			t.Errorf("said %d bytes of %d", len(got), n)
		}
	}
}

func TestALineThatCouldNotBeSaidComesBack(t *testing.T) {
	r := newRoom()
	talk(r)
	s := show(t, r, 80, 24)
	s.Shows("your turn")
	r.mu.Lock()
	r.deaf = errors.New("the daemon is gone")
	r.mu.Unlock()
	s.Press("a line of some worth\r")
	s.Shows("the daemon is gone")
	s.Shows("> a line of some worth")
}

func TestAChoiceIsPickedByArrows(t *testing.T) {
	r := newRoom()
	talk(r)
	r.happen("you#2", protocol.EvAnswered, obj{"text": "go"})
	r.happen("gate#1", protocol.EvWaiting, obj{"kind": "choice", "question": "Publish?", "choices": []obj{{"label": "Yes, now", "value": "yes", "primary": true}, {"label": "No", "value": "no"}}})
	s := show(t, r, 80, 24)
	s.Shows(" 2  No")
	s.Press("\r" + screentest.Down) // nothing is picked yet
	s.Shows("> 1  Yes, now")
	s.Press(screentest.Down)
	s.Shows("> 2  No")
	s.Press("\r")
	if got := r.heard(t); got != "gate#1=no" {
		t.Errorf("chose %q", got)
	}
	s.Hides("> 2  No")
	s.Press(screentest.Up)
	s.Shows("> 2  No")
	r.happen("gate#1", protocol.EvAnswered, obj{"choice": "no"}) // by somebody else
	r.happen("gate#2", protocol.EvWaiting, obj{"kind": "choice", "question": "Tag it?", "choices": []obj{{"label": "Tag", "value": "t"}, {"label": "Leave", "value": "l"}}})
	if now := s.Shows("2  Leave"); strings.Contains(now, "> 2") {
		t.Errorf("what was picked of one question is picked of the next:\n%s", now)
	}
}

func TestAFormIsFilledIn(t *testing.T) {
	r := newRoom()
	talk(r)
	r.happen("you#2", protocol.EvAnswered, obj{"text": "go"})
	r.happen("form#1", protocol.EvWaiting, obj{"kind": "question", "question": "Who?", "form": `{"type":"object","required":["name"],"properties":{"age":{"type":"integer"},"name":{"type":"string"},"size":{"enum":["s","m"]}}}`})
	s := show(t, r, 80, 24)
	s.Shows("name  [age=integer]  [size=s|m]")
	for line, want := range map[string]string{
		"Ada":                                    `{"name":"Ada"}`,
		"name=7" + screentest.Esc + "\rage = 36": `{"age":36,"name":"7"}`,
		"name=Al" + screentest.Esc + "\rsize=m":  `{"name":"Al","size":"m"}`,
	} {
		s.Press(line + "\r")
		if got := r.heard(t); got != "form#1 "+want {
			t.Errorf("%q: %s, want %s", line, got, want)
		}
	}
	s.Press("name=Ada" + screentest.Esc + "\rheight=3\r")
	s.Shows("is none of the fields")
}

func TestAFormWithChoicesTakesBoth(t *testing.T) {
	r := newRoom()
	talk(r)
	r.happen("you#2", protocol.EvAnswered, obj{"text": "go"})
	r.happen("gate#1", protocol.EvWaiting, obj{"kind": "choice", "question": "Publish?", "choices": []obj{{"label": "Yes, now", "value": "yes"}, {"label": "No", "value": "no"}},
		"form": `{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"age":{"type":"integer"},"size":{"enum":["s","m"],"default":"m"}}}`})
	s := show(t, r, 80, 24)
	s.Shows("name  [age=integer]")
	s.Shows(" 2  No")
	for _, c := range []struct{ keys, want string }{
		{screentest.Down + screentest.Down + "Ada\r", `gate#1=no {"name":"Ada","size":"m"}`},
		{screentest.Up + screentest.Up + "1" + screentest.Esc + "\rname=Ada" + screentest.Esc + "\rage=36\r", `gate#1=yes {"age":36,"name":"Ada","size":"m"}`},
	} {
		s.Press(c.keys)
		if got := r.heard(t); got != c.want {
			t.Errorf("%q: %s, want %s", c.keys, got, c.want)
		}
	}
	s.Press("name=Ada\r")
	s.Shows("pick one too")
	s.Shows("> name=Ada")
	s.Press("\x03" + screentest.Down + "\r")
	s.Shows("name is required too")
}

func TestCommandsAreCompleted(t *testing.T) {
	r := newRoom()
	talk(r)
	s := show(t, r, 80, 24)
	s.Shows("your turn")
	s.Press("/co")
	s.Shows("/compact               summarise the conversation now")
	s.Shows("/cost                  tokens and cost")
	s.Press("s\t")
	s.Hides("/compact")
	s.Press("\r")
	if got := r.heard(t); got != "/cost " {
		t.Errorf("did %q", got)
	}
}

func TestABlankSessionSaysHowToBegin(t *testing.T) {
	r := newRoom()
	r.info.Model, r.info.Dir = "local/tiny", "/home/ada/project"
	r.happen("", protocol.EvRunStarted, obj{"title": "talk"})
	r.happen("you#1", protocol.EvWaiting, obj{"kind": "question", "question": ""})
	s := show(t, r, 80, 24)
	now := s.Shows("Say what you want.")
	if !strings.Contains(now, "  model  local/tiny") || !strings.Contains(now, "  in     /home/ada/project") {
		t.Errorf("the screen is\n%s", now)
	}
	r.happen("you#1", protocol.EvAnswered, obj{"text": "hello"})
	s.Hides("Say what you want.")
}

// What is said in pieces may be cut anywhere.
func TestLiveTextIsHarmlessWhereverItIsCut(t *testing.T) {
	r := newRoom()
	talk(r)
	s := show(t, r, 80, 40)
	s.Shows("your turn")
	r.happen("wf#2", protocol.EvStepStarted, obj{"role": "wf"})
	for _, piece := range []string{"one \x1b", "[31", "mtwo\x1b]0;ow", "ned\x07 th", "ree **fo", "ur** 👩\u200d", "👩 five"} {
		r.live("wf#2", "text", piece)
	}
	s.Shows("wf one two three four 👩👩 five")
}

// A line that does not end comes in pieces too, and no letter of it is lost.
func TestALineWithoutAnEndComesWhole(t *testing.T) {
	r := newRoom()
	talk(r)
	a := chat.New(t.Context(), r, nil)
	a.Resize(80, 24)
	settle(a, a.Init())
	const letters = 3 * 64 << 10
	for i := range letters / 1000 {
		text := strings.Repeat("é", 1000)
		for _, piece := range []string{text[:999], text[999:]} { // half a letter
			a.Take(api.Update{Step: "wf#2", Data: protocol.Delta{Kind: "text", Text: piece}})
			if i%10 == 0 {
				if now := a.Screen(); piece == text[999:] && strings.Contains(now, "\uFFFD") {
					t.Fatalf("half a letter is there:\n%s", now)
				}
			}
		}
	}
	n := 0
	for range letters/1500 + 10 {
		a.Press("pgup")
		_ = a.Screen()
	}
	for _, l := range a.Lines() {
		n += strings.Count(l, "é")
	}
	if n != letters/1000*1000 {
		t.Errorf("%d letters of %d", n, letters/1000*1000)
	}
}

// What came of one answer live does not show up again in the next.
func TestADeltaThatIsLateIsOfTheNextAnswer(t *testing.T) {
	var tr chat.Transcript
	tr.Apply(event(1, "wf#1", protocol.PromptSent{}))
	tr.Live("wf#1", protocol.Delta{Kind: "text", Text: "half"})
	tr.Apply(event(2, "wf#1", protocol.TextSaid{Content: protocol.NewText("half and half")}))
	tr.Apply(event(3, "wf#1", protocol.StepCompleted{}))
	if len(tr.Items) != 1 || tr.Items[0].Text != "half and half" {
		t.Errorf("%d items, the first is %+v", len(tr.Items), tr.Items[0])
	}
}

func TestWhatIsSaidAfterAnInterruptionMakesTheRunGoOn(t *testing.T) {
	r, s := atWork(t)
	for _, suspended := range []struct {
		reason protocol.SuspendReason
		heard  []string
	}{{protocol.ByInterrupt, []string{": wait", "/resume "}}, {protocol.ByLimit, []string{": wait"}}} {
		r.happen("", protocol.EvSuspended, obj{"reason": suspended.reason, "detail": "context canceled"})
		s.Shows("/resume goes on")
		s.Press("wait\r")
		for _, want := range suspended.heard {
			if got := r.heard(t); got != want {
				t.Errorf("after %s: %q, want %q", suspended.reason, got, want)
			}
		}
		r.happen("", protocol.EvResumed, obj{})
		s.Shows("Esc stops")
	}
}

func TestARunThatNoProcessDrivesIsNotShownAsRunning(t *testing.T) {
	r, s := atWork(t)
	r.driven(false)
	s.Shows("no process drives it · /resume goes on")
	s.Press("hello?\r")
	if got := r.heard(t); got != ": hello?" {
		t.Errorf("heard %q", got)
	}
	r.driven(true)
	s.Shows("Esc stops")
}

// The box shows the place where a person writes, whatever the words are and however the screen changes.
func TestTheBoxShowsWhereOneWrites(t *testing.T) {
	for _, text := range []string{strings.Repeat("漢字テキスト ", 12), strings.Repeat("averylongwordindeed ", 10), "see /a/very/long/path/" + strings.Repeat("of/many/parts/", 9), strings.Repeat("x", 200), strings.Repeat("ab\x1b\r", 6)} {
		r := newRoom()
		talk(r)
		s := show(t, r, 80, 30)
		s.Shows("your turn")
		s.Press(text + "#END")
		s.Shows("#END")
		for _, width := range []int{40, 33, 27, 61, 80} {
			s.Resize(width, 30)
			now := s.Shows("#END")
			begin := text[:3]
			if !strings.HasPrefix(text, "ab") && !strings.Contains(now, "> "+begin) && strings.Count(now, "\n  ") < 8 {
				t.Errorf("at %d the beginning is hidden, though there is room:\n%s", width, now)
			}
		}
	}
}
