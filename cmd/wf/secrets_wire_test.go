package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"wf/agentkit/modeltest"
	"wf/api"
)

// everything runs wf and gives all that it wrote.
func (p place) everything(args ...string) (string, int) {
	p.t.Helper()
	cmd := exec.Command("wf", args...)
	cmd.Dir, cmd.Env = p.dir, append(os.Environ(), p.env...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		p.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

const tellYAML = `wf: 1
name: tell
inputs:
  about: {type: string, default: nothing}
  more: {type: object, default: {}}
secrets: [DEPLOY_TOKEN]
roles:
  echo: {set: {said: "${{ inputs.about }}"}}
`

// F-40: an input that holds a declared secret, or what has the shape of a key, is refused before
// anything is written, however it comes; and is let in where that is said.
func TestInputsThatHoldASecretAreRefused(t *testing.T) {
	t.Parallel()
	const declared = "correct-horse-battery"
	const shaped = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
	p := newPlace(t, "DEPLOY_TOKEN="+declared)
	write(t, p.dir, "tell.yaml", tellYAML)
	write(t, p.dir, "declared.txt", "use "+declared+" to deploy")
	write(t, p.dir, "inputs.json", `{"about": "all is well", "more": {"deep": ["`+shaped+`"]}}`)
	for name, args := range map[string][]string{
		"the declared one by -i":       {"-i", "about=it is " + declared + "."},
		"the declared one from a file": {"-i", "about=@declared.txt"},
		"in an address":                {"-i", "about=https://x.org/?q=a%20" + declared},
		"in Base64":                    {"-i", "about=eDpjb3JyZWN0LWhvcnNlLWJhdHRlcnk="}, // x:…
		"a known shape by -i":          {"-i", "about=" + shaped},
		"a known shape by -I":          {"-I", "inputs.json"},
	} {
		out, exit := p.everything(append([]string{"run", "tell.yaml", "--detach"}, args...)...)
		if exit != 2 || !strings.Contains(out, "secrets:") || !strings.Contains(out, "--allow-secret-input") {
			t.Errorf("%s: exit %d\n%s", name, exit, out)
		}
		if strings.Contains(out, declared) || strings.Contains(out, shaped) {
			t.Errorf("%s: the refusal tells the value:\n%s", name, out)
		}
	}
	var list struct{ Items []json.RawMessage }
	if p.read(&list, "ls", "--all"); len(list.Items) != 0 {
		t.Errorf("%d runs were written", len(list.Items))
	}
	if out, exit := p.everything("run", "tell.yaml", "-i", "about="+shaped, "--allow-secret-input", "abuot"); exit != 2 || !strings.Contains(out, "abuot") {
		t.Errorf("a name that is no input: exit %d\n%s", exit, out)
	}
	p.wf(0, "run", "tell.yaml", "-i", "about="+shaped, "--allow-secret-input", "about")
	log := string(p.wf(0, "log", "-1", "-o", "jsonl"))
	if !strings.Contains(log, `"allow_secret_inputs":["about"]`) {
		t.Errorf("what was let in is not journaled:\n%s", log)
	}
	p.wf(0, "run", "tell.yaml", "-i", "about=nothing secret at all")
	if log := string(p.wf(0, "log", "-1", "-o", "jsonl")); strings.Contains(log, "allow_secret_inputs") {
		t.Errorf("nothing was let in, and the journal speaks of it:\n%s", log)
	}
}

const (
	handYAML = `wf: 1
name: hand
inputs: {a: {type: string, default: ""}, b: {type: string, default: ""}}
roles:
  ask: {ask: "What else?"}
  sub: {workflow: tell.yaml, with: {about: "${{ inputs.a + inputs.b }}"}}
`
	plainYAML = "wf: 1\nname: plain\ninputs: {about: {type: string, default: nothing}}\nroles: {echo: {set: {said: \"${{ inputs.about }}\"}}}\n"
)

// The ways by which a secret comes into a run besides its inputs: what is computed for a sub-workflow fails the
// step, a fork under a definition that declares it is refused, and what a person says is hidden.
func TestASecretComesInByNoOtherWay(t *testing.T) {
	t.Parallel()
	const declared = "correct-horse-battery"
	const shaped = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
	p := newPlace(t, "DEPLOY_TOKEN="+declared)
	for name, text := range map[string]string{"tell.yaml": tellYAML, "hand.yaml": handYAML, "plain.yaml": plainYAML} {
		write(t, p.dir, name, text)
	}
	hidden := func(what string) string {
		t.Helper()
		var all strings.Builder
		var list struct{ Items []struct{ ID string } }
		for p.read(&list, "ls", "--all"); len(list.Items) > 0; list.Items = list.Items[1:] {
			all.Write(p.wf(0, "log", list.Items[0].ID, "-o", "jsonl"))
			all.Write(p.wf(0, "show", list.Items[0].ID, "-o", "json"))
		}
		if strings.Contains(all.String(), declared) || strings.Contains(all.String(), shaped) {
			t.Errorf("%s: it is stored\n%s", what, all.String())
		}
		return all.String()
	}
	p.wf(8, "run", "hand.yaml", "-i", "a=correct-horse", "-i", "b=-battery", "--no-input")
	out, exit := p.everything("answer", "-1", "say "+declared)
	if exit == 0 || !strings.Contains(out, `input "about" holds the value of the secret DEPLOY_TOKEN`) || !strings.Contains(out, "secrets: [NAME]") {
		t.Errorf("a computed input: exit %d\n%s", exit, out)
	}
	if all := hidden("an answer, and a computed input"); !strings.Contains(all, "secret:DEPLOY_TOKEN") {
		t.Errorf("nothing tells that the answer was changed:\n%s", all)
	}
	p.wf(0, "cancel", "-1", "--reason", "it said "+shaped)
	hidden("why a run was cancelled")
	p.wf(0, "run", "plain.yaml", "--title", "with "+shaped)
	p.wf(0, "fork", "-1:echo#1", "--note", "again with "+shaped)
	hidden("a title and a note")

	// What was let in goes on to sub-workflows, and into their journals with its leave.
	p.wf(8, "run", "hand.yaml", "-i", "a=it is ", "-i", "b="+shaped, "--allow-secret-input", "b", "--no-input")
	p.wf(0, "answer", "-1", "nothing")

	p.wf(0, "run", "plain.yaml", "-i", "about="+declared) // no secret there
	if out, exit := p.everything("fork", "-1:echo#1", "--with", "tell.yaml"); exit != 2 || !strings.Contains(out, "the secret DEPLOY_TOKEN") || strings.Contains(out, declared) {
		t.Errorf("a fork under a definition that declares it: exit %d\n%s", exit, out)
	}
}

// The same holds for a run that is started over HTTP.
func TestInputsOverHTTPThatHoldASecretAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "tell.yaml", tellYAML)
	s := startServe(t, dir)
	const shaped = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
	var refused struct {
		Code, Message, Fix string
	}
	body := map[string]any{"workflow": "tell", "inputs": map[string]any{"about": shaped}}
	if status := s.call("POST", "/v1/runs", body, &refused); status != http.StatusUnprocessableEntity || !strings.Contains(refused.Message, "github_token") {
		t.Errorf("status %d, %+v", status, refused)
	}
	body["allow_secret_inputs"] = []string{"about"}
	var started struct{ ID string }
	if status := s.call("POST", "/v1/runs", body, &started); status != http.StatusCreated || started.ID == "" {
		t.Errorf("status %d, %+v", status, started)
	}
}

