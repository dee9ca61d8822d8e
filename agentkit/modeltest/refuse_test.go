package modeltest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// Each is a request in the words of a wire, %s the part in question; good is taken, and each of bad is refused for
// what it names.
var refusals = map[string]struct {
	path, request string
	good          []string
	bad           map[string]string // part → words of the refusal
}{
	"openai calls": {
		"/v1/chat/completions", `{"messages":[{"role":"user","content":"hi"},%s]}`,
		[]string{`{"role":"assistant","content":"ho"}`, `{"role":"assistant","content":null,"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":""}`},
		map[string]string{
			`{"role":"user","content":""}`:                     "empty content",
			`{"role":"assistant","content":null}`:              "expected a string",
			`{"role":"tool","tool_call_id":"a","content":"x"}`: "preceding message",
			`{"role":"assistant","content":null,"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}`:                                                     "no result",
			`{"role":"assistant","content":null,"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]},{"role":"user","content":"x"}`:                       "must be followed",
			`{"role":"assistant","content":null,"tool_calls":[{"id":"","function":{"name":"f","arguments":"{}"}}]}`:                                                      "there twice",
			`{"role":"assistant","content":null,"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"a","function":{"name":"f","arguments":"{}"}}]}`: "there twice",
			`{"role":"assistant","content":null,"tool_calls":[{"id":"a","function":{"name":"f f","arguments":"{}"}}]}`:                                                   "does not match",
			`{"role":"assistant","content":null,"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x\": oops"}}]}`:                                           "no JSON object",
			`{"role":"assistant","content":null,"tool_calls":[{"id":"a","function":{"name":"f","arguments":"null"}}]}`:                                                   "no JSON object",
		}},
	"openai members": {
		"/v1/chat/completions", `{"messages":[{"role":"user","content":"hi"}],%s}`,
		[]string{`"stream":true,"stream_options":{}`, `"tools":[{"function":{"name":"f"}}],"tool_choice":"none"`},
		map[string]string{`"stream_options":{}`: "stream", `"tools":[]`: "empty array", `"tool_choice":"none"`: "only allowed", `"tools":[{"function":{"name":"f"}},{"function":{"name":"f"}}]`: "twice"}},
	"anthropic members": {
		"/v1/messages", `{"model":"claude-opus-5-5","messages":[{"role":"user","content":"hi"}],%s}`,
		[]string{`"max_tokens":1`, `"max_tokens":1,"tools":[{"name":"f"}],"system":"be good"`},
		map[string]string{`"x":1`: "max_tokens", `"max_tokens":1,"temperature":0`: "temperature", `"max_tokens":1,"thinking":{"budget_tokens":5}`: "budget_tokens",
			`"max_tokens":1,"tools":[{"name":"f"},{"name":"f"}]`: "unique", `"max_tokens":1,"tools":[{"name":"f.g"}]`: "match pattern"}},
	"anthropic messages": {
		"/v1/messages", `{"max_tokens":1,"messages":[%s]}`,
		[]string{`{"role":"user","content":[{"type":"text","text":"hi"}]}`,
			`{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"},{"type":"text","text":"and"}]}`},
		map[string]string{
			``:                                   "at least one",
			`{"role":"assistant","content":"x"}`: "first message",
			`{"role":"user","content":"hi"},{"role":"assistant","content":"x"}`: "prefill",
			`{"role":"user","content":[]}`:                                      "non-empty",
			`{"role":"user","content":" \n"}`:                                   "non-whitespace",
			`{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":""}]},{"role":"user","content":"x"}`:                                                                     "signature",
			`{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":[]}]},{"role":"user","content":"x"}`:                                                                     "dictionary",
			`{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"a.b","name":"f","input":{}}]},{"role":"user","content":"x"}`:                                                                   "match pattern",
			`{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":"x"}`:                  "unique",
			`{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":"x"}`:                                                                     "without `tool_result`",
			`{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"text","text":"and"},{"type":"tool_result","tool_use_id":"a"}]}`: "come first",
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}`:                                                                                                                                                 "unexpected",
			`{"role":"user","content":[` + strings.Repeat(`{"type":"text","text":"x","cache_control":{"type":"ephemeral"}},`, 4) + `{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}]}`:                             "maximum of 4",
			`{"role":"user","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}},{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"1h"}}]}`:                                               "ttl",
			`{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s","cache_control":{"type":"ephemeral"}}]},{"role":"user","content":"x"}`:                               "not permitted",
		}},
}

