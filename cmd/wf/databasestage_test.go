package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"wf/api"
)

// A shared store is a database that users work with, each in a directory that stands for a machine of its own.
type shared struct {
	t   *testing.T
	dsn string
}

// newShared makes the store in an empty database; dsn is its address, and err why there is none.
func newShared(t *testing.T, dir, dsn string, err error) *shared {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	d := &shared{t, dsn}
	d.wf(dir, "store", "init")
	return d
}

// try is what a command of the user of a directory says, and how it ends.
func (d *shared) try(dir string, args ...string) (string, error) {
	out, err := wfIn(dir, append(args, "--store", d.dsn)...).CombinedOutput()
	return string(out), err
}

// wf is what a command says that ends well.
func (d *shared) wf(dir string, args ...string) string {
	d.t.Helper()
	out, err := d.try(dir, args...)
	if err != nil {
		d.t.Fatalf("wf %s: %v\n%s", args, err, out)
	}
	return out
}

// serve starts a worker.
func (d *shared) serve(dir string, more ...string) (p *process, said api.Serving) {
	d.t.Helper()
	p = startProcess(d.t, dir, append([]string{"serve", "--store", d.dsn, "--listen", "127.0.0.1:0"}, more...)...)
	if err := json.Unmarshal(p.line, &said); err != nil {
		d.t.Fatal(err)
	}
	return p, said
}

// begin has a worker begin a run.
func (d *shared) begin(dir string, at api.Serving, args ...string) string {
	d.t.Helper()
	id, err := wfIn(dir, append([]string{"run", "--detach", "--hub", at.Listen[0].URL, "--hub-token-file", at.TokenFile}, args...)...).Output()
	if err != nil {
		d.t.Fatalf("wf run %s: %v\n%s", args, err, stderrOf(err))
	}
	return strings.TrimSpace(string(id))
}

func (d *shared) show(dir, run string) (v api.Run) {
	d.t.Helper()
	if err := json.Unmarshal([]byte(d.wf(dir, "show", run, "-o", "json")), &v); err != nil {
		d.t.Fatal(err)
	}
	return v
}

// until waits for what comes within some leases, and on a machine with much else to do; beyond all that it never does.
func (d *shared) until(what string, is func() bool) {
	d.t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for never := time.Now().Add(5 * time.Minute); !is(); <-tick.C {
		if time.Now().After(never) {
			d.t.Fatalf("it never came to this: %s", what)
		}
	}
}
