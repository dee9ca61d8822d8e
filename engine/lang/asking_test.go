package lang

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestWhatAQuestionSaysOfItsTimesAndPeople(t *testing.T) {
	for keys, want := range map[string]string{
		"timeout: 1h":                       `{"timeout_us":3600000000}`,
		"timeout: 1h, on_timeout: fail":     `{"timeout_us":3600000000}`,
		"timeout: 1h, on_timeout: drop":     `{"timeout_us":3600000000,"on_timeout":"drop"}`,
		"timeout: 1h, on_timeout: escalate": `{"timeout_us":3600000000,"escalate":[[],[],[]]}`,
		"timeout: 1h, assignees: anna, on_timeout: {escalate: [ben, [dora, carla, dora]], then: drop}": `{"timeout_us":3600000000,"on_timeout":"drop","escalate":[["ben"],["carla","dora"]],"assignees":["anna"]}`,
		"remind: [2m, 1m, 2m]":        `{"remind_us":[60000000,120000000]}`,
		"assignees: [ben, anna, ben]": `{"assignees":["anna","ben"]}`,
		"max_visits: 2":               "null",
		// Refused.
		"on_timeout: drop":                           "on_timeout means nothing beside ask without timeout",
		"retry: 2":                                   "retry means nothing beside ask without timeout",
		"assignees: a, retry: 2":                     "retry means nothing beside ask without timeout",
		"timeout: 1h, on_timeout: away":              "none of its choices",
		"timeout: 1h, on_timeout: {escalate: [ben]}": "anyone may answer it already",
		"timeout: 1h, assignees: a, on_timeout: {escalate: [b, c, d, e]}":        "escalates 4 times; at most 3",
		"timeout: 1h, assignees: a, on_timeout: {escalate: [b], then: escalate}": "none of its choices",
		"timeout: 1h, assignees: a, on_timeout: {then: drop}":                    "escalate",
		"timeout: 1h, remind: [10m, 1h]":                                         "at which the question is over",
		"remind: soon":                                                           "duration",
		"assignees: []":                                                          "empty",
		`assignees: " anna"`:                                                     "a name",
		"timeout: 0s":                                                            "duration",
	} {
		p, ds := Load([]byte("wf: 1\nname: t\nroles: {a: {ask: Publish?, choices: [publish, drop], "+keys+"}}"), Options{})
		if p == nil {
			if len(ds) == 0 || !strings.Contains(ds[0].Message, want) {
				t.Errorf("%s: refused by %v, want %s", keys, ds, want)
			}
			continue
		}
		got, err := json.Marshal(p.Workflow.Roles[0].Asking)
		if err != nil || string(got) != want || p.Workflow.Roles[0].Timeout != 0 {
			t.Errorf("%s: have %s (%v), want %s", keys, got, err, want)
		}
	}
}

func TestAWordForNoAnswerIsNoChoice(t *testing.T) {
	for role, want := range map[string]string{
		"{ask: Go?, choices: [go, fail], timeout: 1h, on_timeout: fail}":                                                                "is a choice and what happens without an answer",
		"{ask: Go?, timeout: 1h, on_timeout: stop}":                                                                                     "none of its choices",
		"{ask: Go?, choices: [go], timeout: 1h, on_timeout: go, form: {type: object, required: [n], properties: {n: {type: integer}}}}": "must be filled in",
		"{ask: Go?, choices: [go], timeout: 1h, on_timeout: go, form: {type: object, properties: {n: {type: integer}}}}":                "",
		"{ask: Go?, choices: \"${{ inputs.c }}\", timeout: 1h, on_timeout: go}":                                                         "",
		"{run: ls, timeout: 1h, on_timeout: fail}":                                                                                      "on_timeout means nothing beside run",
	} {
		p, ds := Load([]byte("wf: 1\nname: t\ninputs: {c: {type: array, required: true}}\nroles: {a: "+role+"}"), Options{})
		if want == "" && p == nil || want != "" && (p != nil || !strings.Contains(ds[0].Message, want)) {
			t.Errorf("%s: %v, want %q", role, ds, want)
		}
	}
}
