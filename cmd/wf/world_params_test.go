package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/agentkit/modeltest"
)

// A provider that reports no tokens is counted by what is sent to it: a limit of 500 stops a run after four requests
// at most.
func TestF116TokensAreBoundedWhereNoneAreReported(t *testing.T) {
	t.Parallel()
	for _, m := range worldModels {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			s := modeltest.Serve(t, func(r modeltest.Request) modeltest.Answer {
				a := nextEffect(r.Results(), "effects")
				if r.Results() == 15 {
					a = modeltest.Text("done")
				}
				a.Usage = false
				return a
			})
			w := inWorld(t, s, strings.Replace(fmt.Sprintf(worldWorks, m.model), "tokens: 90000000", "tokens: 500", 1))
			exit, _, said := w.try("run", "w.yaml", "-q")
			w.is("exit", exit, 6)
			w.claim(strings.Contains(said, "tokens"), "the limit is not named in\n%s", said)
			b, err := os.ReadFile(filepath.Join(w.dir, "effects"))
			w.claim(err == nil || os.IsNotExist(err), "%v", err)
			n := len(s.Requests())
			w.claim(n >= 1 && n <= 4, "%d requests, want 1 to 4", n)
			w.claim(bytes.Count(b, []byte("\n")) <= n, "%d effects of %d requests", bytes.Count(b, []byte("\n")), n)
			w.over()
		})
	}
}

// params are values that look like others: each reaches the provider as it is written.
const worldParams = `{"temperature":0,"top_p":0.95,"seed":42,"stop":["1.5","END"],"reasoning_effort":"high","max_completion_tokens":100,"parallel_tool_calls":false,` +
	`"logit_bias":{"50256":-100},"service_tier":"flex","user":"1.0","metadata":{"version":"2.0","on":"yes"},"frequency_penalty":1.0,` +
	`"response_format":{"type":"json_schema","json_schema":{"name":"x","strict":true,"schema":{"type":"object","properties":{"v":{"enum":["1.0","2.0"]}}}}}}`

func TestF113ParamsArriveAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	s := modeltest.Serve(t, func(modeltest.Request) modeltest.Answer { return modeltest.Text("Fine.") })
	w := inWorld(t, s, "wf: 1\nname: params\nlimits: {tokens: 9000000}\ndefaults: {model: local/m, timeout: 1m}\nroles: {a: {prompt: Hi., params: "+worldParams+"}}\n")
	w.ends(0, "run", "w.yaml", "-q")
	w.is("requests", len(s.Requests()), 1)
	var want, got map[string]any
	for text, into := range map[string]*map[string]any{worldParams: &want, string(s.Requests()[0].Body): &got} {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range want {
		w.is(name, asJSON(t, got[name]), asJSON(t, value))
	}
	w.over()
}

// A param of another kind than the wire takes, or one that wf sets itself, is refused with its place before anything
// is sent.
func TestF113ParamsThatNoWireTakesAreRefused(t *testing.T) {
	t.Parallel()
	for _, param := range []string{`max_tokens: "5"`, "stream: true", "model: other", "tools: []", "messages: []"} {
		t.Run(param, func(t *testing.T) {
			t.Parallel()
			s := modeltest.Start(t)
			w := inWorld(t, s, "wf: 1\nname: params\nlimits: {tokens: 9000000}\ndefaults: {model: local/m, timeout: 1m}\nroles:\n  a: {prompt: Hi., params: {"+param+"}}\n")
			for _, command := range []string{"validate", "run"} {
				exit, out, said := w.try(command, "w.yaml")
				if exit != 3 || !strings.Contains(out+said, "w.yaml:6:") {
					t.Errorf("wf %s: exit %d\n%s%s", command, exit, out, said)
				}
			}
			if n := len(s.Requests()); n > 0 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
