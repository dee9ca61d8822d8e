package task_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"wf/agentkit/task"
	"wf/protocol"
)

func TestR09ArgumentsOfControlToolsAreChecked(t *testing.T) {
	long := strings.Repeat("x", task.StateMax+1)
	update := func(args string) error { _, err := task.ParseUpdate(args); return err }
	ask := func(args string) error { _, err := task.ParseQuestion(args); return err }
	complete := func(args string) error { _, err := task.ParseCompletion(args, nil); return err }
	for _, test := range []struct {
		name  string
		parse func(string) error
		args  string
		want  string // "" is no error
	}{
		{"a state", update, `{"state":"Read it."}`, ""},
		{"a state with what nobody asked for", update, `{"state":"Read it.","mood":3}`, ""},
		{"no JSON", update, `{"state": `, "not valid JSON"},
		{"a list", update, `[1]`, "must be a JSON object"},
		{"null", update, `null`, `"state" is missing`},
		{"nothing", update, ``, `"state" is missing`},
		{"a number", update, `{"state":3}`, `"state" must be a string`},
		{"an explicit null", update, `{"state":null}`, `"state" must be a string`},
		{"blanks", update, `{"state":" \n"}`, `"state" is empty`},
		{"too long", update, `{"state":"` + long + `"}`, "4000 are the most"},
		{"shared values", update, `{"state":"x","share":{"db":"Postgres","n":[1,2]}}`, ""},
		{"shared text", update, `{"state":"x","share":"db"}`, `"share" must be an object`},
		{"a nameless value", update, `{"state":"x","share":{"":1}}`, "a name in"},
		{"a large value", update, `{"state":"x","share":{"a":"` + strings.Repeat("y", task.ShareValueMax) + `"}}`, "2000 are the most"},
		{"a number out of reach", update, `{"state":"x","share":{"a":9007199254740993}}`, "share"},
		{"a question", ask, `{"question":"Which DB?"}`, ""},
		{"no question", ask, `{}`, `"question" is missing`},
		{"an end", complete, `{"final_response":"Done.","summary":"Did it."}`, ""},
		{"an end without a summary", complete, `{"final_response":"Done."}`, `"summary" is missing`},
		{"an end without a word", complete, `{"summary":"Did it."}`, `"final_response" is missing`},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.parse(test.args)
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("have %v, want %q", err, test.want)
			}
		})
	}
}

func TestSummariesAreWrittenByWhomTheRoleNames(t *testing.T) {
	for _, test := range []struct {
		name string
		spec *protocol.TaskSpec
		args string
		want string // the summary
		asks bool   // the tool takes one
	}{
		{"by the agent", nil, `{"final_response":"a","summary":"one two three"}`, "one two three", true},
		{"by the agent, in few words", &protocol.TaskSpec{Words: 2}, `{"final_response":"a","summary":"one two\nthree"}`, "one two …", true},
		{"by a model", &protocol.TaskSpec{Summary: protocol.SummaryByModel}, `{"final_response":"a","summary":"ignored"}`, "", false},
		{"by nobody", &protocol.TaskSpec{Summary: protocol.SummaryNone}, `{"final_response":"a"}`, "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := task.ParseCompletion(test.args, test.spec)
			if err != nil || c.Summary != test.want {
				t.Errorf("have %q, %v", c.Summary, err)
			}
			tools := task.Tools(test.spec)
			if asks := strings.Contains(string(tools[0].Parameters), `"summary"`); asks != test.asks {
				t.Errorf("task_complete takes a summary: %v", asks)
			}
		})
	}
}

func TestR01AGoalIsOneLineOfAtMost80Runes(t *testing.T) {
	for _, test := range []struct{ name, said, want string }{
		{"plain", "Fix expired token authentication bug in login.go", "Fix expired token authentication bug in login.go"},
		{"quoted", "\n\"Fix it\"\nBecause …", "Fix it"},
		{"announced", "Goal: **Fix it**", "Fix it"},
		{"escape sequences", "Fix \x1b[31mit\x07", "Fix [31mit"},
		{"nothing", " \n\t\"\"", ""},
		{"long", strings.Repeat("ü", 200), strings.Repeat("ü", 80)},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := task.Goal(test.said); got != test.want {
				t.Errorf("have %q", got)
			}
		})
	}
	message := "Hey can you help me\nfix the bug in login.go where users can't authenticate with expired tokens?"
	goal := task.GoalFromMessage(message)
	if n := utf8.RuneCountInString(goal); n != protocol.TaskGoalMax || !strings.HasPrefix(goal, "Hey can you help me fix the bug") {
		t.Errorf("%d runes: %q", n, goal)
	}
}

