package agentkit

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/anthropic"
	"wf/agentkit/model"
	"wf/agentkit/modeltest"
	"wf/protocol"
)

func TestCallsForEverAreBoundedByTurns(t *testing.T) {
	s := newStage(t, "coder#1: ["+strings.Repeat("{tool: list_files, args: {path: .}}, {tool: list_files, args: {path: ./}},", 15)+"]", "list_files")
	s.turn.Role.MaxTurns = 5
	j := &journal{}
	_, err := s.perform(t, j)
	var f *protocol.Failure
	if !errors.As(err, &f) || f.Code != "max_turns" || f.Suspend {
		t.Fatalf("got %v", err)
	}
	if n := len(s.sent); n != 6 {
		t.Errorf("%d requests were sent, not five and a last chance", n)
	}
	if n := len(find[protocol.ToolResult](j)); n != 5 {
		t.Errorf("%d calls ran; the one after the last chance must not", n)
	}
	if _, err := s.perform(t, j); !errors.As(err, &f) || f.Code != "max_turns" || len(s.sent) != 6 {
		t.Errorf("after a crash: %v, %d requests", err, len(s.sent))
	}
}

// A model that makes the same calls with the same results over and over is stopped, and goes on once a person has looked; what
// differs in between is no circle.
func TestTheSameCallsForEverSuspend(t *testing.T) {
	const same, other = "{tool: list_files, args: {path: .}}", "{tool: list_files, args: {path: ./}}"
	const end = `, {text: "---\nstatus: done\n---\n"}`
	for name, c := range map[string]struct {
		replies string
		stuck   int // requests before it is stopped; 0 is never
	}{
		"five times":          {strings.Repeat(same+",", 7) + same + end, 5},
		"four times":          {strings.Repeat(same+",", 3) + same + end, 0},
		"another in between":  {same + "," + same + "," + same + "," + same + "," + other + "," + same + "," + same + "," + same + end, 0},
		"in turns":            {strings.Repeat(same+","+other+",", 6) + same + end, 0},
		"a tool that is none": {strings.Repeat("{tool: nothing, args: {}},", 8) + same + end, 5},
	} {
		s := newStage(t, "coder#1: ["+c.replies+"]", "list_files")
		s.turn.Role.MaxTurns = 30
		j := &journal{}
		_, err := s.perform(t, j)
		var f *protocol.Failure
		switch stuck := errors.As(err, &f) && f.Code == "same_call" && f.Suspend; {
		case c.stuck == 0 && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.stuck > 0 && (!stuck || len(s.sent) != c.stuck):
			t.Errorf("%s: %v after %d requests", name, err, len(s.sent))
		case c.stuck > 0:
			if _, err := s.perform(t, j); !errors.As(err, &f) || f.Code != "same_call" || len(s.sent) != c.stuck {
				t.Errorf("%s: after a crash: %v after %d requests", name, err, len(s.sent))
			}
			if err := j.emit(t.Context(), protocol.SuspendedBy{Reason: protocol.ByError}, protocol.ResumedBy{By: "ada"}); err != nil {
				t.Fatal(err)
			}
			if _, err := s.perform(t, j); err != nil {
				t.Errorf("%s: gone on with: %v", name, err)
			}
		}
	}
}

func TestTheLastChanceConcludes(t *testing.T) {
	const replies = "coder#1: [{tool: list_files, args: {path: .}}, {tool: list_files, args: {path: .}}, {text: no fence}, {text: \"---\\nstatus: stuck\\n---\\n\"}]"
	whole := newStage(t, replies, "list_files")
	whole.turn.Role.MaxTurns = 2
	j := &journal{}
	c, err := whole.perform(t, j)
	if err != nil || c.Text == nil || !strings.Contains(*c.Text, "stuck") {
		t.Fatalf("got %+v, %v", c, err)
	}
	chance := "You have used all of your turns: no tool will run any more."
	for i, want := range []int{0, 0, 1, 1} {
		if n := strings.Count(whole.sent[i], chance); n != want {
			t.Errorf("request %d offers %d last chances, want %d", i+1, n, want)
		}
	}
	for stop := range len(j.commits) {
		s := newStage(t, replies, "list_files")
		s.turn.Role.MaxTurns = 2
		cut := &journal{stop: stop}
		if stop > 0 {
			if _, err := s.perform(t, cut); !errors.Is(err, errKilled) {
				t.Fatalf("stop at %d: %v", stop, err)
			}
			cut.stop = 0
		}
		sent := len(s.sent)
		if _, err := s.perform(t, cut); err != nil {
			t.Fatalf("resumed after %d: %v", stop, err)
		}
		if d := cmp.Diff(whole.sent[4-(len(s.sent)-sent):], s.sent[sent:]); d != "" {
			t.Errorf("resumed after %d:\n%s", stop, d)
		}
	}
}

func TestTemporaryFailuresAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, `coder#1: [{error: {status: 503}}, {error: {status: 429, retry_after: 7s}}, {text: "---\nstatus: done\n---\n"}]`)
		j, start := &journal{}, time.Now()
		if _, err := s.perform(t, j); err != nil {
			t.Fatal(err)
		}
		if d, least := time.Since(start), Backoff+7*time.Second; d < least || d > least+least/5 {
			t.Errorf("waited %v", d)
		}
		if d := cmp.Diff([]string{"prompt", "usage", "usage", "held", "released", "text+usage"}, j.types()); d != "" {
			t.Error(d)
		}
		if u := find[protocol.Usage](j)[0]; u.Input != nil || u.Output != nil {
			t.Errorf("a failed call used %+v", u)
		}
	})
}

func TestFailuresThatLastEndTheAttempt(t *testing.T) {
	for name, c := range map[string]struct {
		replies string
		class   string
		suspend bool
		message string
	}{
		"server errors":   {strings.Repeat("{error: {status: 503}},", 99), "server_error", false, "the model script/replies.yaml failed to answer: status 503: scripted error, again and again for 10m0s. Fixes: wf resume goes on from here later; or give the role a retry:, more patience:, or a further model"},
		"rate limit":      {strings.Repeat("{error: {status: 429}},", 99), "rate_limit", false, "the model script/replies.yaml refuses: too many requests: status 429: scripted error, again and again for 10m0s. Fixes: wf resume goes on from here later; or give the role a retry:, more patience:, or a further model"},
		"a far Retry":     {"{error: {status: 429, retry_after: 1h}}", "rate_limit", false, "the model script/replies.yaml refuses: too many requests: status 429: scripted error; the provider asks to wait 1h0m0s. Fixes: wf resume goes on from here later; or give the role a retry:, more patience:, or a further model"},
		"a bad request":   {"{error: {status: 400}}", "invalid", false, "the model script/replies.yaml refuses the request: status 400: scripted error"},
		"a bad key":       {"{error: {status: 401, message: no key}}", "unavailable", true, "model script/replies.yaml: status 401: no key"},
		"unmatched calls": {"", "unavailable", true, "model script/replies.yaml has no reply for coder#1, call 1: the script holds none at all"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				replies := "coder#1: [" + c.replies + "]"
				if c.replies == "" {
					replies = "{}"
				}
				_, err := newStage(t, replies).perform(t, &journal{})
				var f *protocol.Failure
				if !errors.As(err, &f) {
					t.Fatalf("got %v", err)
				}
				if f.Class != c.class || f.Suspend != c.suspend || f.Message != c.message {
					t.Errorf("got %+v", f)
				}
				if errors.Is(err, protocol.ErrModel) != c.suspend {
					t.Errorf("ErrModel is wrapped: %v", !c.suspend)
				}
			})
		})
	}
}

// A provider's own words reach the person: bounded, valid, with declared secrets hidden.
func TestF16AFailureTellsWhatTheProviderSaid(t *testing.T) {
	s, _ := answering(t, modeltest.Answer{Status: 503, Header: map[string]string{"Retry-After": "3600"},
		Body: `{"error":{"message":"busy, key hunter2hunter2 ` + "\xff" + strings.Repeat("x", 5000) + `"}}`})
	s.turn.Secrets = []string{"PW"}
	s.agent.Secret = func(string) (string, bool) { return "hunter2hunter2", true }
	_, err := s.perform(t, &journal{})
	var f *protocol.Failure
	if !errors.As(err, &f) || f.Class != "server_error" {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"anthropic/x", "status 503", "busy, key [secret:PW]", "asks to wait 1h0m0s", "a further model"} {
		if !strings.Contains(f.Message, want) {
			t.Errorf("%q is missing in: %s", want, f.Message)
		}
	}
	if strings.Contains(f.Message, "hunter2") || !utf8.ValidString(f.Message) || utf8.RuneCountInString(f.Message) > 1200 {
		t.Errorf("got %q", f.Message)
	}
}

