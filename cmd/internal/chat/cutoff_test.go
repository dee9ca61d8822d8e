package chat_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/charmbracelet/x/ansi"

	"wf/api"
	"wf/cmd/internal/chat"
	"wf/protocol"
)

// what are the texts of the items of a transcript, as they are shown.
func what(a *chat.App) string {
	_ = a.Screen() // its size counts with the first frame
	return ansi.Strip(strings.Join(a.Lines(), "\n"))
}

// What an agent had said when it was cut off is recorded nowhere: the screen says so, whatever ended it. What was recorded needs no word.
func TestAnAnswerThatWasCutOffSaysSo(t *testing.T) {
	failed := protocol.AttemptFailed{}
	failed.Error.Message = "the line is down"
	for name, ends := range map[string]api.Update{
		"Esc":         event(3000, "", protocol.SuspendedBy{Reason: protocol.ByInterrupt}),
		"kill":        event(3000, "", protocol.ResumedBy{}),
		"a bad line":  event(3000, "wf#2", failed),
		"a good end":  event(3000, "wf#2", protocol.StepCompleted{}),
		"a tool call": event(3000, "wf#2", protocol.ToolCall{Name: "shell", Call: "c"}),
	} {
		for _, kind := range []string{"text", "thinking"} {
			r := newRoom()
			talk(r)
			a := chat.New(t.Context(), r, nil)
			a.Resize(300, 24)
			settle(a, a.Init())
			a.Take(api.Update{Step: "wf#2", Data: protocol.Delta{Kind: kind, Text: "half of it"}})
			a.Take(ends)
			cut := strings.Contains(what(a), "wf#2 was cut off here")
			if want := kind == "text" && name != "a good end" && name != "a tool call"; cut != want {
				t.Errorf("%s, %s: told %t\n%s", name, kind, cut, what(a))
			}
		}
	}
}

// An older page that comes while an agent speaks takes nothing of that away.
func TestAnOlderPageLeavesLiveOutput(t *testing.T) {
	r := newRoom()
	for range 250 {
		r.happen("", protocol.EvMessage, obj{"text": "a word", "source": "ada"})
	}
	r.happen("wf#2", protocol.EvStepStarted, obj{"role": "wf"})
	r.happen("wf#2", protocol.EvThinking, obj{"content": "thought"})
	r.happen("wf#3", protocol.EvStepStarted, obj{"role": "wf"})
	r.happen("wf#3", protocol.EvToolCall, obj{"call": "c", "name": "shell", "args": "{}"})
	a := chat.New(t.Context(), r, nil)
	a.Resize(80, 24)
	settle(a, a.Init())
	live := func(step, kind, text string) {
		a.Take(api.Update{Step: step, Data: protocol.Delta{Kind: kind, Text: text}})
	}
	live("wf#2", "text", "the first half, ")
	live("wf#3", "stdout", "a line of the shell\n")
	live("wf#4", "text", "another answer")
	_ = a.Screen()
	before := len(a.Lines())
	page, err := r.Page(t.Context(), 55, 50)
	if err != nil {
		t.Fatal(err)
	}
	a.Earlier(page)
	live("wf#2", "text", "the second half")
	live("wf#4", "text", " goes on")
	now := what(a)
	for _, want := range []string{"the first half, the second half", "a line of the shell", "another answer goes on", "▸ thinking, 1 line"} {
		if strings.Count(now, want) != 1 {
			t.Errorf("%q is there %d times", want, strings.Count(now, want))
		}
	}
	if len(a.Lines()) <= before {
		t.Errorf("the page added nothing to %d lines", before)
	}
}

// A screen whose process does not drive the run does not say that Esc stops it.
func TestAScreenThatCannotStopTheAgentSaysSo(t *testing.T) {
	r, s := atWork(t)
	r.mu.Lock()
	r.elsewhere = true
	r.mu.Unlock()
	now := s.Shows("working · in another process")
	if strings.Contains(now, "Esc stops") {
		t.Errorf("the screen is\n%s", now)
	}
	drives := false
	d := &elsewhere{}
	talk, err := chat.Open(t.Context(), chat.Place{Service: d, Follower: d, Me: "ada", Drives: func(run protocol.RunID) bool { return drives && run == "RUN" }}, "RUN")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := talk.Command(t.Context(), chat.Command{Action: chat.Interrupt}); !errors.Is(err, protocol.ErrRunLive) || !strings.Contains(err.Error(), "on its own screen") {
		t.Errorf("Esc says %v", err)
	}
	if talk.Stops() {
		t.Error("it stops what another process drives")
	}
	if drives = true; !talk.Stops() {
		t.Error("it does not stop what this process drives")
	}
}

