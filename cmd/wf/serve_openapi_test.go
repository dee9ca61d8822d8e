package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"wf/api"
	"wf/engine"
	"wf/protocol"
	"wf/roles/schema"
)

// A contract holds the answers of a daemon against the description that it serves, and notes
// which of the described fields it has seen.
type contract struct {
	t    *testing.T
	s    *served
	doc  map[string]any
	seen map[string]bool // Schema.property
}

func newContract(s *served) *contract {
	s.t.Helper()
	c := &contract{t: s.t, s: s, seen: map[string]bool{}}
	if err := json.Unmarshal(c.get("/v1/openapi.json", nil), &c.doc); err != nil {
		s.t.Fatal(err)
	}
	return c
}

func (c *contract) get(path string, status *int) []byte {
	c.t.Helper()
	return c.send("GET", path, nil, status)
}

func (c *contract) send(method, path string, body any, status *int) []byte {
	c.t.Helper()
	var in io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			c.t.Fatal(err)
		}
		in = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(c.t.Context(), method, "http://wf"+path, in)
	if err != nil {
		c.t.Fatal(err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := c.s.client.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	got, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		c.t.Fatal(err)
	}
	if status != nil {
		*status = answer.StatusCode
	}
	return got
}

// holds sends a request and holds the answer against a schema of the description.
func (c *contract) holds(method, path string, body any, status int, name string) {
	c.t.Helper()
	var got int
	b := c.send(method, path, body, &got)
	if got != status {
		c.t.Errorf("%s %s: %d %s, want %d", method, path, got, b, status)
		return
	}
	text, err := json.Marshal(map[string]any{"$ref": "#/components/schemas/" + name, "components": c.doc["components"]})
	if err != nil {
		c.t.Fatal(err)
	}
	compiled, err := schema.Compile(string(text), true)
	if err != nil {
		c.t.Fatal(err)
	}
	if broken := compiled.Validate(b); len(broken) > 0 {
		c.t.Errorf("%s %s is no %s: %v\n%s", method, path, name, broken, b)
		return
	}
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		c.t.Fatal(err)
	}
	c.walk(method+" "+path, c.schema(name), name, v)
}

func (c *contract) schema(name string) map[string]any {
	all := c.doc["components"].(map[string]any)["schemas"].(map[string]any)
	s, ok := all[name].(map[string]any)
	if !ok {
		c.t.Fatalf("no schema %s", name)
	}
	return s
}

// walk notes the fields of a value, and names those that are not described.
func (c *contract) walk(where string, s map[string]any, name string, v any) {
	if ref, ok := s["$ref"].(string); ok {
		name = ref[strings.LastIndexByte(ref, '/')+1:]
		s = c.schema(name)
	}
	if choices, ok := s["oneOf"].([]any); ok {
		if v != nil {
			c.walk(where, choices[0].(map[string]any), name, v)
		}
		return
	}
	switch v := v.(type) {
	case map[string]any:
		properties, ok := s["properties"].(map[string]any)
		if !ok {
			return // any object
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			p, ok := properties[key].(map[string]any)
			if !ok {
				c.t.Errorf("%s: %s.%s is not described", where, name, key)
				continue
			}
			c.seen[name+"."+key] = true
			c.walk(where, p, name+"."+key, v[key])
		}
	case []any:
		items, _ := s["items"].(map[string]any)
		for _, x := range v {
			c.walk(where, items, name, x)
		}
	}
}

// rich is a workflow in which much of what a run can show happens.
const rich = `wf: 1
name: rich
description: Much happens.
inputs: {n: {type: integer, default: 2, description: How many., enum: [1, 2, 3]}}
on: {schedule: {cron: "0 9 * * mon", timezone: Europe/Berlin}}
limits: {steps: 30}
defaults: {model: script/replies.yaml, timeout: 1m}
roles:
  writer: {prompt: You write., retry: {attempts: 2, delay: 1ms}}
  each: {run: 'echo "$ITEM"', env: {ITEM: "${{ item }}"}}
  flaky: {run: "exit 3", continue_on_error: true}
  form: {ask: "Who are you?", form: {type: object, properties: {name: {type: string}}, required: [name]}}
  gate: {ask: "Go on?", choices: [{label: Once more, value: more, primary: true}, {label: Enough, value: stop}], timeout: 720h, on_timeout: stop, remind: 24h, assignees: ada}
edges:
  - {from: START, to: writer, prompt: Begin.}
  - {from: writer, to: each, for_each: "[1, 2]"}
  - {from: each, to: flaky}
  - {from: flaky, to: form}
  - {from: form, to: gate}
  - {from: gate, to: writer, when: output.choice == "more", limit: 1, on_limit: END, prompt: Again.}
  - {from: gate, to: END}
outputs: {who: "${{ steps.form?.output.name ?? '' }}"}
`

