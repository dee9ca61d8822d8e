package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"wf/agentkit/modeltest"
	"wf/api"
)

// dialect is how some server of OpenAI's wire answers first; to the second request it says "done".
type dialect struct {
	body   string // the whole answer; without it
	events []string
	kind   string   // content type, of a stream without it
	calls  int      // of read_file, which are answered
	text   string   // that is the answer of the agent, "done" after calls
	back   []string // what its server wants to have back in the second request
	reads  bool     // the calls read the file
}

// chunk is an event with a delta, and why it ended.
func chunk(delta, finish string, more ...string) string {
	reason := "null"
	if finish != "" {
		reason = fmt.Sprintf("%q", finish)
	}
	return fmt.Sprintf(`{"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":%s,"finish_reason":%s}]%s}`, delta, reason, strings.Join(more, ""))
}

// reading is a call of read_file within a delta: its index, id, arguments as they are sent, and further members.
func reading(index int, id, args string, more ...string) string {
	return fmt.Sprintf(`{"index":%d,"id":%q,"type":"function","function":{"name":"read_file","arguments":%s}%s}`, index, id, args, strings.Join(more, ""))
}

const itsPath = `"{\"path\":\"w.yaml\"}"`

// called is a delta with calls and the end of a stream.
func called(finish string, calls ...string) []string {
	return []string{chunk(`{"role":"assistant","tool_calls":[`+strings.Join(calls, ",")+`]}`, ""), chunk("{}", finish)}
}

