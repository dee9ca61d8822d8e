package tape_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/anthropic"
	"wf/agentkit/model"
	"wf/agentkit/modeltest"
	"wf/agentkit/tape"
)

// taped records calls and opens the recording.
func taped(t *testing.T, calls ...taking) *tape.Model {
	t.Helper()
	file := filepath.Join(t.TempDir(), "calls.jsonl")
	var answers []modeltest.Answer
	for _, c := range calls {
		answers = append(answers, modeltest.Text(c.answer))
	}
	s := modeltest.Start(t, answers...)
	live, err := anthropic.New("anthropic/x", "x", anthropic.Config{BaseURL: s.Root})
	if err != nil {
		t.Fatal(err)
	}
	r := record(t, file)
	for _, c := range calls {
		if _, _, err := ask(t, r.Wrap("anthropic/x", live), c.at, c.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	m, err := tape.Open("tape/x", file)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

type taking struct {
	at           model.Request
	text, answer string
}

func playing(p *tape.Play, m *tape.Model, r model.Request, text string) (string, error) {
	res, err := m.GenerateContent(tape.With(model.WithRequest(context.Background(), r), p),
		[]llms.MessageContent{llms.TextParts(llms.ChatMessageTypeSystem, "Be brief."), llms.TextParts(llms.ChatMessageTypeHuman, text)})
	if err != nil {
		return "", err
	}
	return res.Choices[0].Content, nil
}

func place(role string, visit, call int) model.Request {
	return model.Request{Role: role, Visit: visit, Call: call}
}

// A request is answered by itself where it was recorded, else by its place, else by the next answer of its role; each of the
// latter is counted. Several plays of one recording do not take each other's answers.
func TestM03ARequestIsAnsweredByTheSequence(t *testing.T) {
	m := taped(t, taking{place("a", 1, 0), "one", "A1"}, taking{place("b", 1, 0), "uno", "B1"}, taking{place("a", 2, 0), "two", "A2"}, taking{place("a", 3, 0), "three", "A3"},
		taking{model.Request{Role: "a", Visit: 3, Call: 0, Summary: true}, "sum", "S"}, taking{model.Request{Role: "a", Visit: 3, Call: 0, Goal: true}, "goal", "G"})
	p, strict := &tape.Play{Sequence: true}, &tape.Play{}
	for _, want := range []struct {
		at           model.Request
		text, answer string
		differed     int
	}{
		{place("a", 2, 0), "other", "A2", 1}, // by its place
		{place("a", 1, 0), "one", "A1", 1},   // as recorded
		{place("a", 1, 0), "one", "A1", 1},   // again: the newest answer of it holds
		{place("a", 9, 0), "new", "A3", 2},   // the next of its role
		{place("b", 1, 0), "other", "B1", 3}, // of another role
		{model.Request{Role: "a", Visit: 9, Summary: true}, "other", "S", 4},
		{model.Request{Role: "a", Visit: 9, Goal: true}, "other", "G", 5},
	} {
		got, err := playing(p, m, want.at, want.text)
		if err != nil || got != want.answer || p.Count().Differed != want.differed {
			t.Errorf("%+v %q: %q, %v, %d differed, want %+v", want.at, want.text, got, err, p.Count().Differed, want)
		}
	}
	_, err := playing(p, m, place("a", 10, 0), "more")
	if e := (*model.Error)(nil); !errors.As(err, &e) || e.Class != model.Unavailable {
		t.Errorf("without an answer: %v", err)
	}
	if n := p.Count(); n.Requests != 8 || n.Missed != 1 || !strings.Contains(n.Miss, "call 1 of a#10") {
		t.Errorf("counted %+v", n)
	}
	if _, err := playing(strict, m, place("a", 2, 0), "other"); err == nil || strict.Count().Missed != 1 {
		t.Errorf("a strict play took another answer")
	}
	if got, err := playing(strict, m, place("a", 2, 0), "two"); err != nil || got != "A2" {
		t.Errorf("another play took its answer: %q, %v", got, err)
	}
	if got := m.Roles(); m.Calls() != 6 || !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("%d calls of %v", m.Calls(), got)
	}
}

// Many plays of one recording at the same time each get all of its answers, once.
func TestM03ManyPlaysOfOneRecording(t *testing.T) {
	var calls []taking
	for i := range 20 {
		calls = append(calls, taking{place("a", i+1, 0), fmt.Sprint(i), fmt.Sprint("A", i)})
	}
	m := taped(t, calls...)
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			p := &tape.Play{Sequence: true}
			for i := range 20 {
				if got, err := playing(p, m, place("a", i+1, 0), fmt.Sprint("changed ", i)); err != nil || got != fmt.Sprint("A", i) {
					t.Errorf("call %d: %q, %v", i, got, err)
				}
			}
			if n := p.Count(); n.Differed != 20 || n.Missed != 0 {
				t.Errorf("counted %+v", n)
			}
		})
	}
	work.Wait()
}

// A model that is tapped is recorded by what its context names, and by nothing without one.
func TestM03ARecordingOfAContext(t *testing.T) {
	s := modeltest.Serve(t, func(r modeltest.Request) modeltest.Answer { return modeltest.Text("yes") })
	live, err := anthropic.New("anthropic/x", "x", anthropic.Config{BaseURL: s.Root})
	if err != nil {
		t.Fatal(err)
	}
	m := tape.Tap("anthropic/x", live)
	dir := t.TempDir()
	var recorders []*tape.Recorder
	for i := range 3 {
		recorders = append(recorders, record(t, filepath.Join(dir, fmt.Sprint(i))))
	}
	say := func(ctx context.Context, text string) {
		if _, err := m.GenerateContent(model.WithRequest(ctx, place("a", 1, 0)), []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, text)}); err != nil {
			t.Error(err)
		}
	}
	say(t.Context(), "to nobody")
	for i, r := range recorders[:2] {
		for k := range i + 1 {
			say(tape.Recording(t.Context(), r), fmt.Sprint(i, k))
		}
	}
	for i, r := range recorders {
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		got, err := tape.Open("tape/x", filepath.Join(dir, fmt.Sprint(i)))
		if want := []int{1, 2, 0}[i]; err != nil || got.Calls() != want {
			t.Errorf("recording %d has %d calls, want %d: %v", i, got.Calls(), want, err)
		}
	}
}