func TestK15AnotherModelTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, `coder#1: [{error: {status: 503}}, {error: {status: 503}}, {error: {status: 503}}, {error: {status: 503}}]`)
		dir := filepath.Dir(s.turn.File)
		other := "coder#1: [{text: a},{text: a},{text: a},{text: a}, {tool: list_files, args: {path: .}}, {text: \"---\\nstatus: done\\n---\\n\"}]"
		if err := os.WriteFile(filepath.Join(dir, "other.yaml"), []byte(other), 0o666); err != nil {
			t.Fatal(err)
		}
		s.turn.Models = []string{"nowhere/x", "script/replies.yaml", "script/other.yaml"}
		j := &journal{}
		if _, err := s.perform(t, j); err != nil {
			t.Fatal(err)
		}
		want := []protocol.ModelFallback{
			{From: "nowhere/x", To: "script/replies.yaml", Reason: "unavailable"},
			{From: "script/replies.yaml", To: "script/other.yaml", Reason: "server_error"},
		}
		if d := cmp.Diff(want, find[protocol.ModelFallback](j)); d != "" {
			t.Error(d)
		}
	})
}

func TestCancelledIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, `coder#1: [{text: x, delay: 1h}]`)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		stopped, stop := context.WithCancel(ctx)
		time.AfterFunc(time.Second, stop)
		if _, err := s.agent.Perform(stopped, s.turn, (&journal{}).emit); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

func TestUnknownProvidersSayWhatToDo(t *testing.T) {
	_, err := Standard().Open("gpt-5", "")
	if !errors.Is(err, protocol.ErrModel) {
		t.Fatalf("got %v", err)
	}
	for _, fix := range []string{"--model", "OPENAI_BASE_URL", "script/FILE"} {
		if !strings.Contains(err.Error(), fix) {
			t.Errorf("%v does not name %s", err, fix)
		}
	}
}

// answering is a stage whose model is a server that answers so.
func answering(t *testing.T, answers ...modeltest.Answer) (*stage, *modeltest.Server) {
	s, server := newStage(t, "{}", "list_files"), modeltest.Start(t, answers...)
	s.agent.Models = func(name, _ string) (llms.Model, error) {
		return anthropic.New(name, "x", anthropic.Config{BaseURL: server.Root})
	}
	s.turn.Models = []string{"anthropic/x"}
	return s, server
}

func said(text, finish string) modeltest.Answer {
	return modeltest.Answer{Usage: true, Say: []modeltest.Piece{{Text: text}, {Finish: finish}}}
}

// Half an answer is none, where the role says what an answer is.
func TestAnAnswerThatWasCutOffIsAskedForAgain(t *testing.T) {
	s, server := answering(t, said("---\nstatus: done\n---\nHalf an ans", "length"), said("---\nstatus: done\n---\nAll.", "stop"))
	j := &journal{}
	c, err := s.perform(t, j)
	if err != nil || !strings.HasSuffix(*c.Text, "All.") {
		t.Fatalf("concluded %v, %v", c.Text, err)
	}
	if body := string(server.Requests()[1].Body); !strings.Contains(body, "was cut off") {
		t.Errorf("the correction is %s", body)
	}
	if u := find[protocol.Usage](j); u[0].Stop != protocol.StopLength || u[1].Stop != "" {
		t.Errorf("the journal tells %q and %q", u[0].Stop, u[1].Stop)
	}

	s, _ = answering(t, said("Half an ans", "length"))
	s.turn.History.Schema = ""
	if c, err := s.perform(t, &journal{}); err != nil || *c.Text != "Half an ans" {
		t.Errorf("a role without output: %v, %v", c.Text, err)
	}
}