// worldDialects are those that users met: Google's, DeepSeek's, OpenRouter's, Mistral's, Azure's, Ollama's, vLLM's,
// Groq's and those of gateways between.
var worldDialects = map[string]dialect{
	"google":      {events: called("tool_calls", reading(0, "c1", itsPath, `,"extra_content":{"google":{"thought_signature":"SIG=="}}`)), calls: 1, reads: true, back: []string{`"extra_content":{"google":{"thought_signature":"SIG=="}}`}},
	"google two":  {events: called("tool_calls", reading(0, "c1", itsPath, `,"extra_content":{"google":{"thought_signature":"ONE"}}`), reading(1, "c2", itsPath)), calls: 2, reads: true, back: []string{`"thought_signature":"ONE"`}},
	"deepseek":    {events: append([]string{chunk(`{"role":"assistant","content":null,"reasoning_content":"let me "}`, ""), chunk(`{"content":null,"reasoning_content":"think"}`, "")}, called("tool_calls", reading(0, "c1", itsPath))...), calls: 1, reads: true, back: []string{`"reasoning_content":"let me think"`}},
	"openrouter":  {events: append([]string{chunk(`{"role":"assistant","content":"","reasoning":"think","reasoning_details":[{"type":"reasoning.text","text":"think","signature":"SIG","format":"anthropic-claude-v1","index":0}]}`, "")}, called("tool_calls", reading(0, "c1", itsPath))...), calls: 1, reads: true, back: []string{`"reasoning_details":[{`, `"signature":"SIG"`}},
	"encrypted":   {events: append([]string{chunk(`{"role":"assistant","content":"","reasoning_details":[{"type":"reasoning.encrypted","data":"ENC","id":"rs_1","format":"openai-responses-v1","index":0}]}`, "")}, called("tool_calls", reading(0, "c1", itsPath))...), calls: 1, reads: true, back: []string{`"data":"ENC"`}},
	"mistral":     {events: []string{chunk(`{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}`, ""), chunk(`{"content":[{"type":"text","text":"part "}]}`, ""), chunk(`{"content":"answer"}`, "stop")}, text: "part answer"},
	"no choices":  {events: []string{`{"id":"x","choices":null,"usage":null}`, chunk(`{"content":"ok"}`, "stop")}, text: "ok"},
	"azure":       {events: []string{`{"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[{"prompt_index":0,"content_filter_results":{}}]}`, chunk(`{"role":"assistant","content":"ok","refusal":null}`, ""), chunk("{}", "stop"), `{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7,"prompt_tokens_details":{"cached_tokens":0}}}`}, text: "ok"},
	"comments":    {body: ": OPENROUTER PROCESSING\n\n: ping\n\ndata:" + chunk(`{"content":"ok"}`, "") + "\r\n\r\nevent: message\nid: 5\nretry: 10\ndata: " + chunk("{}", "stop") + "\n\ndata: [DONE]\n\n", text: "ok"},
	"whole":       {body: `{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"whole","tool_calls":null},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2}}`, kind: "application/json", text: "whole"},
	"whole call":  {body: `{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[` + reading(0, "c1", itsPath) + `]},"finish_reason":"tool_calls"}]}`, kind: "application/json", calls: 1, reads: true},
	"whole parts": {body: `{"choices":[{"index":0,"message":{"role":"assistant","content":[{"type":"text","text":"in "},{"type":"text","text":"parts"}]},"finish_reason":"stop"}]}`, kind: "application/json", text: "in parts"},
	"ollama":      {events: []string{chunk(`{"role":"assistant","content":"","tool_calls":[`+reading(0, "call_x", itsPath)+`]}`, ""), chunk(`{"role":"assistant","content":""}`, "tool_calls")}, calls: 1, reads: true},
	"stop":        {events: called("stop", reading(0, "c1", itsPath)), calls: 1, reads: true},
	"no name":     {events: called("tool_calls", `{"index":0,"id":"c9","function":{"arguments":"{}"}}`), calls: 1},
	"no ids":      {events: called("tool_calls", reading(0, "", itsPath), reading(1, "", itsPath)), calls: 2, reads: true},
	"same ids":    {events: called("tool_calls", reading(0, "read_file", itsPath), reading(1, "read_file", itsPath)), calls: 2, reads: true},
	"odd name":    {events: called("tool_calls", `{"index":0,"id":"c1","type":"function","function":{"name":"functions.Read file","arguments":"{}"}}`), calls: 1},
	"one index":   {events: called("tool_calls", reading(0, "c1", itsPath), reading(0, "c2", itsPath)), calls: 2, reads: true},
	"one index, no ids": {events: []string{chunk(`{"tool_calls":[{"index":0,"function":{"name":"read_file","arguments":`+itsPath+`}}]}`, ""),
		chunk(`{"tool_calls":[{"index":0,"function":{"name":"read_file","arguments":"{\"path\": \"w.yaml\"}"}}]}`, "tool_calls")}, calls: 2, reads: true},
	"interleaved": {events: []string{chunk(`{"tool_calls":[{"index":0,"id":"c1","function":{"name":"read_file","arguments":"{\"pa"}},{"index":1,"id":"c2","function":{"name":"read_file","arguments":"{\"pat"}}]}`, ""),
		chunk(`{"tool_calls":[{"index":1,"function":{"arguments":"h\":\"w.yaml\"}"}}]}`, ""), chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"th\":\"w.yaml\"}"}}]}`, "tool_calls")}, calls: 2, reads: true},
	"custom":          {events: called("tool_calls", `{"index":0,"id":"c1","type":"custom","custom":{"name":"x","input":"y"}}`), calls: 1},
	"encoded twice":   {events: called("tool_calls", reading(0, "c1", `"\"{\\\"path\\\":\\\"w.yaml\\\"}\""`)), calls: 1, reads: true},
	"no arguments":    {events: called("tool_calls", reading(0, "c1", `""`)), calls: 1},
	"null arguments":  {events: called("tool_calls", reading(0, "c1", `"null"`)), calls: 1},
	"bad arguments":   {events: called("tool_calls", reading(0, "c1", `"{\"path\": \"He said \"no\"\"}"`)), calls: 1},
	"a list":          {events: called("tool_calls", reading(0, "c1", `"[1, 2]"`)), calls: 1},
	"usage in floats": {events: []string{chunk(`{"content":"ok"}`, ""), chunk("{}", "stop", `,"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7,"cost":0.0001,"is_byok":false,"cost_details":{"upstream_inference_cost":null},"prompt_tokens_details":null}`)}, text: "ok"},
	"usage in texts":  {events: []string{chunk(`{"content":"ok"}`, ""), chunk("{}", "stop", `,"usage":{"prompt_tokens":5.0,"completion_tokens":"2"}`)}, text: "ok"},
	"usage of groq":   {events: []string{chunk(`{"content":"ok"}`, ""), chunk("{}", "stop", `,"x_groq":{"id":"r","usage":{"prompt_tokens":5}},"usage":null`)}, text: "ok"},
	"annotations":     {events: []string{chunk(`{"content":"ok","annotations":[{"type":"url_citation"}],"audio":null,"function_call":null}`, ""), chunk("{}", "stop")}, text: "ok"},
	"native reasons":  {events: []string{chunk(`{"content":"ok"}`, ""), `{"choices":[{"index":0,"delta":{},"finish_reason":"stop","native_finish_reason":"STOP","logprobs":null}],"provider":"x","service_tier":null}`}, text: "ok"},
}

