package tui_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"wf/api"
	"wf/cmd/internal/render"
	"wf/cmd/internal/screentest"
	"wf/cmd/internal/tui"
	"wf/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, screentest.LeftBehind) }

// shelf is a source of two runs.
type shelf struct {
	mu       sync.Mutex
	runs     []*api.Run
	moved    map[protocol.RunID]func()
	answered chan string // what was asked for, and answers
	refuses  error
	part     int          // runs in a part of the list; 0 is all
	events   protocol.Seq // of every run, in parts of 100; 0 is a page without parts
	asked    []string
	items    int           // of every fan-out
	early    chan struct{} // before earlier steps are read; nil is at once
	slow     chan struct{} // before it is told what would be deleted; nil is at once
}

// cid is a CID whose short form is given.
func cid(short string) *string { return new("bafyrei" + short + strings.Repeat("a", 44)) }

func newShelf() *shelf {
	return &shelf{moved: map[protocol.RunID]func(){}, answered: make(chan string, 4), runs: []*api.Run{
		{ID: "AAAA", Workflow: "fix-bug", Info: api.RunInfo{Title: "repair the parser"}, Status: protocol.Done, Steps: []*api.Step{
			{ID: "test#1", Status: "ok", CID: cid("abcdefgh")}, {ID: "coder#1", Status: "ok", CID: cid("bcdefghi"), EdgePrompt: "The tests fail"},
			{ID: "coder#2", Status: "ok", CID: cid("cdefghij"), Resumes: cid("bcdefghi")}}},
		{ID: "BBBB", Workflow: "gate", Info: api.RunInfo{Title: "publish"}, Status: protocol.Waiting,
			Steps:   []*api.Step{{ID: "editor#1", Status: "waiting"}},
			Waiting: []api.Waiting{{Step: "editor#1", Question: "Publish this?", Choices: []protocol.Choice{{Label: "Yes", Value: "yes"}, {Label: "No", Value: "no"}}}}},
	}}
}

func (s *shelf) Runs(_ context.Context, text, before string) (*api.Page, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	page := &api.Page{}
	for i, v := range s.runs {
		if before != "" {
			if string(v.ID) == before {
				before = ""
			}
			continue
		}
		if !strings.Contains(v.Info.Title, text) {
			continue
		}
		page.Items = append(page.Items, api.Row{ID: v.ID, Workflow: v.Workflow, Title: v.Info.Title, Status: v.Status, Driving: v.Driving, Updated: v.Updated})
		if s.part > 0 && len(page.Items) == s.part && i < len(s.runs)-1 {
			page.Next = new(string(v.ID))
			break
		}
	}
	s.asked = append(s.asked, fmt.Sprintf("runs %q: %d", text, len(page.Items)))
	return page, nil
}

func (s *shelf) Run(_ context.Context, id protocol.RunID, w api.Window) (*api.Run, error) {
	if w.Before > 0 && s.early != nil {
		<-s.early
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.runs {
		if v.ID != id {
			continue
		}
		now := *v
		for i, x := range now.Steps {
			if w.Before > 0 && x.Began >= w.Before {
				now.Steps = now.Steps[:i]
				break
			}
		}
		if more := len(now.Steps) - w.Limit; w.Limit > 0 && more > 0 {
			now.Total, now.Steps = len(v.Steps), now.Steps[more:]
			now.Earlier = now.Steps[0].Began
		}
		s.asked = append(s.asked, fmt.Sprintf("%s: %d steps", id, len(now.Steps)))
		return &now, nil
	}
	return nil, protocol.ErrUnknownRun
}

func (s *shelf) Items(_ context.Context, id protocol.RunID, began protocol.Seq) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, fmt.Sprintf("items of %s that began with %d", id, began))
	return s.items, nil
}

func (s *shelf) Page(_ context.Context, id protocol.RunID, at tui.Step, p tui.Page) (tui.Text, error) {
	if p == tui.Diff {
		return tui.Text{Text: "@@ -1 +1 @@\n-old\n+new\x1b[2J"}, nil
	}
	if p == tui.Events && s.events > 0 {
		to := s.events
		if at.Before > 0 {
			to = at.Before - 1
		}
		from := max(0, to-100)
		x := tui.Text{Text: fmt.Sprintf("events %d to %d", from+1, to)}
		if from > 0 {
			x.Earlier = from + 1
		}
		return x, nil
	}
	var b strings.Builder
	for i := range 50 {
		fmt.Fprintf(&b, "%s of %s %s, line %d\n", p, id, at.ID, i)
	}
	return tui.Text{Text: b.String()}, nil
}

func (s *shelf) Follow(ctx context.Context, id protocol.RunID, _ protocol.Seq, moved func()) error {
	s.mu.Lock()
	s.moved[id] = moved
	s.mu.Unlock()
	<-ctx.Done()
	return ctx.Err()
}