func TestWhatProvidersRefuseIsRefused(t *testing.T) {
	s := Serve(t, func(Request) Answer { return Text("fine") })
	for name, c := range refusals {
		for _, part := range c.good {
			if status, body := post(t, s, c.path, fmt.Sprintf(c.request, part)); status != http.StatusOK {
				t.Errorf("%s: %s is refused: %s", name, part, body)
			}
		}
		before := len(s.Refused())
		for part, want := range c.bad {
			if status, body := post(t, s, c.path, fmt.Sprintf(c.request, part)); status != http.StatusBadRequest || !strings.Contains(body, want) {
				t.Errorf("%s: %s: %d %s, want %q", name, part, status, body, want)
			}
		}
		if n := len(s.Refused()) - before; n != len(c.bad) {
			t.Errorf("%s: %d refusals are noted of %d", name, n, len(c.bad))
		}
	}
}

// A thought goes back where it was thought, and nowhere else: whatever before it changes, left out or put in, is
// refused.
func TestAThoughtIsBoundToWhatStandsBeforeIt(t *testing.T) {
	s := Serve(t, func(Request) Answer {
		return Answer{Say: []Piece{{Text: "I "}, {Text: "see."}, {Thinking: "hm"}, {Thinking: "m"}, {Call: &CallPiece{ID: "a", Name: "f"}}, {Call: &CallPiece{Args: `{"b":1,"a":2}`}},
			{Block: map[string]any{"type": "server_tool_use", "id": "s"}}, {Thinking: "oh"}, {Finish: "tool_calls"}}}
	})
	s.Binds = true
	const head = `{"max_tokens":1,"tools":[{"name":"f","cache_control":{"type":"ephemeral"}}],"system":"be good","messages":[{"role":"user","content":"hi"}`
	_, stream := post(t, s, "/v1/messages", head+`]}`)
	var signed []string
	for _, line := range strings.Split(stream, "\n") {
		var e struct{ Delta struct{ Signature string } }
		if json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &e) == nil && e.Delta.Signature != "" {
			signed = append(signed, e.Delta.Signature)
		}
	}
	if len(signed) != 2 {
		t.Fatalf("%d thoughts are signed in\n%s", len(signed), stream)
	}
	good := head + `},{"role":"assistant","content":[{"text":"I see.","type":"text"},{"type":"thinking","thinking":"hmm","signature":"` + signed[0] +
		`"},{"type":"tool_use","id":"a","name":"f","input":{"a":2,"b":1}},{"type":"server_tool_use","id":"s"},{"type":"thinking","thinking":"oh","signature":"` + signed[1] + `"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}]}`
	good = strings.Replace(good, `"content":"hi"}}`, `"content":"hi"}`, 1)
	if status, body := post(t, s, "/v1/messages", good); status != http.StatusOK {
		t.Fatalf("what was thought is refused: %s", body)
	}
	for was, is := range map[string]string{"be good": "be bad", `"content":"hi"`: `"content":"ho"`, `"name":"f","cache`: `"name":"g","cache`, "I see.": "I saw.", "hmm": "hm", `"a":2`: `"a":3`,
		`{"text":"I see.","type":"text"},`: ``, `"id":"s"`: `"id":"t"`} {
		if status, body := post(t, s, "/v1/messages", strings.Replace(good, was, is, 1)); status != http.StatusBadRequest || !strings.Contains(body, "different conversation") {
			t.Errorf("%s for %s: %d %s", is, was, status, body)
		}
	}
}

func post(t *testing.T, s *Server, path, body string) (int, string) {
	t.Helper()
	r, err := http.Post(s.Root+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b)
}
