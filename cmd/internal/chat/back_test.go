package chat_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"wf/api"
	"wf/cmd/internal/chat"
	"wf/cmd/internal/screentest"
	"wf/protocol"
)

// What a person takes back is asked of the process that has the store, and told.
func TestC05WhatIsTakenBackIsTold(t *testing.T) {
	d := &desk{back: api.WentBack{Run: "FORK", Step: "you#3", Text: "again", Files: api.FilesRestored{Changed: []string{"a", "b"}, Kept: []string{"a"}, Undo: "bafyundo"}}}
	s := enter(t, d, d)
	out, err := s.Command(t.Context(), chat.Command{Action: chat.Undo, Arg: "--force"})
	if want := "took back all from you#3 on, with the files (2 paths); /redo brings it back; 1 path that nothing had recorded: wf restore FORK --tree bafyundo PATH brings it back"; err != nil || !out.Moved || out.Line != "again" || out.Text != want {
		t.Errorf("%+v, %v", out, err)
	}
	d.back = api.WentBack{Run: "RUN2", Left: "this run does not record its files", Files: api.FilesRestored{}}
	if out, err = s.Command(t.Context(), chat.Command{Action: chat.Redo}); err != nil || out.Text != "the conversation is as before the undo; the files stay as they are: this run does not record its files" {
		t.Errorf("%+v, %v", out, err)
	}
	d.back.Left, d.back.Step = "", "you#1"
	d.back.Files.Conflicts = []api.LeftAlone{{Path: "x", Why: "it is too large"}, {Path: "y"}}
	if out, err = s.Command(t.Context(), chat.Command{Action: chat.Rewind, Arg: "you#1 --force"}); err != nil || !strings.HasSuffix(out.Text, "; left alone: x (it is too large) and 1 more") {
		t.Errorf("%+v, %v", out, err)
	}
	want := []string{`back RUN "" false true`, `back FORK "" true false`, `back RUN2 "you#1" false true`}
	if !slices.Equal(d.did, want) {
		t.Errorf("it asks %q", d.did)
	}
	for _, c := range []chat.Command{{Action: chat.Undo, Arg: "you#1"}, {Action: chat.Redo, Arg: "2"}, {Action: chat.Rewind, Arg: "a b"}, {Action: chat.Rewind, Arg: "a --hard"}, {Action: chat.Undo, Arg: "--forced"}} {
		if _, err := s.Command(t.Context(), c); !errors.Is(err, protocol.ErrUsage) {
			t.Errorf("/%s %s: %v", c.Action, c.Arg, err)
		}
	}
	d.failed = fmt.Errorf("run RUN: %w", protocol.ErrRunLive)
	if _, err := s.Command(t.Context(), chat.Command{Action: chat.Undo}); !errors.Is(err, protocol.ErrRunLive) || !strings.Contains(err.Error(), "Esc stops it, then /undo") {
		t.Errorf("while the agent works: %v", err)
	}
}

// What stops a way back is named, with what can be done.
func TestC05ConflictsAreNamed(t *testing.T) {
	d := &desk{back: api.WentBack{Step: "you#3", Files: api.FilesRestored{State: api.RestorePlanned,
		Conflicts: []api.LeftAlone{{Path: "src/a.go", Why: "it was changed since it was recorded"}, {Path: "b", Why: "it was removed since it was recorded"}}}}}
	s := enter(t, d, d)
	out, err := s.Command(t.Context(), chat.Command{Action: chat.Rewind, Arg: "you#3"})
	if err != nil || out.Moved || !out.Dialog || s.Info().Run != "RUN" {
		t.Errorf("%+v, %v", out, err)
	}
	for _, want := range []string{"neither the files nor the conversation were changed", "  src/a.go: it was changed since it was recorded\n", "  b: it was removed", "\n/rewind you#3 --force goes all the same"} {
		if !strings.Contains(out.Text, want) {
			t.Errorf("%q is not in\n%s", want, out.Text)
		}
	}
	d.back.Files.State = protocol.RestoreAborted
	if out, err = s.Command(t.Context(), chat.Command{Action: chat.Undo}); err != nil || !strings.Contains(out.Text, "were changed while the files went back") || !strings.Contains(out.Text, "/undo --force") {
		t.Errorf("%+v, %v", out, err)
	}
}

