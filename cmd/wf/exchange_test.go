package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/api"
	"wf/protocol"
)

// 3,000 items, so that the blocks are asked for more than once; an answer of 5 MB; a sub-workflow; files.
const exchangeYAML = `
wf: 1
name: big
workspace: {track: true, exclude: [state, .wf, "*.json"]}
defaults: {timeout: 10m}
roles:
  many: {set: {list: "${{ 1..3000 }}"}}
  each: {set: {twice: "${{ item * 2 }}"}}
  long: {run: 'head -c 5000000 /dev/zero | tr "\0" x; echo made > made'}
  part: {workflow: part.yaml}
  ok: {ask: "Go on?"}
  last: {run: 'echo again >> made'}
edges:
  - {from: START, to: many}
  - {from: many, to: each, for_each: output.list}
  - {from: each, to: long}
  - {from: long, to: part}
  - {from: part, to: ok}
  - {from: ok, to: last}
  - {from: last, to: END}
limits: {steps: 20000}
`

// A run is pushed to a server and pulled from it, there and back: what is there is not sent again, what came is proved, and goes on where it was.
func TestPushAndPullOverHTTP(t *testing.T) {
	t.Parallel()
	mine, yours, third := t.TempDir(), t.TempDir(), t.TempDir()
	write(t, mine, "big.yaml", exchangeYAML)
	write(t, mine, "part.yaml", "wf: 1\nname: part\nroles: {a: {run: 'cat made'}}\nedges: [{from: START, to: a}, {from: a, to: END}]\n")
	trustAll(t, mine)
	wf := func(dir string, args ...string) string {
		t.Helper()
		out, err := wfIn(dir, args...).Output()
		if err != nil {
			t.Fatalf("wf %s: %v\n%s", args, err, stderrOf(err))
		}
		return string(out)
	}
	ran, err := wfIn(mine, "run", "big.yaml", "--no-input", "-o", "json").Output()
	if exitOf(t, err) != 8 {
		t.Fatalf("wf run: %v\n%s", err, stderrOf(err))
	}
	var began api.Run
	if err := json.Unmarshal(ran, &began); err != nil {
		t.Fatal(err)
	}
	id := string(began.ID)
	s := startServe(t, yours, "--listen", "127.0.0.1:0")
	at, admin := s.said.Listen[0].URL, s.said.TokenFile
	read := filepath.Join(t.TempDir(), "read")
	token := strings.Repeat("read", 11)[:43]
	if err := os.WriteFile(read, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	grant(t, admin, token+" read")

	brought := func(dir, token string, args ...string) (b broughtJSON) {
		t.Helper()
		if err := json.Unmarshal([]byte(wf(dir, append(args, at, "--hub-token-file", token, "-o", "json")...)), &b); err != nil {
			t.Fatal(err)
		}
		return b
	}
	if out, err := wfIn(mine, "push", id, at, "--hub-token-file", read).CombinedOutput(); exitOf(t, err) != 4 || !strings.Contains(string(out), `no scope "admin"`) {
		t.Errorf("with a token of scope read: %v\n%s", err, out)
	}
	if b := brought(mine, admin, "push", id); b.Sent != b.Blocks || b.Blocks < api.BlocksMost+1000 || len(b.Children) != 1 || len(b.Forwarded) > 0 {
		t.Errorf("the first push: %+v", b)
	}
	if b := brought(mine, admin, "push", id); b.Sent != 0 || len(b.Same) != 2 {
		t.Errorf("the second push: %+v", b)
	}
	if out, err := wfIn(mine, "answer", id, "yes").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if b := brought(mine, admin, "push", id); b.Sent == 0 || b.Sent > 100 || len(b.Forwarded) != 1 {
		t.Errorf("a push of what is new: %+v", b)
	}
	wf(yours, "verify", "--all")
	if out := wf(mine, "export", id, "--files", "-o", filepath.Join(third, "run.car"), "--hub", at, "--hub-token-file", read); out != "" {
		t.Logf("wf export: %s", out)
	}

	if b := brought(third, read, "pull", id); b.Sent != b.Blocks || b.Run != protocol.RunID(id) {
		t.Errorf("the first pull: %+v", b)
	}
	if b := brought(third, read, "pull", id); b.Sent != 0 {
		t.Errorf("the second pull: %+v", b)
	}
	wf(third, "verify", "--all")
	if a, b := wf(mine, "show", id, "-o", "json"), wf(third, "show", id, "-o", "json"); headOf(t, a) != headOf(t, b) {
		t.Errorf("the heads are %s and %s", headOf(t, a), headOf(t, b))
	}
	if a, b := wf(mine, "files", id+":last#1"), wf(third, "files", id+":last#1"); a != b {
		t.Errorf("the files are %s and %s", a, b)
	}
	if out, err := wfIn(third, "pull", "NOSUCHRUN0", at, "--hub-token-file", read).CombinedOutput(); err == nil || !strings.Contains(string(out), "NOSUCHRUN0") {
		t.Errorf("a run that is not there: %v\n%s", err, out)
	}

	// At a hub the run comes from, or goes to, the store of a worker.
	hub := startProcess(t, t.TempDir(), "hub", "--listen", "127.0.0.1:0")
	var said api.HubServing
	if err := json.Unmarshal(hub.line, &said); err != nil {
		t.Fatal(err)
	}
	fourth := t.TempDir()
	startProcess(t, fourth, "serve", "--name", "fourth", "--hub-admin", "--listen", "unix", "--hub", said.Listen[0].URL, "--hub-token-file", said.AgentToken)
	at, admin = said.Listen[0].URL, filepath.Join(t.TempDir(), "admin")
	if err := os.WriteFile(admin, []byte(strings.Repeat("admi", 11)[:43]+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	grant(t, said.TokenFile, strings.Repeat("admi", 11)[:43]+" admin read")
	if b := brought(third, admin, "push", id, "--worker", workerOf(t, said)); b.Sent != b.Blocks {
		t.Errorf("to a worker of a hub: %+v", b)
	}
	wf(fourth, "verify", "--all")
	fifth := t.TempDir()
	if b := brought(fifth, admin, "pull", id); b.Sent != b.Blocks {
		t.Errorf("from a worker of a hub: %+v", b)
	}
}

// grant adds a line to the tokens of a server.
func grant(t *testing.T, tokens, line string) {
	t.Helper()
	f, err := os.OpenFile(tokens, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(line + "\n")
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func headOf(t *testing.T, show string) string {
	t.Helper()
	var v api.Run
	if err := json.Unmarshal([]byte(show), &v); err != nil {
		t.Fatal(err)
	}
	return v.Head
}