// elsewhere is a place whose runs another process drives.
type elsewhere struct{ desk }

func (d *elsewhere) Suspend(context.Context, protocol.RunID) error { return protocol.ErrRunLive }

// What suspends a step suspends its run: it is told once. A word goes on with a run that an error or a person stopped, and not with one at a
// limit, which it does not lift.
func TestAWordGoesOnAfterAnError(t *testing.T) {
	for reason, want := range map[string][]string{"error": {": again", "/resume "}, "interrupt": {": again", "/resume "}, "limit": {": again"}} {
		r, s := atWork(t)
		r.happen("wf#2", protocol.EvSuspended, obj{"reason": reason, "detail": "the model is away"})
		r.happen("", protocol.EvSuspended, obj{"reason": reason, "detail": "wf#2: the model is away"})
		now := s.Shows("stopped · /resume goes on")
		if n := strings.Count(now, "the model is away"); n != 1 {
			t.Errorf("%s: it is told %d times\n%s", reason, n, now)
		}
		s.Press("again\r")
		for _, w := range want {
			if got := r.heard(t); got != w {
				t.Errorf("%s: %q was asked, want %q", reason, got, w)
			}
		}
		r.happen("", protocol.EvSuspended, obj{"reason": reason, "detail": "it is away once more"})
		s.Shows("it is away once more")
		r.silent(t)
	}
}

// lonely is a server that follows a run without a word, whose driver may be gone.
type lonely struct {
	desk
	tell chan api.Update

	mu     sync.Mutex
	status protocol.RunStatus
	driven bool
	looks  int
}

// is sets where the run is, and gives how often it was looked at.
func (d *lonely) is(status protocol.RunStatus, driven bool) (looks int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.status, d.driven = status, driven
	return d.looks
}

func (d *lonely) Run(_ context.Context, run protocol.RunID, _ api.Window) (*api.Run, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.looks++
	return &api.Run{ID: run, Status: d.status, Driving: api.Driving{Driven: new(d.driven)}}, nil
}

func (d *lonely) Follow(ctx context.Context, _ protocol.RunID, _ api.Following, f func(api.Update) error) error {
	for {
		select {
		case u := <-d.tell:
			if err := f(u); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// A server is asked whether a process drives a run that goes on and does not move; one that waits is not asked for.
func TestAServerIsAskedWhetherARunIsDriven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &lonely{status: protocol.Running, tell: make(chan api.Update)}
		s, err := chat.Open(t.Context(), chat.Place{Service: d, Follower: d, Me: "ada"}, "RUN")
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		got, ended := make(chan api.Update, 100), make(chan error)
		go func() { ended <- s.Follow(ctx, 0, func(u api.Update) { got <- u }) }()
		began := time.Now()
		if u := <-got; u.Driven == nil || *u.Driven || time.Since(began) != 5*time.Second {
			t.Errorf("%+v after %v", u, time.Since(began))
		}
		d.tell <- event(1, "wf#1", protocol.StepStarted{})
		if u := <-got; u.Entry == nil {
			t.Errorf("%+v", u)
		}
		d.is(protocol.Running, true)
		if u := <-got; u.Driven == nil || !*u.Driven {
			t.Errorf("%+v", u)
		}
		d.tell <- event(2, "you#2", protocol.WaitingFor{})
		<-got
		looks := d.is(protocol.Waiting, false)
		d.tell <- event(3, "you#2", protocol.Answered{})
		<-got
		d.is(protocol.Suspended, false) // which the reader has not seen
		if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if n := d.is("", false) - looks; n != 1 || len(got) > 0 {
			t.Errorf("a run that does not go on was looked at %d times, with %d updates", n, len(got))
		}
	})
}

// Who waits for a provider that is down is told once, with the newest reason; what happens in between begins anew.
func TestAWaitForAProviderIsOneNote(t *testing.T) {
	r, s := atWork(t)
	down := func(why string) {
		r.happen("wf#2", protocol.EvHeld, obj{"provider": "local", "limit": "outage", "why": why})
		r.happen("wf#2", protocol.EvReleased, obj{"ms": 1500})
	}
	down("status 502")
	down("status 503")
	if now := s.Shows("status 503"); strings.Contains(now, "status 502") {
		t.Errorf("the screen is\n%s", now)
	}
	r.happen("wf#2", protocol.EvText, obj{"content": "I go on."})
	down("status 504")
	if now := s.Shows("status 504"); strings.Count(now, "held: ") != 2 {
		t.Errorf("the screen is\n%s", now)
	}
}