func (s *shelf) Answer(_ context.Context, _ protocol.RunID, a api.Answer) error {
	s.answered <- strings.TrimSpace(a.Step + "=" + strings.Join(strings.Fields(a.Shown+" "+a.Choice+" "+a.Text+" "+string(a.Fields)), " "))
	return s.refuses
}

// does notes what was asked for.
func (s *shelf) does(what string) error {
	s.answered <- what
	return s.refuses
}

func (s *shelf) Resume(_ context.Context, id protocol.RunID) error {
	return s.does("resume " + string(id))
}
func (s *shelf) Cancel(_ context.Context, id protocol.RunID) error {
	return s.does("cancel " + string(id))
}

func (s *shelf) Fork(_ context.Context, id protocol.RunID, step string, hold bool) (api.Accepted, error) {
	err := s.does(fmt.Sprintf("fork %s at %s, hold %v", id, step, hold))
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.runs = append(s.runs, &api.Run{ID: "FFFF", Workflow: "fix-bug", Status: protocol.Running, Driving: api.Driving{Idle: api.NotStarted}, Steps: []*api.Step{{ID: "forked#1", Status: "ok"}}})
	}
	return api.Accepted{ID: "FFFF", Warnings: []string{"its files moved"}}, err
}

func (s *shelf) Delete(_ context.Context, id protocol.RunID, dry bool) (*api.Deleted, error) {
	if dry {
		if s.slow != nil {
			<-s.slow
		}
		return &api.Deleted{ID: id, Runs: []protocol.RunID{id, "x", "y"}}, nil
	}
	err := s.does("delete " + string(id))
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.runs = slices.DeleteFunc(s.runs, func(v *api.Run) bool { return v.ID == id })
	}
	return &api.Deleted{}, err
}

func show(t *testing.T, s *shelf, width, height int) *screentest.Screen {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	screen := screentest.Show(t, tui.New(ctx, s), width, height)
	t.Cleanup(cancel)
	return screen
}

func TestRunsStepsAndPages(t *testing.T) {
	s := show(t, newShelf(), 100, 16)
	got := s.Shows("Output of AAAA coder#2, line 0")
	want := `╭─ 1 Runs (2) ─────────────────────────╮╭─ 3 coder#2  Output Messages Events Diff Cost Verify ─────╮
│ ✓ AAAA       repair the parser       ││ Output of AAAA coder#2, line 0                           │
│ ⏸ BBBB       publish                 ││ Output of AAAA coder#2, line 1                           │
│                                      ││ Output of AAAA coder#2, line 2                           │
│                                      ││ Output of AAAA coder#2, line 3                           │
│                                      ││ Output of AAAA coder#2, line 4                           │
╰───────────────────────────── 1 of 2 ─╯│ Output of AAAA coder#2, line 5                           │
╭─ 2 Steps of fix-bug · done ──────────╮│ Output of AAAA coder#2, line 6                           │
│ ✓ test#1    abcdefgh                 ││ Output of AAAA coder#2, line 7                           │
│ ✓ coder#1   bcdefghi  The tests fail ││ Output of AAAA coder#2, line 8                           │
│ ✓ coder#2 ↩ cdefghij                 ││ Output of AAAA coder#2, line 9                           │
│                                      ││ Output of AAAA coder#2, line 10                          │
│                                      ││ Output of AAAA coder#2, line 11                          │
│                                      ││ Output of AAAA coder#2, line 12                          │
╰───────────────────────────── 3 of 3 ─╯╰───────────────────────────────────────────── 1–13 of 50 ─╯
 ↑↓ choose  Enter open  / filter  Tab next pane  ? keys  q leave
`
	if got != want {
		t.Errorf("the screen is\n%s", got)
	}
	s.Press("2k")
	s.Shows("Output of AAAA coder#1")
	s.Press("m")
	s.Shows("Messages of AAAA coder#1")
	s.Press("d")
	if now := s.Shows("+new"); !strings.Contains(now, "Runs (2)") {
		t.Errorf("a page cleared the screen:\n%s", now)
	}
	s.Press("[")
	s.Shows("Events of AAAA coder#1, line 0")
	s.Press("3" + strings.Repeat("j", 5))
	s.Shows("Events of AAAA coder#1, line 17")
	s.Press("1j")
	s.Shows("Events of BBBB editor#1")
	s.Press("?")
	s.Shows("the page before")
	s.Press("x")
	s.Hides("the page before")
	s.Press("q")
	if err := s.Ended(); err != nil {
		t.Error(err)
	}
}

