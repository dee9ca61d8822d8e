package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"wf/api"
	"wf/pgstore/pgtest"
	"wf/protocol"
)

// A worker is killed in a command: another one goes on with the run once it was not heard of for a lease. Then the database is
// killed, while a person answers: the answer is taken when it is back, and nothing is done twice.
func TestWorkersOfADatabase(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("waits for a lease")
	}
	server := pgtest.Own(t)
	dsn, err := server.Database(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, dir, "steps.yaml", `
wf: 1
name: steps
defaults: {timeout: 10m}
roles:
  first: {run: 'echo begun >> acts; until [ -e go ]; do sleep 0.01; done'}
  asks: {ask: "Go on?", choices: [yes, no]}
  last: {run: 'echo last >> acts'}
edges:
  - {from: START, to: first}
  - {from: first, to: asks}
  - {from: asks, to: last}
  - {from: last, to: END}
`)
	wf := func(args ...string) string {
		t.Helper()
		out, err := wfIn(dir, append(args, "--store", dsn)...).CombinedOutput()
		if err != nil {
			t.Fatalf("wf %s: %v\n%s", args, err, out)
		}
		return string(out)
	}
	wf("store", "init")
	trustAll(t, dir)
	serve := func() (p *process, said api.Serving) {
		p = startProcess(t, dir, "serve", "--store", dsn, "--listen", "127.0.0.1:0")
		if err := json.Unmarshal(p.line, &said); err != nil {
			t.Fatal(err)
		}
		return p, said
	}
	acts := func() string {
		b, err := os.ReadFile(filepath.Join(dir, "acts"))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return strings.ReplaceAll(string(b), "\n", " ")
	}
	status := func(run string) protocol.RunStatus {
		var v api.Run
		if err := json.Unmarshal([]byte(wf("show", run, "-o", "json")), &v); err != nil {
			t.Fatal(err)
		}
		return v.Status
	}

	until := func(is func() bool) { // a takeover takes a lease, and longer on a machine with much else to do
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for !is() {
			<-tick.C
		}
	}

	one, said := serve()
	out, err := wfIn(dir, "run", "steps.yaml", "--detach", "--hub", said.Listen[0].URL, "--hub-token-file", said.TokenFile).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	run := strings.TrimSpace(string(out))
	until(func() bool { return acts() == "begun " })
	serve()
	one.kill()
	write(t, dir, "go", "")
	until(func() bool { return status(run) == protocol.Waiting })

	if err := errors.Join(server.Kill(), server.Restart()); err != nil {
		t.Fatal(err)
	}
	wf("answer", run, "yes")
	until(func() bool { return status(run) == protocol.Done })
	if got := acts(); got != "begun begun last " {
		t.Errorf("it did %s", got)
	}
	wf("verify", "--all")
	copied := filepath.Join(dir, "copied")
	for range 2 {
		wf("store", "copy", dsn, copied)
	}
	if out, err := wfIn(dir, "verify", "--all", "--store", copied).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