// At a server the commands say where they work.
func TestC05FarAwayNothingGoesBack(t *testing.T) {
	d := &desk{}
	s := enter(t, d, nil)
	for _, a := range []chat.Action{chat.Undo, chat.Redo, chat.Rewind} {
		if _, err := s.Command(t.Context(), chat.Command{Action: a}); !errors.Is(err, protocol.ErrUsage) || !strings.Contains(err.Error(), "where the store and the files are") {
			t.Errorf("/%s: %v", a, err)
		}
	}
	if len(d.did) > 0 {
		t.Errorf("it did %q", d.did)
	}
}

// A screen whose conversation went back on another one does nothing in the run that was left.
func TestC05AConversationThatWentElsewhere(t *testing.T) {
	d := &desk{}
	s := enter(t, d, d)
	for i, f := range []func() error{
		func() error { return s.Say(t.Context(), "hi") },
		func() error { return s.Answer(t.Context(), api.Answer{Step: "you#1", Text: "hi"}) },
		func() error { _, err := s.Command(t.Context(), chat.Command{Action: chat.Resume}); return err },
		func() error { _, err := s.Command(t.Context(), chat.Command{Action: chat.Undo}); return err },
	} {
		d.moved = protocol.RunID(fmt.Sprint("NEXT", i))
		if err := f(); err == nil || s.Info().Run != d.moved {
			t.Errorf("%d: %v, in %s", i, err, s.Info().Run)
		} else if _, moved := errors.AsType[*chat.MovedError](err); !moved {
			t.Errorf("%d: %v", i, err)
		}
	}
	if len(d.did) > 0 {
		t.Errorf("it did %q", d.did)
	}
}

// waysRoom is a room whose ways back the test plays: a word on go ends one.
func waysRoom(out chat.Outcome, err error) (r *room, went chan chat.Command, end chan struct{}) {
	r = newRoom()
	talk(r)
	went, end = make(chan chat.Command, 1), make(chan struct{})
	r.command = func(c chat.Command) (chat.Outcome, error) {
		went <- c
		if c.Each != nil {
			c.Each(3, 10)
		}
		<-end
		return out, err
	}
	return r, went, end
}

// The message that was taken back stands in the box, and nothing is sent while files change.
func TestC05WhatWasSaidComesBackToTheBox(t *testing.T) {
	r, went, end := waysRoom(chat.Outcome{Moved: true, Text: "took back all from you#1 on, and 3 paths", Line: "What is in\nthis directory?"}, nil)
	s := show(t, r, 80, 24)
	s.Shows("your turn")
	s.Press("/undo\r")
	if c := <-went; c.Action != chat.Undo {
		t.Errorf("%+v", c)
	}
	s.Shows("3 of 10 files are in place")
	s.Press("hello\r")
	s.Shows("wait until the files are in place")
	s.Press("\x03") // empties the box
	s.Hides("> hello")
	close(end)
	s.Shows("> What is in")
	now := s.Shows("took back all from you#1 on")
	if !strings.Contains(now, "this directory?") {
		t.Errorf("the screen is\n%s", now)
	}
	<-r.joined
	r.happen("you#2", protocol.EvStepStarted, obj{"role": "you"}) // the fork asks again
	s.Shows("took back all from you#1 on")
	r.silent(t)
}

// A long message stands in the box as words, and is sent whole.
func TestC05ALongMessageComesBackWhole(t *testing.T) {
	long := strings.Repeat("five megabytes\n", 5<<20/15)
	r, _, end := waysRoom(chat.Outcome{Moved: true, Text: "took back all from you#1 on", Line: long}, nil)
	close(end)
	s := show(t, r, 80, 24)
	s.Shows("your turn")
	s.Press("/undo\r")
	s.Shows("[pasted 1: 349525 lines, 5242875 bytes]")
	<-r.joined
	s.Press("\r")
	s.Shows("an agent reads the first 32768 of these")
	s.Press("\r")
	if got := r.heard(t); got != "you#2: "+long {
		t.Errorf("%d bytes were sent", len(got))
	}
}

