package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/daemon"
	"wf/engine"
	"wf/protocol"
)

// A token of scope run starts workflows that are listed, under the models that they and the owner name:
// a local file as model is what its holder wrote, and a dear one is the owner's money. A token of
// scope answer answers, and nothing else.
func TestATokenMayDoWhatItsScopesSay(t *testing.T) {
	t.Parallel()
	dir := talkDir(t)
	config := filepath.Join(dir, ".config", "wf", "config.yaml")
	if err := os.MkdirAll(filepath.Dir(config), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte("allow_models: [openai/gpt-5*, script/allowed.yaml, script/*]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "evil.yaml", "- text: hello\n")
	s := startServe(t, dir, "--listen", "unix", "--listen", "127.0.0.1:0", "--workflows", dir)
	tokens := map[string]string{"run": strings.Repeat("run0", 11)[:43], "answer": strings.Repeat("answ", 11)[:43], "read": strings.Repeat("read", 11)[:43]}
	f, err := os.OpenFile(s.said.TokenFile, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for scope, token := range tokens {
		if _, err := f.WriteString(token + " " + scope + "\n"); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	owner, err := daemon.ReadToken(s.said.TokenFile)
	if err != nil {
		t.Fatal(err)
	}
	tokens["owner"] = owner
	post := func(token, path string, body any) (int, string) {
		t.Helper()
		b, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(t.Context(), "POST", s.said.Listen[1].URL+path, strings.NewReader(string(b)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+tokens[token])
		r.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		said, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(said)
	}
	start := func(request, model string) map[string]any {
		job := map[string]any{"workflow": "talk", "inputs": map[string]any{"topic": "snow"}, "request_id": request}
		if model != "" {
			job["models"] = map[string]any{"": []string{model}}
		}
		return job
	}
	for _, test := range []struct {
		token, model string
		status       int
	}{
		{"run", "", 201},
		{"run", "script/replies.yaml", 201}, // the workflow names it
		{"run", "script/allowed.yaml", 201}, // the owner named it
		{"run", "openai/gpt-5-mini", 503},   // allowed, and there is no key
		{"run", "openai/dear", 403},
		{"run", "script/evil.yaml", 403},
		{"run", "script/" + filepath.Join(dir, "replies.yaml"), 403},
		{"run", "tape/evil", 403},
		{"answer", "", 403},
		{"read", "", 403},
		{"owner", "script/evil.yaml", 201},
	} {
		request := test.token + test.model
		status, said := post(test.token, "/v1/runs", start(request, test.model))
		if status != test.status || status == 403 && !strings.Contains(said, `"code":"forbidden"`) {
			t.Errorf("%s starts under %q: %d %s", test.token, test.model, status, said)
		}
	}
	run := s.awaitStatus(engine.RequestRun("run"), protocol.Waiting).ID
	if status, said := post("run", "/v1/runs/"+string(run)+"/fork", map[string]any{"step": "gate#1", "models": map[string]any{"": "script/evil.yaml"}}); status != 403 {
		t.Errorf("a fork under a script: %d %s", status, said)
	}
	for _, test := range []struct {
		token, verb string
		body        map[string]any
		status      int
	}{
		{"read", "answer", map[string]any{"choice": "stop"}, 403},
		{"answer", "cancel", nil, 403},
		{"answer", "suspend", nil, 403},
		{"answer", "resume", nil, 403},
		{"answer", "fork", map[string]any{"step": "gate#1"}, 403},
		{"answer", "messages", map[string]any{"source": "mail", "text": "hello"}, 200},
		{"answer", "answer", map[string]any{"choice": "stop"}, 200},
	} {
		body := test.body
		if body == nil {
			body = map[string]any{}
		}
		if status, said := post(test.token, "/v1/runs/"+string(run)+"/"+test.verb, body); status != test.status {
			t.Errorf("%s: %s: %d %s", test.token, test.verb, status, said)
		}
	}
}
