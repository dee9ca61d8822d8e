package query

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/api"
	"wf/cas"
	"wf/protocol"
)

// happened are events of a run, as they are stored.
type happened struct {
	t *testing.T
	w turner
	n protocol.Seq
}

func newHappened(t *testing.T) *happened {
	return &happened{t: t, w: turner{asked: map[string]*asked{}, subflows: map[string]bool{"sub": true},
		text: func(x protocol.Text) (string, error) { return x.S, nil }}}
}

func (h *happened) event(step string, d protocol.Data) {
	h.t.Helper()
	raw, err := cas.Encode(d)
	if err != nil {
		h.t.Fatal(err)
	}
	h.n++
	x := protocol.Entry{Event: protocol.Event{Seq: h.n, Type: d.EventType(), Data: raw.Data}}
	if step != "" {
		x.Step = &step
	}
	if err := h.w.event(&x); err != nil {
		h.t.Fatal(err)
	}
}

// asks has a visit wait, and answers it.
func (h *happened) asks(step string, a protocol.Answered) {
	h.t.Helper()
	h.event(step, protocol.StepStarted{Role: step})
	h.event(step, protocol.WaitingFor{Kind: protocol.WaitQuestion})
	h.event(step, a)
	h.event(step, protocol.StepCompleted{})
}

// acts has an agent act that found a tree.
func (h *happened) acts(step, tree string) {
	h.t.Helper()
	h.event(step, protocol.StepStarted{Role: step})
	h.event(step, protocol.FilesAt{Attempt: 1, Phase: protocol.FilesBefore, Tree: tree})
	h.event(step, protocol.FilesAt{Attempt: 1, Phase: protocol.FilesAfter, Tree: tree + "'"})
	h.event(step, protocol.StepCompleted{})
}

func (h *happened) are(want ...api.Turn) {
	h.t.Helper()
	h.w.append(h.w.inbox)
	for i := range h.w.turns {
		h.w.turns[i].Time = ""
	}
	if d := cmp.Diff(want, h.w.turns); d != "" {
		h.t.Error(d)
	}
}

func said(text string) protocol.Answered { return protocol.Answered{Text: protocol.NewText(text)} }

// A turn begins before the visit that asked, and its files are those before the first attempt behind it.
func TestC05TurnsOfAConversation(t *testing.T) {
	h := newHappened(t)
	h.event("", protocol.RunStarted{})
	h.asks("you#1", said("one"))
	h.acts("wf#1", "t1")
	h.acts("check#1", "t2")
	h.asks("you#2", said("two"))
	h.are(api.Turn{Step: "you#1", Said: 4, At: 1, Text: "one", Tree: "t1", Ended: []string{"wf#1", "check#1"}},
		api.Turn{Step: "you#2", Said: 16, At: 13, Text: "two"})
}

// A visit beside others is not asked anew, for that would take back what the others did; nor is an agent that asks.
func TestC05ATurnBesideOthersIsOneAnswer(t *testing.T) {
	h := newHappened(t)
	h.event("you#1", protocol.StepStarted{})
	h.event("you#1", protocol.WaitingFor{Kind: protocol.WaitQuestion})
	h.acts("wf#1", "t1")
	h.event("you#1", said("late"))
	h.event("agent#1", protocol.StepStarted{})
	h.event("agent#1", protocol.PromptSent{})
	h.event("agent#1", protocol.WaitingFor{Kind: protocol.WaitQuestion})
	h.event("agent#1", said("asked by an agent"))
	h.event("agent#1", protocol.WaitingFor{Kind: protocol.WaitApproval})
	h.event("agent#1", protocol.Answered{Choice: "allow"})
	h.event("", protocol.Forked{})
	h.are(api.Turn{Step: "you#1", Said: 7, At: 6, Text: "late"}, api.Turn{Step: "agent#1", Said: 11, At: 10, Text: "asked by an agent"})
}

// What was queued is the text of the turn that it was, as it was written, and so is what an agent heard behind Esc.
func TestC05WhatWasQueuedIsWrittenAgain(t *testing.T) {
	h := newHappened(t)
	h.asks("you#1", said("one"))
	h.event("wf#1", protocol.StepStarted{})
	message := func(text string) { h.event("", protocol.MessageIn{Source: "ada", Text: protocol.NewText(text)}) }
	message("heard")
	h.event("", protocol.SuspendedBy{})
	h.event("wf#1", protocol.StepStarted{Messages: 1})
	message("a")
	message("b")
	h.event("wf#1", protocol.StepCompleted{})
	h.asks("you#2", protocol.Answered{By: "ada", Source: "ada", Text: protocol.NewText("[message from ada]\na\n\n[message from ada]\nb"), Messages: 2})
	message("unread")
	h.are(api.Turn{Step: "you#1", Said: 3, At: 0, Text: "one\n\nheard", Ended: []string{"wf#1"}},
		api.Turn{Step: "you#2", Said: 14, At: 11, Messages: 2, Text: "a\n\nb\n\nunread"})
}

// Answers are written as they can be written again.
func TestC05AnswersAsTheyCanBeWrittenAgain(t *testing.T) {
	for i, x := range []struct {
		a    protocol.Answered
		want string
	}{
		{protocol.Answered{Source: "ada", Text: protocol.NewText("[message from ada]\nhello")}, "hello"},
		{protocol.Answered{Source: "bob", Text: protocol.NewText("[message from ada]\nhello")}, "[message from ada]\nhello"},
		{protocol.Answered{Choice: "yes"}, "yes"},
		{protocol.Answered{Choice: "yes", Fields: protocol.NewText(`{"n":3,"a":"x y"}`)}, "yes\na=x y\nn=3"},
	} {
		h := newHappened(t)
		h.event("", protocol.RunStarted{})
		h.asks("you#1", x.a)
		if got := h.w.turns[0].Text; got != x.want {
			t.Errorf("%d: %q", i, got)
		}
	}
}

// Where the files of a turn are not known, it says why.
func TestC05FilesThatAreNotKnown(t *testing.T) {
	h := newHappened(t)
	h.event("", protocol.RunStarted{})
	h.asks("you#1", said("one"))
	h.event("wf#1", protocol.StepStarted{})
	h.event("wf#1", protocol.FilesAt{Attempt: 1, Phase: protocol.FilesBefore, Why: "it cannot be read"})
	h.event("wf#1", protocol.FilesAt{Attempt: 2, Phase: protocol.FilesBefore, Tree: "t"})
	h.asks("sub#1", said("to a sub-workflow"))
	h.are(api.Turn{Step: "you#1", Said: 4, At: 1, Text: "one", Failed: "the sub-workflow sub#1 has acted since, and records its files by itself", Ended: nil},
		api.Turn{Step: "sub#1", Said: 11, At: 10, Text: "to a sub-workflow", Part: true})
}

// A journal that has more read than came is corrupt, and no panic.
func TestC05MoreMessagesThanCame(t *testing.T) {
	for _, d := range []protocol.Data{protocol.StepStarted{Messages: 1}, protocol.Answered{Messages: 1}, protocol.Forked{Messages: 1}} {
		h := newHappened(t)
		raw, err := cas.Encode(d)
		if err != nil {
			t.Fatal(err)
		}
		step := "a#1"
		if err := h.w.event(&protocol.Entry{Event: protocol.Event{Seq: 1, Type: d.EventType(), Step: &step, Data: raw.Data}}); fmt.Sprint(err) == "<nil>" {
			t.Errorf("%T is taken", d)
		}
	}
}