// F-40: a provider that echoes the key of a request puts it nowhere: not on the screen, not into the
// journal, not onto the tape, whether in an error, an answer, a thought or the name of a tool.
func TestAKeyThatTheProviderEchoesIsHiddenEverywhere(t *testing.T) {
	t.Parallel()
	const key = "own-server-key-0123456789/+x"
	url, inJSON := "own-server-key-0123456789%2F%2Bx", "6f776e2d7365727665722d6b6579" // hex of its beginning
	for _, wire := range wires {
		t.Run(wire.name, func(t *testing.T) {
			t.Parallel()
			s := modeltest.Start(t,
				modeltest.Answer{Usage: true, Say: []modeltest.Piece{{Thinking: "my key is own-server-"}, {Thinking: "key-0123456789/+x."},
					{Text: "you sent own-server-key-01"}, {Text: "23456789/+x and " + url + " and " + inJSON + "2d303132333435363738392f2b78"},
					{Call: &modeltest.CallPiece{ID: "a", Name: "tool_" + key, Args: `{"k":"` + key + `"}`}}, {Finish: "tool_calls"}}},
				modeltest.Answer{Status: 401, Body: `{"error":{"message":"Incorrect API key provided: ` + key + `."}}`})
			p := newPlace(t, wire.env(s), "OPENAI_API_KEY="+key, "ANTHROPIC_API_KEY="+key)
			write(t, p.dir, "ask.yaml", "wf: 1\nname: ask\nroles:\n  a: {prompt: You answer., timeout: 1m}\n")
			said, _ := p.everything("run", "ask.yaml", "--model", wire.model, "--record", "tape.jsonl", "-v")
			tape, err := os.ReadFile(filepath.Join(p.dir, "tape.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			log := p.wf(0, "log", "-1", "-o", "jsonl")
			for place, text := range map[string]string{"the screen": said, "the tape": string(tape), "the journal": string(log),
				"show": string(p.wf(0, "show", "-1", "-o", "json")), "messages": string(p.wf(0, "messages", "-1:a#1"))} {
				for _, form := range []string{key, url, inJSON, "own-server-key"} {
					if strings.Contains(text, form) {
						t.Errorf("%s holds %s:\n%s", place, form, text)
					}
				}
			}
			if !bytes.Contains(log, []byte("_API_KEY]")) || !bytes.Contains(tape, []byte("_API_KEY]")) {
				t.Errorf("neither tells that something was hidden:\n%s\n%s", log, tape)
			}
			var v api.Run
			if p.read(&v, "show", "-1"); v.Status != "suspended" {
				t.Errorf("the run is %s", v.Status)
			}
		})
	}
}