// Every dialect is understood: calls are performed, what the server sent beside comes back to it, and the requests
// that follow are refused by nobody, however odd the answer was.
func TestF106DialectsOfOpenAIsWire(t *testing.T) {
	t.Parallel()
	second := make(chan modeltest.Request, 2*len(worldDialects))
	s := modeltest.Serve(t, func(r modeltest.Request) modeltest.Answer {
		d := worldDialects[itemOf(r)]
		switch {
		case r.Results() > 0:
			second <- r
			return modeltest.Text("done")
		case d.body != "" && d.kind != "":
			return modeltest.Answer{Header: map[string]string{"Content-Type": d.kind}, Body: d.body}
		case d.body != "":
			return modeltest.Answer{Body: d.body}
		}
		return modeltest.Answer{Say: nil, Events: append(slices.Clone(d.events), "[DONE]"), End: true}
	})
	names := slices.Sorted(maps.Keys(worldDialects))
	w := inWorld(t, s, `wf: 1
name: dialects
limits: {tokens: 9000000}
defaults: {model: local/m, timeout: 2m}
roles: {a: {prompt: You read., tools: [read_file]}}
`+overItems(t, names))
	w.ends(0, "run", "w.yaml", "-q", "--patience", "0")
	close(second)
	got, requests := map[string]modeltest.Request{}, len(names)
	for r := range second {
		got[itemOf(r)] = r
	}
	var v api.Run
	w.read(&v, "show", "-1")
	w.is("visits", len(v.Steps), len(names))
	for i, name := range names {
		d, r := worldDialects[name], got[name]
		want := d.text
		if d.calls > 0 {
			want = "done"
			requests++
		}
		for _, step := range v.Steps {
			if step.Item != nil && *step.Item == i {
				w.is(name+": the answer", step.Text, want)
				w.is(name+": tool calls", step.ToolCalls, d.calls)
			}
		}
		w.is(name+": results that come back", r.Results(), d.calls)
		w.is(name+": results that hold the file", strings.Count(string(r.Body), `name: dialects\n`), map[bool]int{true: d.calls}[d.reads])
		for _, back := range d.back {
			w.claim(strings.Contains(string(r.Body), back), "%s: no %s in\n%s", name, back, r.Body)
		}
	}
	w.is("requests", len(s.Requests()), requests)
	w.over()
}

// An error in the middle of a stream is the provider's, also beside a choice, and what had come is no answer.
func TestF106AnErrorWithinAStream(t *testing.T) {
	t.Parallel()
	s := modeltest.Serve(t, func(modeltest.Request) modeltest.Answer {
		return modeltest.Answer{End: true, Events: []string{chunk(`{"content":"half"}`, ""), `{"error":{"code":502,"message":"the upstream is gone","metadata":{"provider_name":"X"}},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`}}
	})
	w := inWorld(t, s, fmt.Sprintf(worldWorks, "local/m"))
	exit, _, said := w.try("run", "w.yaml", "--patience", "0")
	w.claim(exit == 1 && strings.Contains(said, "the upstream is gone"), "exit %d\n%s", exit, said)
	w.is("requests", len(s.Requests()), 1)
	w.over()
}
