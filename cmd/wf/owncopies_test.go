package main

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"wf/api"
)

// C-4: what visits did in their own copies, and who wrote what a merge took over, is told at a server and at a hub as it is told here.
func TestC04OwnCopiesAreToldEverywhere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "a.txt", "1\n2\n3\n4\n5\n")
	write(t, dir, "coders.yaml", `
wf: 1
name: coders
defaults: {timeout: 1m}
workspace: {track: true, exclude: [coders.yaml, hub, state, .cache, .config, .local]}
roles:
  list: {set: {items: ["sed -i s/1/one/ a.txt", "sed -i s/5/five/ a.txt; echo b > b.txt", "exit 3"]}}
  coder: {run: 'eval "$DO"', env: {DO: "${{ item }}"}, workspace: own, continue_on_error: true}
  merge: {merge: {of: coder}}
edges:
  - {from: list, to: coder, for_each: output.items}
  - {from: coder, to: merge}
  - {from: merge, to: END}
`)
	type said struct {
		out, err string
		exit     int
	}
	ask := func(flags []string, args ...string) said {
		var out, err strings.Builder
		cmd := wfIn(dir, slices.Concat(flags, args)...)
		cmd.Stdout, cmd.Stderr = &out, &err
		if failed := cmd.Run(); failed != nil {
			if _, exited := failed.(*exec.ExitError); !exited {
				t.Fatal(failed)
			}
		}
		return said{out.String(), err.String(), cmd.ProcessState.ExitCode()}
	}
	if s := ask(nil, "run", "coders.yaml", "-q", "-o", "json"); s.exit != 0 {
		t.Fatal(s)
	}
	var list struct{ Items []struct{ ID string } }
	if err := json.Unmarshal([]byte(ask(nil, "ls", "-o", "json").out), &list); err != nil || len(list.Items) != 1 {
		t.Fatal(err, list)
	}
	run := list.Items[0].ID
	commands := [][]string{
		{"files", run + ":coder#1[1]"},
		{"files", run + ":coder#1[1]", "--before"},
		{"files", run + ":coder#1[1]", "b.txt"},
		{"files", run + ":coder#1[2]", "--changed"},
		{"files", run + ":coder#1"},
		{"files", run + ":merge#1", "-o", "json"},
		{"diff", run + ":coder#1[1]", "--files"},
		{"diff", run + ":coder#1[0]", run + ":coder#1[1]", "--files", "-o", "json"},
		{"blame", "a.txt", "--run", run},
		{"blame", "b.txt", "--run", run, "-o", "json"},
	}
	here := make([]said, len(commands))
	for i, args := range commands {
		here[i] = ask(nil, args...)
	}
	for i, want := range map[int]string{0: "coder#1[1]", 2: "b\n", 3: "no files", 6: "+five", 8: "coder#1[0]      1  one\noutside         2  2\noutside         3  3\noutside         4  4\ncoder#1[1]      5  five\n"} {
		if !strings.Contains(here[i].out, want) {
			t.Errorf("wf %s: want %q in\n%s%s", strings.Join(commands[i], " "), want, here[i].out, here[i].err)
		}
	}
	compare := func(at string, flags []string) {
		for i, args := range commands {
			if got := ask(flags, args...); got != here[i] {
				t.Errorf("wf %s at %s: %+v\nand here: %+v", strings.Join(args, " "), at, got, here[i])
			}
		}
	}
	p := startProcess(t, dir, "hub", "--listen", "127.0.0.1:0", "--data", filepath.Join(dir, "hub"))
	var hub api.HubServing
	if err := json.Unmarshal(p.line, &hub); err != nil {
		t.Fatal(err)
	}
	p = startProcess(t, dir, "serve", "--name", "desk", "--listen", "unix", "--hub", hub.Listen[0].URL, "--hub-token-file", hub.AgentToken, "--hub-admin")
	var serving api.Serving
	if err := json.Unmarshal(p.line, &serving); err != nil {
		t.Fatal(err)
	}
	compare("the socket", []string{"--hub", serving.Listen[0].URL})
	there := []string{"--hub", hub.Listen[0].URL, "--hub-token-file", hub.TokenFile}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !strings.Contains(ask(there, "ls", "-o", "json").out, run) {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
	compare("the hub", there)
}