func TestWordsAreCountedAcrossLines(t *testing.T) {
	for _, test := range []struct {
		text string
		most int
		want string
	}{
		{"one two", 2, "one two"},
		{"one\n\n two  three", 2, "one\n\n two …"},
		{"", 2, ""},
		{"one", 0, " …"},
	} {
		if got := task.LimitWords(test.text, test.most); got != test.want {
			t.Errorf("%q to %d: %q", test.text, test.most, got)
		}
	}
}

// sample is the page that the seed shows.
const sample = "# Task: Fix expired token authentication bug in login.go\n" + `
## Metadata

- **ID:** ` + "`abc-123-def`" + `
- **Status:** completed
- **Created:** 2026-01-11T10:30:00Z
- **Completed:** 2026-01-11T10:35:42Z
- **Duration:** 5 minutes 42 seconds
- **Cost:** $0.04
- **Tokens:** 5.7K in (3 new + 0 cached + 5.7K write) / 287 out

## Goal

Fix expired token authentication bug in login.go

## Original Message

Hey can you help me fix the bug in login.go where users can't 
authenticate with expired tokens?

## Final State

Fixed authentication check in login.go. Updated tests.

## Final Response

I've fixed the login bug. The issue was in the ` + "`validateCredentials`" + ` 
function which wasn't properly checking for expired tokens...

## Summary

User requested fix for login bug. Found issue in validateCredentials 
function - expired token check was missing. Added proper expiration 
validation and updated unit tests. All tests now pass.
`

func TestR06TheMarkdownIsThatOfTheSample(t *testing.T) {
	const goal = "Fix expired token authentication bug in login.go"
	at := func(clock string) int64 {
		when, err := time.Parse(time.RFC3339Nano, "2026-01-11T"+clock)
		if err != nil {
			t.Fatal(err)
		}
		return when.UnixMicro()
	}
	n := func(n int64) *int64 { return &n }
	var f task.Fold
	const step = "abc-123-def"
	for _, e := range []struct {
		at   string
		step string
		data protocol.Data
	}{
		{"10:29:59Z", "other#1", protocol.TextSaid{Content: protocol.NewText("not of the task")}},
		{"10:30:00.9Z", step, protocol.TaskStarted{ID: step, Goal: goal, Original: protocol.NewText("Hey can you help me fix the bug in login.go where users can't \nauthenticate with expired tokens?")}},
		{"10:30:00.9Z", step, protocol.Usage{Model: "m", Input: n(1), Output: n(7), Kind: protocol.UsageGoal}},
		{"10:31:00Z", step, protocol.TaskStateUpdated{ID: step, State: protocol.NewText("Looking.")}},
		{"10:32:00Z", step, protocol.Usage{Model: "m", Input: n(5_702), CacheWrite5m: n(5_700), Cached: n(0), Output: n(280)}},
		{"10:33:00Z", step, protocol.TaskStateUpdated{ID: step, State: protocol.NewText("Fixed authentication check in login.go. Updated tests.")}},
		{"10:35:42.1Z", step, protocol.TaskDone{ID: step,
			FinalResponse: protocol.NewText("I've fixed the login bug. The issue was in the `validateCredentials` \nfunction which wasn't properly checking for expired tokens..."),
			Summary:       protocol.NewText("User requested fix for login bug. Found issue in validateCredentials \nfunction - expired token check was missing. Added proper expiration \nvalidation and updated unit tests. All tests now pass.")}},
	} {
		f.Add(e.step, at(e.at), e.data)
	}
	if len(f.Tasks) != 1 {
		t.Fatalf("%d tasks", len(f.Tasks))
	}
	if d := cmp.Diff(sample, f.Tasks[0].Markdown(n(38_000_000_000))); d != "" {
		t.Error(d)
	}
}

func TestTheStandingOfATaskFollowsItsEvents(t *testing.T) {
	var f task.Fold
	const step = "clerk#1"
	for _, move := range []struct {
		data   protocol.Data
		status protocol.TaskStatus
		sign   string
	}{
		{protocol.TaskStarted{ID: step, Goal: "g"}, protocol.TaskActive, "▶"},
		{protocol.TaskWaitingOn{ID: step, Question: protocol.NewText("Which DB?")}, protocol.TaskWaiting, "⏸"},
		{protocol.Answered{Text: protocol.NewText("Postgres")}, protocol.TaskActive, "▶"},
		{protocol.StepCompleted{Status: protocol.StepFailed}, protocol.TaskActive, "✗"},
		{protocol.StepStarted{}, protocol.TaskActive, "▶"},
		{protocol.TaskDone{ID: step}, protocol.TaskCompleted, "✓"},
	} {
		got := f.Add(step, 1, move.data)
		if got.Status != move.status || got.Sign() != move.sign {
			t.Errorf("%s: %s %s", move.data.EventType(), got.Status, got.Sign())
		}
	}
	if page := f.Of(step).Markdown(nil); !strings.Contains(page, "**Cost:** unknown") || !strings.Contains(page, "## Final State\n\n(none)\n") {
		t.Error(page)
	}
	f.Forget(step)
	if f.Of(step) != nil || len(f.Tasks) != 0 {
		t.Error("a forgotten task is still there")
	}
}