func TestAQuestionIsAnswered(t *testing.T) {
	source := newShelf()
	s := show(t, source, 100, 24)
	s.Shows("Output of AAAA")
	s.Press("j")
	s.Shows("Publish this?")
	s.Press("a2\r")
	if got := <-source.answered; got != "editor#1=no" {
		t.Errorf("answered %q", got)
	}
	s.Press("afree \x1b[200~pasted\nwords\x1b[201~\r")
	if got := <-source.answered; got != "editor#1=free pasted words" {
		t.Errorf("answered %q", got)
	}
}

func TestTheFilterKeepsWhatFits(t *testing.T) {
	s := show(t, newShelf(), 100, 24)
	s.Shows("Output of AAAA")
	s.Press("/publ")
	s.Shows("(1 of 2)")
	s.Shows("Output of BBBB")
	s.Press("\r")
	s.Hides("▏")
	s.Press(screentest.Esc)
	s.Shows("Runs (2)")
}

func TestAMovingRunIsFollowed(t *testing.T) {
	source := newShelf()
	s := show(t, source, 100, 24)
	s.Shows("Output of AAAA coder#2")
	source.mu.Lock()
	v := source.runs[0]
	v.Status, v.Steps = protocol.Running, append(v.Steps[:len(v.Steps):len(v.Steps)], &api.Step{ID: "review#1", Status: "running"})
	moved := source.moved["AAAA"]
	source.mu.Unlock()
	moved()
	s.Shows("▶ review#1")
	s.Shows("Output of AAAA review#1")
}

// The death of the process that drives a run is no event: the list tells of it, and the steps are
// read anew.
func TestARunThatWasInterruptedIsShownAsSuch(t *testing.T) {
	source := newShelf()
	source.runs[0].Status = protocol.Running
	s := show(t, source, 100, 24)
	s.Shows("Steps of fix-bug · running")
	source.mu.Lock()
	source.runs[0].Idle = api.Interrupted
	source.mu.Unlock()
	s.Shows("Steps of fix-bug · interrupted")
	s.Shows("! AAAA")
}

// Every state that a run may be in has a sign.
func TestEveryStateOfARunHasASign(t *testing.T) {
	for _, row := range []api.Row{{Status: protocol.Queued}, {Status: protocol.Queued, Driving: api.Driving{Idle: api.Unattended}}, {Status: protocol.Running},
		{Status: protocol.Running, Driving: api.Driving{Idle: api.NotStarted}}, {Status: protocol.Running, Driving: api.Driving{Idle: api.Answered}},
		{Status: protocol.Running, Driving: api.Driving{Idle: api.Interrupted}}, {Status: protocol.Running, Closing: protocol.Done}, {Status: protocol.Waiting},
		{Status: protocol.Suspended}, {Status: protocol.Done}, {Status: protocol.Failed}, {Status: protocol.Cancelled}} {
		if word := render.RowState(row).Word(); tui.Sign(word) == "" {
			t.Errorf("%q has none", word)
		}
	}
}

func TestNarrowScreensShowOnePane(t *testing.T) {
	s := show(t, newShelf(), 40, 10)
	s.Shows("AAAA")
	s.Press("3")
	s.Shows("Output of AAAA coder#2")
	s.Shows("3 coder#2  Output 1 of 6")
	s.Press("2")
	s.Shows("test#1")
	s.Resize(20, 5)
	s.Shows("Steps of")
	s.Resize(1, 1)
	s.Resize(100, 24)
	s.Shows("Output of AAAA")
}

// The answer to a tool call is for the call that was on the screen, and a denial has its reason.
func TestAToolCallIsAnsweredAsItWasShown(t *testing.T) {
	source := newShelf()
	asks := slices.IndexFunc(source.runs, func(v *api.Run) bool { return len(v.Waiting) > 0 })
	q := &source.runs[asks].Waiting[0]
	q.Shown, q.Choices = "d1", []protocol.Choice{{Label: "Allow once", Value: "allow"}, {Label: "Deny", Value: "deny"}}
	s := show(t, source, 100, 24)
	s.Shows("Output of AAAA")
	s.Press("j")
	s.Shows("Publish this?")
	s.Press("a2 use the test database\r")
	if got := <-source.answered; got != "editor#1=d1 deny use the test database" {
		t.Errorf("answered %q", got)
	}
}

// F-38: the end of a question that is longer than the screen can be read.
func TestALongQuestionIsReadToItsEnd(t *testing.T) {
	source := newShelf()
	asks := slices.IndexFunc(source.runs, func(v *api.Run) bool { return len(v.Waiting) > 0 })
	source.runs[asks].Waiting[0].Question = "echo building" + strings.Repeat(" building", 1_990) + "; id > X"
	s := show(t, source, 100, 24)
	s.Shows("Output of AAAA")
	s.Press("j")
	s.Shows("echo building")
	s.Press("3G\x15\x15") // the output of the step comes behind it
	s.Shows("id > X")
	s.Shows("2  No")
}
