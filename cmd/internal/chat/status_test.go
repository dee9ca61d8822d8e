package chat_test

import (
	"fmt"
	"strings"
	"testing"

	"wf/api"
	"wf/cmd/internal/chat"
	"wf/cmd/internal/plain"
	"wf/protocol"
)

// statusOf is the last line of a screen.
func statusOf(screen string) string {
	lines := strings.Split(strings.TrimRight(screen, "\n"), "\n")
	return lines[len(lines)-1]
}

// The status line says what the chat is at, on whatever screen: first its state, then what it cost, the context, the model.
func TestTheStatusLine(t *testing.T) {
	type step struct {
		do   func(r *room)
		want string
	}
	waiting := func(*room) {}
	works := func(r *room) {
		r.happen("you#2", protocol.EvAnswered, obj{"text": "go"})
		r.happen("wf#2", protocol.EvStepStarted, obj{"role": "wf"})
	}
	dead := func(r *room) { works(r); r.driven(false) }
	away := func(r *room) {
		works(r)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.tell(api.Update{Away: "no route"})
	}
	stopped := func(r *room) {
		works(r)
		r.happen("", protocol.EvSuspended, obj{"reason": "interrupt", "detail": "by ada"})
	}
	for width, steps := range map[int][]step{
		100: {{waiting, " 100.0 t/s ctx 10% (28800 tok left) (turns: 1) your turn $0.12 · local/tiny"},
			{works, " 100.0 t/s ctx 10% (28800 tok left) (turns: 1) ⠋ working · Esc stops $0.12 · local/tiny"},
			{dead, " ctx 10% (28800 tok left) (turns: 1) no process drives it · /resume goes on $0.12 · local/tiny"},
			{away, " ctx 10% (28800 tok left) (turns: 1) not connected · last seen running $0.12 · local/tiny"}},
		80: {{waiting, " 100.0 t/s ctx 10% (28800 tok left) (turns: 1) your turn $0.12 · local/tiny"},
			{dead, " ctx 3.2K/32K 10% no process drives it · /resume goes on $0.12 · local/tiny"},
			{stopped, " ctx 3.2K/32K 10% (turns: 1) stopped · /resume goes on $0.12 · local/tiny"}},
		40: {{waiting, " ctx 10% your turn $0.12 · local/tiny"},
			{works, " ctx 10% ⠋ working · Esc stops $0.12"},
			{dead, " no process drives it · /resume goes on"},
			{away, " not connected · last seen running"},
			{stopped, " stopped · /resume goes on $0.12"}},
		20: {{waiting, " your turn $0.12"}, {dead, " no process drives …"}},
	} {
		for i, x := range steps {
			r := newRoom()
			r.spent = "$0.12"
			talk(r)
			s := show(t, r, width, 24)
			s.Shows("letter.")
			x.do(r)
			last := ""
			s.Until(fmt.Sprintf("%d/%d %q", width, i, x.want), func(now string) bool {
				last = strings.Join(strings.Fields(statusOf(now)), " ")
				for _, sign := range "⠙⠹⠸⠼⠴⠦⠧⠇⠏" {
					last = strings.ReplaceAll(last, string(sign), "⠋")
				}
				return last == strings.TrimSpace(x.want)
			})
		}
	}
}

// What a run cost is asked anew when a call has ended, and a price that is not known is not a price of nothing.
func TestTheCostGrows(t *testing.T) {
	r := newRoom()
	r.spent = chat.Unpriced
	talk(r)
	s := show(t, r, 80, 24)
	s.Shows("unpriced · local/tiny")
	r.mu.Lock()
	r.spent = "$0.5\x1b[2J"
	r.mu.Unlock()
	r.happen("wf#2", protocol.EvUsage, obj{"model": "local/tiny", "input": 5000, "output": 200})
	s.Shows("$0.5 · local/tiny")
	r.happen("", protocol.EvForked, obj{})
	r.mu.Lock()
	r.info.Model = "a/other"
	r.mu.Unlock()
	s.Shows("forked here")
}

// Ctrl+C stops the agent, and leaves when it is pressed again.
func TestCtrlCStopsAndThenLeaves(t *testing.T) {
	r, s := atWork(t)
	s.Press("\x03")
	if got := r.heard(t); got != "/interrupt " {
		t.Errorf("did %q", got)
	}
	s.Shows("Ctrl+C again leaves")
	s.Press("\x03")
	if err := s.Ended(); err != nil || s.app.Err() != nil {
		t.Error(err, s.app.Err())
	}
}