func TestNumbersReadAsOnThePage(t *testing.T) {
	for seconds, want := range map[int64]string{0: "0 seconds", 1: "1 second", 60: "1 minute", 342: "5 minutes 42 seconds", 3_661: "1 hour 1 minute 1 second", 180_000: "2 days 2 hours"} {
		if got := task.Duration(seconds); got != want {
			t.Errorf("%d s: %q", seconds, got)
		}
	}
	for n, want := range map[int64]string{0: "0", 287: "287", 999: "999", 1_000: "1.0K", 5_703: "5.7K", 999_949: "999.9K", 1_234_567: "1.2M"} {
		if got := task.Count(n); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
	for pico, want := range map[int64]string{0: "$0.00", 38_000_000_000: "$0.04", 1_234_000_000: "$0.0012", 1_500_000_000_000: "$1.50"} {
		if got := task.Dollars(&pico); got != want {
			t.Errorf("%d: %q", pico, got)
		}
	}
}

func TestTheDataOfATaskIsFoundAgain(t *testing.T) {
	d := protocol.TaskData{Goal: "g", Status: protocol.TaskCompleted, Summary: "s", Shared: protocol.JSON(`{"a":1}`)}
	for _, test := range []struct{ declared, want string }{
		{"", `{"goal":"g","question":"","shared":{"a":1},"state":"","status":"completed","summary":"s"}`},
		{`{"status":"done","summary":"mine"}`, `{"status":"done","summary":"mine","task":{"goal":"g","question":"","shared":{"a":1},"state":"","status":"completed","summary":"s"}}`},
	} {
		data, err := task.Data(d, protocol.JSON(test.declared))
		if err != nil || string(data) != test.want {
			t.Errorf("%s: %s, %v", test.declared, data, err)
		}
		if got, ok := task.Read(data); !ok || cmp.Diff(d, got) != "" {
			t.Errorf("%s: %+v, %v", data, got, ok)
		}
	}
	for _, other := range []string{"", "[]", `{"status":"done","summary":"s"}`, `{"task":"x"}`, `{"task":{"summary":"s"},"goal":3}`} {
		if d, ok := task.Read(protocol.JSON(other)); ok {
			t.Errorf("%s was read as the task %+v", other, d)
		}
	}
}

func TestSharedValuesAreLaidOverEarlierOnes(t *testing.T) {
	for _, test := range []struct{ earlier, later, merged, left string }{
		{"", "", "", ""},
		{"", `{"a":1}`, `{"a":1}`, `{"a":1}`},
		{`{"a":1,"b":2}`, "", `{"a":1,"b":2}`, `{"a":1,"b":2}`},
		{`{"a":1,"b":2}`, `{"a":null,"c":[3]}`, `{"a":null,"b":2,"c":[3]}`, `{"b":2,"c":[3]}`},
		{`{"a":1}`, `{"a":null}`, `{"a":null}`, ""},
	} {
		merged, err := task.Merge(protocol.JSON(test.earlier), protocol.JSON(test.later))
		if err != nil || string(merged) != test.merged {
			t.Errorf("%s + %s: %s, %v", test.earlier, test.later, merged, err)
		}
		var all *protocol.Layers[string, json.RawMessage]
		for _, shared := range []string{test.earlier, test.later} {
			data, err := task.Data(protocol.TaskData{Goal: "g", Status: protocol.TaskCompleted, Shared: protocol.JSON(shared)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, record := range []protocol.JSON{data, protocol.JSON(`{"text":"no task"}`)} {
				left, err := task.Left(record)
				if err != nil {
					t.Fatal(err)
				}
				all = all.With(left)
			}
		}
		if left, err := task.Shared(all.All()); err != nil || string(left) != test.left {
			t.Errorf("%s, then %s leave %s, %v", test.earlier, test.later, left, err)
		}
	}
}

func TestOnlyTheToolsOfATaskMakeOne(t *testing.T) {
	for list, want := range map[string]bool{
		"":                           false,
		"[]":                         false,
		`[{"name":"read_file"}]`:     false,
		`[{"name":"task_complete"}]`: true,
		`[{"description":"as \"task_complete\" does","name":"x","parameters":{"default":"task_complete"}}]`: false,
		`not JSON "task_complete"`: false,
	} {
		if got := task.Offered(list); got != want {
			t.Errorf("%s: %v", list, got)
		}
	}
}