// Who leaves while files change stops that first.
func TestC05LeavingStopsTheWayBack(t *testing.T) {
	r, went, end := waysRoom(chat.Outcome{}, errors.New("stopped"))
	s := show(t, r, 80, 24)
	s.Shows("your turn")
	s.Press("/redo\r")
	<-went
	s.Press("\x03")
	s.Shows("Ctrl+C again leaves")
	s.Press("\x03")
	close(end)
	if err := s.Ended(); err != nil {
		t.Error(err)
	}
}

// While the agent works nothing goes back: Esc first.
func TestC05WhileTheAgentWorksNothingGoesBack(t *testing.T) {
	r, s := atWork(t)
	s.Press("/undo\r")
	s.Shows("the agent works: Esc stops it, then /undo")
	r.silent(t)
}

// A turn is chosen from a list, in which hostile texts are texts.
func TestC05ATurnIsChosen(t *testing.T) {
	r := newRoom()
	talk(r)
	turns := &chat.List{Title: "Back to before a message", Hint: "choose", At: 2, Do: chat.Rewind, Rows: []chat.Row{{Value: "1", Text: "1  you#1  first"},
		{Value: "2", Text: "2  you#2  \x1b[2Jsecond\nwith lines\u202e"}, {Value: "3", Text: strings.Repeat("long ", 100)}}}
	r.command = func(c chat.Command) (chat.Outcome, error) {
		r.said <- string(c.Action) + " " + c.Arg
		if c.Arg == "" {
			return chat.Outcome{List: turns}, nil
		}
		return chat.Outcome{Dialog: true, Title: "Nothing was changed", Text: "  \x1b[31mx: it was changed\n"}, nil
	}
	s := show(t, r, 60, 12)
	s.Shows("your turn")
	s.Press("/rewind\r")
	now := s.Shows("Back to before a message")
	if !strings.Contains(now, "1  you#1  first") || !strings.Contains(now, "2  you#2") {
		t.Errorf("the screen is\n%s", now)
	}
	s.Press(screentest.Up + "\r")
	s.Shows("Nothing was changed")
	if a, b := r.heard(t), r.heard(t); a != "rewind " || b != "rewind 2" {
		t.Errorf("asked %q, %q", a, b)
	}
	s.Press("\x1b")
	s.Shows("your turn")
	s.Press("/rew\t")
	s.Shows("> /rewind")
}

// What was ended at the opening is told until the person does something.
func TestC05WhatWasEndedIsTold(t *testing.T) {
	for want, v := range map[string]*api.FilesRestored{
		"": nil,
		"going back was interrupted, and was ended: the conversation goes on in run F":                                        {State: protocol.RestoreDone, Run: "A", Next: "F"},
		"going back was interrupted, and was taken back":                                                                      {State: protocol.RestoreAborted, Run: "A"},
		"going back was interrupted, and then met x: it was changed meanwhile. It was taken back, and the conversation stays": {State: protocol.RestoreAborted, Run: "A", Conflicts: []api.LeftAlone{{Path: "x", Why: "it was changed meanwhile"}}},
		"restoring files of run A was interrupted, and was ended; left alone: y (it holds what was never recorded)":           {State: protocol.RestoreDone, Run: "A", Conflicts: []api.LeftAlone{{Path: "y", Why: "it holds what was never recorded"}}},
	} {
		if got := chat.ToldSettled(v); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	r := newRoom()
	r.info.Word = "going back was interrupted, and was ended: the conversation goes on in run F"
	talk(r)
	s := show(t, r, 100, 24)
	r.happen("wf#9", protocol.EvText, obj{"content": "more"})
	s.Shows("going back was interrupted")
}