// What an agent says after it was interrupted stands behind what a person said meanwhile.
func TestARedirectionStandsBeforeItsAnswer(t *testing.T) {
	r := newRoom()
	talk(r)
	r.happen("you#2", protocol.EvAnswered, obj{"text": "go"})
	s := show(t, r, 80, 40)
	r.happen("wf#2", protocol.EvStepStarted, obj{"role": "wf"})
	r.live("wf#2", "text", "Half of it")
	s.Shows("Half of it")
	r.happen("wf#2", protocol.EvToolCall, obj{"call": "9", "name": "shell", "args": `{"command":"make"}`})
	r.happen("", protocol.EvSuspended, obj{"reason": "interrupt", "detail": "by ada"})
	r.happen("", protocol.EvMessage, obj{"source": "ada", "text": "only to ten"})
	s.Shows("stopped; what it did by then is not known")
	r.happen("", protocol.EvResumed, obj{})
	r.happen("wf#2", protocol.EvText, obj{"content": "To ten, then."})
	now := s.Shows("To ten, then.")
	at := -1
	for _, text := range []string{"Half of it", "suspended (interrupt)", "only to ten", "To ten, then."} {
		i := strings.Index(now, text)
		if i < at {
			t.Errorf("%q stands before what was said earlier:\n%s", text, now)
		}
		at = i
	}
}

// Of a long answer all lines are read on the way up, each once, and none is wider than the screen, whatever its letters,
// and however the screen changes on the way.
func TestALongAnswerIsReadFromEndToBeginning(t *testing.T) {
	const n = 6000
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "- %05d 漢字かな 👩‍👩‍👧 **bold** `code`\n", i)
	}
	r := newRoom()
	talk(r)
	r.happen("wf#2", protocol.EvText, obj{"content": b.String()})
	a := chat.New(t.Context(), r, nil)
	press := func(key string) { a.Press(key) }
	a.Resize(80, 24)
	settle(a, a.Init())
	next, width := n-1, 80
	for range n {
		view := a.Screen()
		lowest := n
		for _, l := range strings.Split(view, "\n") {
			if plain.Width(l) > width {
				t.Fatalf("%d cells: %q", plain.Width(l), l)
			}
			var i int
			if _, err := fmt.Sscanf(strings.TrimLeft(strings.TrimPrefix(l, "wf "), " •"), "%05d", &i); err == nil && strings.Contains(l, "漢") {
				lowest = min(lowest, i)
			}
		}
		if lowest > next+1 {
			t.Fatalf("the lines %d to %d are missing", next+1, lowest-1)
		}
		next = min(next, lowest-1)
		if next < 0 {
			break
		}
		if next < n/2 && width == 80 {
			width = 40
			a.Resize(width, 12)
		}
		press("pgup")
	}
	if next >= 0 {
		t.Errorf("the lines up to %d are never there", next)
	}
	press("end")
	if now := a.Screen(); !strings.Contains(now, fmt.Sprintf("%05d", n-1)) {
		t.Errorf("the end is not there:\n%s", now)
	}
}

// What a command has to say is whole, up to a quarter of the screen; of more the end is marked as missing.
func TestALongWordOfACommandIsWhole(t *testing.T) {
	for words, whole := range map[int]bool{10: true, 60: true, 66: true, 67: false, 200: false} {
		r := newRoom()
		talk(r)
		r.command = func(chat.Command) (chat.Outcome, error) {
			return chat.Outcome{Text: strings.Repeat("0123456 ", words-1) + "the end"}, nil
		}
		s := show(t, r, 90, 24) // 11 words on a line
		s.Shows("your turn")
		s.Press("/compact\r")
		now := s.Shows("0123456")
		above, _, _ := strings.Cut(now, "───")
		if strings.Contains(now, "the end") != whole || strings.HasSuffix(strings.TrimSpace(above), "…") == whole {
			t.Errorf("of %d words\n%s", words, now)
		}
	}
}

// While an answer grows, the window stays where the person looks.
func TestTheWindowStaysWhileAnAnswerGrows(t *testing.T) {
	r := newRoom()
	talk(r)
	a := chat.New(t.Context(), r, nil)
	a.Resize(80, 24)
	settle(a, a.Init())
	say := func(i int) {
		a.Take(api.Update{Step: "wf#2", Data: protocol.Delta{Kind: "text", Text: fmt.Sprintf("word %05d\n", i)}})
	}
	for i := range 5000 {
		say(i)
	}
	for range 40 {
		_ = a.Screen()
		a.Press("pgup")
	}
	body := func() string {
		lines := strings.Split(a.Screen(), "\n")
		return strings.Join(lines[:20], "\n")
	}
	before := body()
	for i := range 3000 {
		say(5000 + i)
		if now := body(); i%300 == 0 && now != before {
			t.Fatalf("after %d lines more it shows\n%s\nbefore\n%s", i, now, before)
		}
	}
	a.Take(event(3000, "wf#2", protocol.StepCompleted{}))
	if now := body(); now != before {
		t.Errorf("it shows\n%s\nbefore\n%s", now, before)
	}
	a.Press("pgdown")
	if body() == before {
		t.Error("PageDown does nothing")
	}
}
