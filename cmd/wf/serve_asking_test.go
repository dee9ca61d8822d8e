package main

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"wf/engine"
	"wf/protocol"
)

const asking = `
wf: 1
name: asking
inputs: {left: {type: boolean, default: false}}
roles:
  open: {set: {left: "${{ inputs.left }}"}}
  gate: {ask: "Go on?", choices: [more, stop], assignees: [anna, "ben b."], timeout: 720h}
  brief: {ask: "Go on?", choices: [more, stop], timeout: 30ms, remind: 10ms, on_timeout: stop}
edges:
  - {from: START, to: open}
  - {from: open, to: brief, when: output.left}
  - {from: open, to: gate}
  - {from: gate, to: END}
  - {from: brief, to: END}
outputs: {choice: "${{ steps.gate?.output.choice ?? steps.brief?.output.choice }}"}
`

// A server takes the answer to a question from those whom it is for, by the names of their tokens, and ends one that
// was not answered in time by itself.
func TestAServerHoldsAQuestionToItsPeopleAndItsTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "asking.yaml", asking)
	s := startServe(t, dir, "--listen", "unix", "--listen", "127.0.0.1:0", "--workflows", dir)
	f, err := os.OpenFile(s.said.TokenFile, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	tokens := map[string]string{}
	for _, line := range []string{"answer # anna", "answer # ben b.", "run # carla", "# dora", "answer"} {
		token := strings.Repeat(strings.NewReplacer(" ", "", "#", "", ".", "").Replace(line)+"0", 11)[:43]
		tokens[line] = token
		if _, err := f.WriteString(token + " " + line + "\n"); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	post := func(token, path, body string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "POST", s.said.Listen[1].URL+path, strings.NewReader(body))
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
		var said strings.Builder
		if err := answer.Write(&said); err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, said.String()
	}
	for _, name := range []string{"one", "two"} {
		if status, said := post("run # carla", "/v1/runs", `{"workflow":"asking","request_id":"`+name+`"}`); status != 201 {
			t.Fatalf("%d %s", status, said)
		}
	}
	one := s.awaitStatus(engine.RequestRun("one"), protocol.Waiting)
	if w := one.Waiting[0]; w.Due == nil || w.OnTimeout != "fail" || strings.Join(w.Assignees, ", ") != "anna, ben b." {
		t.Errorf("%+v", w)
	}
	for _, other := range []string{"run # carla", "# dora", "answer"} {
		if status, said := post(other, "/v1/runs/"+string(one.ID)+"/answer", `{"choice":"more"}`); status != 403 || !strings.Contains(said, "anna, ben b.") {
			t.Errorf("%s: %d %s", other, status, said)
		}
	}
	if status, said := post("answer # ben b.", "/v1/runs/"+string(one.ID)+"/answer", `{"choice":"more"}`); status != 200 {
		t.Errorf("%d %s", status, said)
	}
	s.awaitStatus(one.ID, protocol.Done)
	if out, err := wfIn(dir, "answer", string(s.awaitStatus(engine.RequestRun("two"), protocol.Waiting).ID), "--choice", "more", "--hub", "unix:"+strings.TrimPrefix(s.said.Listen[0].URL, "unix:")).CombinedOutput(); err != nil {
		t.Errorf("the owner at the socket: %v: %s", err, out)
	}
	if status, said := post("run # carla", "/v1/runs", `{"workflow":"asking","request_id":"three","inputs":{"left":true}}`); status != 201 {
		t.Fatalf("%d %s", status, said)
	}
	if v := s.awaitStatus(engine.RequestRun("three"), protocol.Done); string(v.Outputs) != `{"choice":"stop"}` {
		t.Errorf("%s %s", v.Outputs, v.Reason)
	}
}