// A call whose arguments did not come to their end is not run, even where what came of them could be.
func TestACallThatWasCutOffIsNotRun(t *testing.T) {
	for name, args := range map[string]string{"in the middle": `{"path":`, "before they began": "", "where they are whole by chance": `{"path":"."}`} {
		t.Run(name, func(t *testing.T) {
			cut := modeltest.Answer{Usage: true, Say: []modeltest.Piece{{Call: &modeltest.CallPiece{ID: "a", Name: "list_files", Args: args}}, {Finish: "length"}}}
			s, _ := answering(t, cut, said("---\nstatus: done\n---\n", "stop"))
			for _, stop := range []int{0, 2} { // at once, and by a process that resumes it
				j := &journal{stop: stop}
				_, err := s.perform(t, j)
				if stop > 0 && errors.Is(err, errKilled) {
					j.stop = 0
					_, err = s.perform(t, j)
				}
				if err != nil {
					t.Fatal(err)
				}
				if r := find[protocol.ToolResult](j); len(r) != 1 || !r[0].IsError || !strings.Contains(r[0].Content.S, "cut off") {
					t.Errorf("the call gave %v", r)
				}
				s, _ = answering(t, cut, said("---\nstatus: done\n---\n", "stop"))
			}
		})
	}
}

// Nor does such a call end a task.
func TestATaskIsNotEndedByACallThatWasCutOff(t *testing.T) {
	call := func(response, finish string) modeltest.Answer {
		return modeltest.Answer{Usage: true, Say: []modeltest.Piece{{Call: &modeltest.CallPiece{ID: response, Name: protocol.ToolTaskComplete, Args: `{"final_response":"` + response + `","summary":"s"}`}}, {Finish: finish}}}
	}
	s, _ := answering(t, said("Fix it.", "stop"), call("Half", "length"), call("Whole", "stop"))
	s.turn.Role.Context = protocol.ContextTask
	s.turn.History.Schema, s.turn.History.Tools = "", ""
	s.prepare(t)
	j := &journal{}
	c, err := s.perform(t, j)
	if err != nil || c.Text == nil || *c.Text != "Whole" {
		t.Fatalf("concluded %+v, %v", c, err)
	}
	if r := find[protocol.ToolResult](j); len(r) != 2 || !strings.Contains(r[0].Content.S, "cut off") {
		t.Errorf("the calls gave %v", r)
	}
}

// What a provider keeps back is paid for, and no answer.
func TestARefusalFailsTheVisit(t *testing.T) {
	s, server := answering(t, said("I was about to", "refusal"))
	j := &journal{}
	_, err := s.perform(t, j)
	var f *protocol.Failure
	if !errors.As(err, &f) || f.Class != "invalid" || f.Suspend || !strings.Contains(f.Message, "refuses to answer") {
		t.Fatalf("got %v", err)
	}
	if len(server.Requests()) != 1 || len(find[protocol.TextSaid](j)) != 0 {
		t.Error("it was asked again, or what it said was taken over")
	}
	if u := find[protocol.Usage](j); len(u) != 1 || u[0].Input == nil || u[0].Stop != protocol.StopRefused {
		t.Errorf("the journal tells %+v", u)
	}
}

// F-414: an answer with more calls than a message may have is refused, whatever the model is: none of them runs, and what it cost is
// in the journal.
func TestF414AnAnswerWithTooManyCallsIsRefused(t *testing.T) {
	for n, ok := range map[int]bool{model.MostCalls - 1: true, model.MostCalls: true, model.MostCalls + 1: false, 20_000: false} {
		s := newStage(t, "coder#1: [{tools: ["+strings.Repeat("{tool: list_files, args: {path: .}},", n)+"]}, {text: \"---\\nstatus: stuck\\n---\\n\"}]", "list_files")
		j := &journal{}
		_, err := s.perform(t, j)
		ran := len(find[protocol.ToolResult](j))
		var f *protocol.Failure
		switch {
		case ok && (err != nil || ran != n):
			t.Errorf("%d calls: %d ran, %v", n, ran, err)
		case !ok && (!errors.As(err, &f) || !strings.Contains(f.Message, "calls more than 128 tools") || ran > 0 || len(find[protocol.Usage](j)) == 0):
			t.Errorf("%d calls: %d ran, %v", n, ran, err)
		}
	}
}
