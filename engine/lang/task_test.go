package lang_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/engine/lang"
	"wf/protocol"
)

const clerkYAML = `wf: 1
name: t
limits: {cost_usd: 1, duration: 1h}
roles:
  clerk: {prompt: Go., %s}
edges:
  - {from: START, to: clerk}
  - {from: clerk, to: END, when: '%s'}
  - {from: clerk, to: FAIL}
`

func TestTheOptionsOfTasks(t *testing.T) {
	two, none := 2, 0
	for _, test := range []struct {
		role string
		want *protocol.TaskSpec
		err  string
	}{
		{"context: task", nil, ""},
		{"context: task, task: {summaries: 3, summary: agent, words: 200}", nil, ""},
		{"context: task, task_summaries: 2", &protocol.TaskSpec{Summaries: &two}, ""},
		{"context: task, task: {summaries: 2}, task_summaries: 9", &protocol.TaskSpec{Summaries: &two}, ""},
		{"context: task, task_summaries: 0", &protocol.TaskSpec{Summaries: &none}, ""},
		{"context: task, task: {summary: model, words: 50, model: a/b}", &protocol.TaskSpec{Summary: protocol.SummaryByModel, Words: 50, Model: "a/b"}, ""},
		{"context: task, task: {summary: none}", &protocol.TaskSpec{Summary: protocol.SummaryNone}, ""},
		{"context: task, task: {summary: me}", nil, "agent, model, none"},
		{"context: task, task: {words: 0}", nil, "at least 1"},
		{"context: task, task: {wrods: 5}", nil, "words"},
		{"context: task, task_summaries: -1", nil, "at least 0"},
		{"context: tasks", nil, "task"},
	} {
		t.Run(test.role, func(t *testing.T) {
			p, ds := lang.Load(fmt.Appendf(nil, clerkYAML, test.role, `output.text != ""`), lang.Options{})
			if test.err != "" {
				if p != nil || len(ds) == 0 || !strings.Contains(ds[0].Message+ds[0].Hint, test.err) {
					t.Errorf("have %+v", ds)
				}
				return
			}
			if p == nil {
				t.Fatal(ds[0].Message)
			}
			if d := cmp.Diff(test.want, p.Workflow.Roles[0].Task); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestExpressionsKnowTheFieldsOfATask(t *testing.T) {
	for _, test := range []struct {
		role, when string
		ok         bool
	}{
		{"context: task", `output.goal == "x" && output.summary != "" && output.state != "" && output.question == ""`, true},
		{"context: task", `output.shared?.db == "Postgres"`, true},
		{"context: task", `output.mood == "x"`, false},
		{"context: fresh", `output.goal == "x"`, false},
		{"context: task, output: {type: object, properties: {status: {enum: [done, stuck]}}}", `output.status == "done" && output.task.summary != ""`, true},
		{"context: task, output: {type: object, properties: {status: {enum: [done, stuck]}}}", `output.goal == "x"`, false},
	} {
		p, ds := lang.Load(fmt.Appendf(nil, clerkYAML, test.role, test.when), lang.Options{})
		if (p != nil) != test.ok {
			t.Errorf("%s, %s: %+v", test.role, test.when, ds)
		}
	}
}
