package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/api"
	"wf/daemon"
	"wf/hub/client"
)

// wf hub --new-agent makes a token for one agent, and wf serve takes its id from it.
func TestAnAgentHasTheIDOfItsToken(t *testing.T) {
	t.Parallel()
	dir, data := t.TempDir(), filepath.Join(t.TempDir(), "data")
	made, err := wfIn(dir, "hub", "--new-agent", "desk-1", "--data", data).Output()
	if err != nil {
		t.Fatal(err)
	}
	file := strings.TrimSpace(string(made))
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%s: %v %v", file, info, err)
	}
	hub := startProcess(t, dir, "hub", "--listen", "127.0.0.1:0", "--data", data)
	var said api.HubServing
	if err := json.Unmarshal(hub.line, &said); err != nil {
		t.Fatal(err)
	}
	token, err := daemon.ReadToken(said.TokenFile)
	if err != nil {
		t.Fatal(err)
	}
	api, err := client.New(said.Listen[0].URL, client.Options{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	write(t, dir, "only.yaml", "wf: 1\nname: only\nroles: {only: {run: 'true'}}\n")
	trustAll(t, dir)
	startProcess(t, dir, "serve", "--listen", "unix", "--hub", said.Listen[0].URL, "--hub-token-file", file)
	if _, _, err := api.Submit(t.Context(), client.Start{Workflow: "only"}, nil); err != nil { // when the agent is there
		t.Fatal(err)
	}
	raw, err := api.Agents(t.Context())
	if err != nil || !strings.Contains(string(raw), `"id":"desk-1"`) {
		t.Errorf("the agents are %s, %v", raw, err)
	}
}