const richReplies = `writer#1: [{error: {status: 503}}, {text: first, usage: {input: 100, cached: 10, output: 10}}]
writer#2: [{text: "second\nline", usage: {input: 120, cached: 100, output: 10}}]
`

// What a daemon answers is what it describes: every answer fits its schema, no field is left
// undescribed, and none is described that no answer has.
func TestEveryAnswerIsAsItIsDescribed(t *testing.T) {
	t.Parallel()
	dir := talkDir(t)
	write(t, dir, "replies.yaml", richReplies)
	write(t, dir, "rich.yaml", rich)
	write(t, dir, "slow.yaml", "wf: 1\nname: slow\ndefaults: {timeout: 1m}\nlimits: {steps: 1}\nroles: {a: {run: \"true\"}, nap: {wait: 1h}}\n")
	write(t, dir, "broken.yaml", "wf: 1\nname: broken\ndefaults: {timeout: 1m}\nroles: {a: {run: \"echo x > kept.txt; mkfifo kept.pipe; exit 3\", artifacts: ['kept.*']}}\n")
	write(t, dir, "lost.yaml", "wf: 1\nname: lost\ndefaults: {timeout: 1m}\nroles: {a: {prompt: Hi., model: script/none.yaml}}\n")
	write(t, dir, "danger.yaml", "wf: 1\nname: danger\ndefaults: {timeout: 1m}\nroles: {a: {prompt: Hi., tools: [write_file: ask], model: script/danger-replies.yaml}}\n")
	write(t, dir, "danger-replies.yaml", "a#1: [{tool: write_file, args: {path: out.txt, content: x}}, {text: Done.}]\n")
	write(t, dir, "errand.yaml", "wf: 1\nname: errand\ndefaults: {timeout: 1m}\nlimits: {steps: 4}\nroles: {a: {prompt: Hi., context: task, model: script/errand-replies.yaml}, b: {prompt: Hi., context: task, model: script/errand-replies.yaml}}\nedges: [{from: START, to: a}, {from: a, to: b}, {from: b, to: END}]\n")
	write(t, dir, "errand-replies.yaml", "a#1: [{tool: task_complete, args: {final_response: Ten., summary: Ten sheep., share: {sheep: 10}}, usage: {input: 9, output: 2}}]\n")
	write(t, dir, "clock.yaml", "wf: 1\nname: clock\nsecrets: [NOT_SET]\non: {schedule: {cron: \"0 9 29 2 *\", timezone: Europe/Berlin, overlap: skip, catch_up: none}, webhook: {kind: github, secret: NOT_SET}}\nroles: {a: {set: {x: 1}}}\n")
	write(t, dir, "reused.yaml", "wf: 1\nname: reused\ndefaults: {timeout: 1m}\nroles:\n  copy: {run: cp in.txt out.txt, cache: {inputs: [in.txt], outputs: [out.txt]}}\n  beside: {run: echo x > beside.txt, cache: {inputs: []}}\n")
	write(t, dir, "turn.yaml", "wf: 1\nname: turn\nnotify: [{name: none, webhook: \"http://127.0.0.1:9/\"}]\nconcurrency: {group: g}\ndefaults: {timeout: 1m}\nroles: {a: {ask: Go?}}\n")
	write(t, dir, "refuse.yaml", "wf: 1\nname: refuse\nconcurrency: {group: g, on_busy: refuse}\ndefaults: {timeout: 1m}\nroles: {a: {ask: Go?}}\n")
	write(t, dir, "pair.yaml", "wf: 1\nname: pair\ndefaults: {timeout: 1m}\nroles: {a: {run: \"until [ -e go2 ]; do sleep 0.01; done\", concurrency: h}, b: {run: \"true\", concurrency: h}}\nedges: [{from: START, to: [a, b]}, {from: [a, b], to: END}]\n")
	write(t, dir, "closes.yaml", "wf: 1\nname: closes\ndefaults: {timeout: 1m}\nroles: {a: {ask: Go?}, fails: {run: exit 7}, holds: {run: \"until [ -e go3 ]; do sleep 0.01; done\"}}\nalways: [fails, holds]\n")
	s := startServe(t, dir, "--listen", "unix", "--listen", "127.0.0.1:0", "--workflows", dir)
	write(t, dir, "waits.yaml", "wf: 1\nname: waits\non: {schedule: \"@daily\"}\nroles: {a: {set: {x: 1}}}\n") // nobody trusts it
	c := newContract(s)
	c.holds("GET", "/healthz", nil, 200, "Health")
	c.holds("GET", "/v1/info", nil, 200, "Info")
	c.holds("POST", "/v1/codes", nil, 201, "Code")
	c.holds("GET", "/v1/workflows", nil, 200, "Workflows")
	c.holds("POST", "/v1/runs", map[string]any{"workflow": "rich", "request_id": "r", "created_by": "eve", "tags": []string{"x"}, "caused_by": "7K3Q:3:1", "inputs": map[string]any{"n": 3}}, 201, "Started")
	c.holds("POST", "/v1/runs", map[string]any{"workflow": "rich", "request_id": "r", "created_by": "eve", "tags": []string{"x"}, "caused_by": "7K3Q:3:1", "inputs": map[string]any{"n": 3}}, 200, "Started")
	c.holds("POST", "/v1/runs", map[string]any{"workflow": "rich", "request_id": "r"}, 409, "Error")
	run := s.view(protocol.RunID(s.only())).ID
	at := "/v1/runs/" + string(run)
	waits := func(step string) {
		t.Helper()
		s.await(run, "at "+step, func(v *api.Run) bool { return len(v.Waiting) == 1 && v.Waiting[0].Step == step })
	}
	waits("form#1")
	leap := api.Start{Workflow: "clock", Firing: "2024-02-29T08:00:00Z"}
	c.holds("POST", "/v1/runs", leap, 201, "Started")
	c.holds("POST", "/v1/runs", leap, 200, "Started")
	for _, wrong := range []api.Start{{Workflow: "clock", Firing: "2024-02-29T08:01:00Z"}, {Workflow: "clock", Firing: "soon"}, {Workflow: "rich", Firing: leap.Firing},
		{Workflow: "clock", Firing: leap.Firing, RequestID: "another"}} {
		c.holds("POST", "/v1/runs", wrong, 400, "Error")
	}
	c.holds("GET", "/v1/runs/"+string(engine.RequestRun(protocol.Firing("clock", filepath.Join(dir, "clock.yaml"), time.Date(2024, 2, 29, 8, 0, 0, 0, time.UTC)))), nil, 200, "Run")
	c.holds("POST", "/v1/hooks/clock", map[string]any{}, 401, "Error")
	c.holds("GET", at, nil, 200, "Run")
	c.holds("GET", "/v1/runs?q=ri&tag=x", nil, 200, "Runs")
	c.holds("GET", "/v1/runs?search=rich&since=1h&cost_min=0&tokens_max=9&counts=true", nil, 200, "Runs")
	c.holds("GET", "/v1/runs?search=rich", nil, 200, "Runs")
	c.holds("GET", "/v1/runs?search=%3F", nil, 400, "Error")
	c.holds("POST", at+"/answer", map[string]any{"fields": map[string]any{"name": "Ada"}}, 200, "Accepted")
	waits("gate#1")
	c.holds("GET", at, nil, 200, "Run")
	c.holds("POST", at+"/messages", map[string]any{"source": "mail", "text": "hi"}, 200, "Accepted")
	c.holds("POST", at+"/answer", map[string]any{"choice": "more"}, 200, "Accepted")
	waits("form#2")
	c.holds("GET", at+"/steps/"+url.PathEscape("writer#2")+"/messages", nil, 200, "Messages")
	c.holds("GET", at+"/steps/"+url.PathEscape("writer#2")+"/diff", nil, 200, "Diff")
	c.holds("GET", at+"/steps/"+url.PathEscape("writer#1")+"/diff", nil, 200, "Diff")
	c.holds("GET", at+"/steps/"+url.PathEscape("writer#2")+"/explain", nil, 200, "Explanation")
	c.holds("GET", at+"/steps/"+url.PathEscape("writer#2"), nil, 200, "Step")
	c.holds("GET", at+"/cache", nil, 200, "Cache")
	c.holds("GET", at+"/diff/"+string(run), nil, 200, "RunDiff")
	c.holds("GET", at+"/verify", nil, 200, "Verify")
	for _, by := range []string{"role", "step", "model", "kind"} {
		c.holds("GET", at+"/cost?by="+by, nil, 200, "Cost")
	}
	c.holds("POST", at+"/suspend", nil, 409, "Error")
	c.holds("GET", at, nil, 200, "Run")
	c.holds("POST", at+"/fork", map[string]any{"step": "each#1[0]", "note": "x"}, 201, "Accepted")
	c.holds("POST", at+"/cancel", map[string]any{"reason": "enough"}, 200, "Accepted")
	c.holds("GET", at, nil, 200, "Run")
	c.holds("POST", at+"/cancel", nil, 409, "Error")
	c.holds("GET", "/v1/runs/NONE", nil, 404, "Error")
	c.holds("GET", "/v1/sessions/"+string(run)+"/events?fromSeq=99999", nil, 409, "Error")
	c.holds("POST", "/v1/runs", map[string]any{"workflow": "none"}, 404, "Error")
	c.holds("POST", "/v1/runs", map[string]any{"workflow": "rich", "inputs": map[string]any{"n": 9}}, 422, "Error")

	errand := s.started(map[string]any{"workflow": "errand"})
	s.awaitStatus(errand, protocol.Suspended) // b has no reply
	for _, name := range []string{"broken", "lost"} {
		run := s.started(map[string]any{"workflow": name})
		s.awaitStatus(run, protocol.Suspended)
		c.holds("GET", "/v1/runs/"+string(run), nil, 200, "Run")
		c.holds("GET", "/v1/runs/"+string(run)+"/steps/a%231/artifacts?limit=1", nil, 200, "Artifacts")
		c.holds("GET", "/v1/runs/"+string(run)+"/steps/a%231/artifacts", nil, 200, "Artifacts")
	}
	danger := s.started(map[string]any{"workflow": "danger"})
	s.awaitStatus(danger, protocol.Waiting)
	c.holds("GET", "/v1/runs/"+string(danger), nil, 200, "Run")
	c.holds("POST", "/v1/runs/"+string(danger)+"/answer", map[string]any{"choice": "allow", "shown": "of another call"}, 409, "Error")
	c.holds("POST", "/v1/runs/"+string(danger)+"/answer", map[string]any{"choice": "allow", "shown": s.view(danger).Waiting[0].Shown}, 200, "Accepted")
	s.awaitStatus(danger, protocol.Done)
	c.holds("GET", "/v1/runs/"+string(danger)+"/looks?limit=1", nil, 200, "Looks")
	c.holds("GET", "/v1/runs/"+string(danger)+"/looks", nil, 200, "Looks")
	for _, query := range []string{"", "?before=true", "?limit=1", "?changed=true"} {
		c.holds("GET", "/v1/runs/"+string(danger)+"/steps/a%231/files"+query, nil, 200, "StepFiles")
	}
	c.holds("GET", "/v1/runs/"+string(danger)+"/steps/a%239/files", nil, 404, "Error")
	c.holds("GET", "/v1/runs/"+string(danger)+"/steps/a%231/file?path=none", nil, 404, "Error")
	slow := s.started(map[string]any{"workflow": "slow"})
	s.awaitStatus(slow, protocol.Suspended)
	c.holds("GET", "/v1/runs/"+string(slow), nil, 200, "Run")
	c.holds("POST", "/v1/runs/"+string(slow)+"/resume", map[string]any{"limits": map[string]any{"steps": 9, "duration": "3h"}}, 200, "Accepted")
	s.awaitStatus(slow, protocol.Waiting)
	busy := s.started(map[string]any{"workflow": "block"})
	c.holds("GET", "/v1/runs/"+string(busy), nil, 200, "Run")
	c.holds("GET", "/v1/runs/"+string(busy)+"/diff/"+string(slow), nil, 200, "RunDiff")
	c.holds("GET", "/v1/runs/"+string(busy)+"/steps/"+url.PathEscape(s.view(busy).Steps[0].ID)+"/messages", nil, 200, "Messages")
	fork, err := wfIn(dir, "fork", string(run)+":writer#1").Output() // that no process drives
	if err != nil {
		t.Fatal(err)
	}
	c.holds("GET", "/v1/runs/"+strings.TrimSpace(string(fork)), nil, 200, "Run")
	c.holds("GET", "/v1/runs", nil, 200, "Runs")
	write(t, dir, "go", "")
	s.awaitStatus(busy, protocol.Done)
	c.holds("GET", at+"?limit=1", nil, 200, "Run") // a page of its steps
	c.holds("GET", at+"?status=ok,failed&role=each&limit=1", nil, 200, "Run")
	c.holds("GET", at+"?status=broken", nil, 400, "Error")
	c.holds("GET", "/v1/runs?limit=1", nil, 200, "Runs")
	c.holds("GET", "/v1/runs", nil, 200, "Runs")

	for _, in := range []string{"one", "one", "two"} { // performed, reused, and performed since a file differs
		write(t, dir, "in.txt", in)
		again := s.started(map[string]any{"workflow": "reused"})
		s.awaitStatus(again, protocol.Done)
		c.holds("GET", "/v1/runs/"+string(again), nil, 200, "Run")
		c.holds("GET", "/v1/runs/"+string(again)+"/steps/"+url.PathEscape("copy#1")+"/explain", nil, 200, "Explanation")
		c.holds("GET", "/v1/runs/"+string(again)+"/steps/"+url.PathEscape("beside#1")+"/explain", nil, 200, "Explanation")
		c.holds("GET", "/v1/runs/"+string(again)+"/steps/"+url.PathEscape("copy#1")+"/messages", nil, 200, "Messages")
		c.holds("GET", "/v1/runs/"+string(again)+"/cost?by=step", nil, 200, "Cost")
	}

	holder := s.started(map[string]any{"workflow": "turn"})
	s.awaitStatus(holder, protocol.Waiting)
	told := func() int { return bytes.Count(c.get("/v1/notifications", nil), []byte(`"msg_`)) }
	awaitStore(t, s, func() bool { return told() == 1 }) // once it is cancelled there is nothing to tell
	queued := s.started(map[string]any{"workflow": "turn"})
	s.awaitStatus(queued, protocol.Queued)
	c.holds("GET", "/v1/runs/"+string(queued), nil, 200, "Run")
	c.holds("GET", "/v1/runs?status=queued", nil, 200, "Runs")
	c.holds("POST", "/v1/runs", map[string]any{"workflow": "refuse"}, 409, "Error")
	c.holds("POST", "/v1/runs/"+string(holder)+"/cancel", nil, 200, "Accepted")
	s.awaitStatus(queued, protocol.Waiting)
	awaitStore(t, s, func() bool {
		list := c.get("/v1/notifications", nil)
		return bytes.Contains(list, []byte(`"error"`)) && bytes.Count(list, []byte(`"msg_`)) >= 2
	})
	c.holds("GET", "/v1/notifications", nil, 200, "NotificationList") // which of the two has an error is not said
	c.holds("GET", "/v1/notifications?limit=1", nil, 200, "NotificationList")
	c.holds("GET", "/v1/notifications?run="+string(queued), nil, 200, "NotificationList")
	c.holds("POST", "/v1/notifications/retry", map[string]any{"all": true}, 200, "NotificationsRetried")
	c.holds("POST", "/v1/notifications/retry", map[string]any{"ids": []string{"msg_none"}}, 404, "Error")
	pair := s.started(map[string]any{"workflow": "pair"})
	s.await(pair, "with a step that is queued", func(v *api.Run) bool { return len(v.Steps) == 2 && v.Steps[1].Queue != nil })
	c.holds("GET", "/v1/runs/"+string(pair), nil, 200, "Run")
	write(t, dir, "go2", "")
	s.awaitStatus(pair, protocol.Done)

	closes := s.started(map[string]any{"workflow": "closes"})
	s.awaitStatus(closes, protocol.Waiting)
	c.holds("POST", "/v1/runs/"+string(closes)+"/cancel", nil, 200, "Accepted")
	s.await(closes, "in its second always role", func(v *api.Run) bool { return v.Closing == protocol.Cancelled && len(v.CleanupFailed) == 1 })
	c.holds("GET", "/v1/runs/"+string(closes), nil, 200, "Run")
	c.holds("GET", "/v1/runs", nil, 200, "Runs")
	write(t, dir, "go3", "")
	s.awaitStatus(closes, protocol.Cancelled)

	c.holds("GET", "/v1/runs/"+string(errand)+"/tasks", nil, 200, "TaskList")
	c.holds("GET", "/v1/runs/"+string(errand)+"/tasks?limit=1", nil, 200, "TaskList")
	c.holds("GET", "/v1/runs/"+string(errand)+"/tasks/"+url.PathEscape("a#1"), nil, 200, "RunTask")
	c.holds("GET", "/v1/runs/"+string(errand)+"/tasks/"+url.PathEscape("a#7"), nil, 404, "Error")
	note := func(text string, more map[string]any) map[string]any {
		more["content"] = text
		return more
	}
	c.holds("POST", "/v1/memories/remember", map[string]any{"scope": "notes", "notes": []any{note("one", map[string]any{"tags": []string{"x"}, "pinned": true}),
		note("two", map[string]any{"place": map[string]any{"file": "a.go", "line": 1, "end": 2}}), note("me", map[string]any{"special": "anchor"})}}, 200, "Remembered")
	c.holds("POST", "/v1/memories/remember", map[string]any{"scope": "notes", "notes": []any{note(" ", map[string]any{})}}, 422, "Error")
	c.holds("GET", "/v1/memories", nil, 200, "MemoryScopes")
	c.holds("GET", "/v1/memories/items?scope=notes&limit=2", nil, 200, "Memories")
	c.holds("GET", "/v1/memories/items?scope=notes&sums=true", nil, 200, "Memories")
	c.holds("GET", "/v1/memories/items/1?scope=notes", nil, 200, "OneMemory")
	c.holds("GET", "/v1/memories/items/9?scope=notes", nil, 422, "Error")
	c.holds("POST", "/v1/memories/recall", map[string]any{"scope": "notes", "text": "one"}, 200, "Recalled")
	c.holds("POST", "/v1/memories/recall", map[string]any{"scope": "notes", "text": "one", "model": "nobody/x"}, 503, "Error")
	c.holds("POST", "/v1/memories/change", map[string]any{"scope": "notes", "changes": []any{map[string]any{"id": 2, "pinned": false}}}, 200, "MemoriesChanged")
	c.holds("POST", "/v1/memories/reindex", map[string]any{"scope": "notes"}, 200, "Reindexed")

	svg := string(c.get(at+"/graph", nil))
	if !strings.HasPrefix(svg, "<svg") || !strings.Contains(svg, "taken") || !strings.Contains(svg, "2×") {
		t.Errorf("no picture of the path: %.300s", svg)
	}
	var status int
	if b := c.get("/v1/blocks/"+s.view(run).Head, &status); status != 200 || len(b) == 0 {
		t.Errorf("a block: %d", status)
	}
	c.holds("DELETE", at+"?dry_run=true", nil, 200, "Deleted")
	c.holds("DELETE", at+"?why=old", nil, 200, "Deleted") // its forks hold a part of it
	c.holds("DELETE", at, nil, 410, "Error")
	c.holds("DELETE", "/v1/runs/"+string(pair), nil, 200, "Deleted")
	if err := os.Mkdir(filepath.Join(dir, "swept"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "swept.yaml", "wf: 1\nname: swept\ninputs: {k: {type: integer}}\nroles: {a: {set: {k: \"${{ inputs.k }}\"}}}\n")
	if out, err := wfIn(dir, "sweep", "swept.yaml", "--dir", "swept", "-i", "k=1..2", "--check", "false").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := wfIn(dir, "sweep", "swept.yaml", "--dir", "swept", "-i", "k=3").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c.holds("GET", "/v1/tables?limit=1", nil, 200, "TableList")
	var tables api.TableList
	if err := json.Unmarshal(c.get("/v1/tables", nil), &tables); err != nil || len(tables.Items) != 2 || tables.Items[0].Failed != 0 || tables.Items[1].Failed != 2 || !tables.Items[1].Complete {
		t.Errorf("the tables are %+v, %v", tables, err)
	}
	for _, x := range tables.Items {
		c.holds("GET", "/v1/tables/"+string(x.ID), nil, 200, "Table")
	}
	c.holds("GET", "/v1/tables/NONE", nil, 404, "Error")
	c.holds("GET", "/v1/tables?after=none", nil, 400, "Error")
	c.holds("GET", "/v1/deletions?limit=1", nil, 200, "Deletions")
	c.holds("GET", "/v1/deletions?after=none", nil, 400, "Error")
	c.holds("GET", at, nil, 410, "Error")

	// Described, and served elsewhere or in states that are not made here.
	elsewhere := map[string]bool{
		"Looks.why": true, "Looks.own": true, "Look.failed": true, "StepFile.why": true, "Runs.unread": true, "Accepted.warnings": true, "Run.leftovers": true, "Run.mend": true, "Run.mend.step": true, "Run.mend.after": true, "Run.cause": true, "StepView.compactions": true, "StepView.corrections": true, "StepView.cut_off": true, "StepView.held": true, "StepView.child": true, "RunRow.agent": true, "RunInfo.parent.run": true, "RunInfo.parent.step": true,
		"StepView.workspace.git_head": true, "StepView.workspace.dirty": true, "CostRow.goal": true, "Cache.compactions": true, "Cache.min_compacted": true, "Run.foreign": true, "RunRow.foreign": true, "Run.lacks": true, "RunRow.lacks": true, "RunInfo.machine": true, "Workflow.waits_for_trust": true, "Workflow.stopped_since": true, "Notification.trigger": true,
		"Task.failed": true, "MemoryItem.run": true, "MemoryItem.step": true, "Waiting.escalated": true, "Notification.reminder": true, "Notification.escalated": true, "Sink.to": true, "TableRow.others": true, "Sink.on": true, "Sink.workflows": true,
	}
	for _, schema := range []string{"Health", "Info", "Code", "Workflows", "Workflow", "Started", "Accepted", "Runs", "RunRow", "Run", "RunInfo", "StepView", "Waiting", "Choice", "Usage", "Timing", "Failure", "Messages", "Diff", "RunDiff", "Explanation", "Cache", "Verify", "Cost", "CostRow", "Error",
		"TaskList", "Task", "MemoryScopes", "MemoryScope", "Memories", "MemoryItem", "OneMemory", "Recalled", "Remembered", "MemoriesChanged", "Reindexed", "Artifacts", "Artifact", "Looks", "Look", "StepFiles", "StepFile", "NotificationList", "Notification", "Sink", "NotificationsRetried", "Deletions", "Deletion"} {
		for _, p := range slices.Sorted(maps.Keys(c.schema(schema)["properties"].(map[string]any))) {
			if name := schema + "." + p; !c.seen[name] && !elsewhere[name] {
				t.Errorf("%s is described, and no answer has it", name)
			}
		}
	}
}

// only is the one run of the daemon.
func (s *served) only() string {
	s.t.Helper()
	var list struct{ Items []api.Row }
	if s.call("GET", "/v1/runs", nil, &list); len(list.Items) != 1 {
		s.t.Fatalf("%d runs", len(list.Items))
	}
	return string(list.Items[0].ID)
}
