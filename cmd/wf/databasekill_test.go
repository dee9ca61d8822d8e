package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	trustAll(t, dir)
	dsn, err := server.Database(t.Context())
	d := newShared(t, dir, dsn, err)
	acts := func() string {
		b, err := os.ReadFile(filepath.Join(dir, "acts"))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return strings.ReplaceAll(string(b), "\n", " ")
	}
	one, at := d.serve(dir)
	run := d.begin(dir, at, "steps.yaml")
	d.until("the command runs", func() bool { return acts() == "begun " })
	d.serve(dir)
	one.kill()
	write(t, dir, "go", "")
	d.until("the run waits", func() bool { return d.show(dir, run).Status == protocol.Waiting })

	if err := errors.Join(server.Kill(), server.Restart()); err != nil {
		t.Fatal(err)
	}
	d.wf(dir, "answer", run, "yes")
	d.until("the run is done", func() bool { return d.show(dir, run).Status == protocol.Done })
	if got := acts(); got != "begun begun last " {
		t.Errorf("it did %s", got)
	}
	d.wf(dir, "verify", "--all")
	copied := filepath.Join(dir, "copied")
	for range 2 {
		d.wf(dir, "store", "copy", dsn, copied)
	}
	if out, err := wfIn(dir, "verify", "--all", "--store", copied).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
