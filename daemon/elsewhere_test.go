package daemon_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/api"
	"wf/cas"
	"wf/daemon"
	"wf/engine"
	"wf/engine/lang"
	"wf/protocol"
	"wf/service"
	"wf/service/compose"
	"wf/store"
)

// elsewhere is a place of one user, with stores of two kinds.
type elsewhere struct{ *testing.T }

// open opens a store as a user whose state lies in a directory.
func (e elsewhere) open(name, state string) *daemon.Foreground {
	e.Helper()
	e.Setenv("XDG_STATE_HOME", state)
	s, err := store.Open(e.Context(), name, store.Options{State: state})
	if err != nil {
		e.Fatal(err)
	}
	u := &compose.Setup{}
	f := daemon.NewForeground(u, s)
	u.Pins(s) // those of this user
	e.Cleanup(func() {
		u.Close()
		if err := s.Close(); err != nil {
			e.Error(err)
		}
	})
	return f
}

func (e elsewhere) fatal(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// begin begins a run that asks, and then makes a file; it is driven until it asks.
func (e elsewhere) begin(f *daemon.Foreground, made string) protocol.RunID {
	e.Helper()
	source := []byte("wf: 1\nname: gate\nroles:\n  first: {set: {n: 1}}\n  gate: {ask: \"Go on?\"}\n  after: {run: \"touch " + made + "\"}\nedges:\n  - {from: START, to: first}\n  - {from: first, to: gate}\n  - {from: gate, to: after}\n  - {from: after, to: END}\n")
	p, found := lang.Load(source, lang.Options{})
	if p == nil {
		e.Fatal(found)
	}
	run, _, err := f.Engine.Begin(e.Context(), engine.Launch{Program: p, Source: source, Inputs: protocol.JSON("{}"), Workspace: filepath.Dir(made)})
	if err == nil {
		_, err = f.Engine.Drive(e.Context(), run, engine.DriveOptions{})
	}
	e.fatal(err)
	return run
}

func (e elsewhere) archive(f *daemon.Foreground, run protocol.RunID) *bytes.Buffer {
	e.Helper()
	out := new(bytes.Buffer)
	e.fatal(f.Export(e.Context(), run, api.ExportOptions{}, out))
	return out
}

// adopt has the user say that runs may go on.
func (e elsewhere) adopt(f *daemon.Foreground, run protocol.RunID) {
	e.Helper()
	x, err := service.Adoptable(e.Context(), f.Setup, f.Store, []string{string(run)})
	e.fatal(err)
	if len(x.Runs) != 1 || x.Runs[0].Why != protocol.ErrForeign.Code {
		e.Errorf("to be adopted are %+v", x.Runs)
	}
	e.fatal(x.Adopt(e.Context(), f.Setup, f.Store))
}

// A run that came from elsewhere runs nothing before its user adopted it, in a store of either kind, whichever way it came and by whichever command it would go on;
// on another machine of the database neither. Once it was adopted, it goes on at each.
func TestF418WhatCameFromElsewhereRunsNothingUnasked(t *testing.T) {
	type way struct {
		name string
		come func(e elsewhere, to *daemon.Foreground, other func() *daemon.Foreground, made string) protocol.RunID
		own  bool // in a database
	}
	bring := func(e elsewhere, to *daemon.Foreground, archive *bytes.Buffer) {
		e.Helper()
		_, err := to.Import(e.Context(), archive, api.ImportOptions{})
		e.fatal(err)
	}
	imported := func(e elsewhere, to *daemon.Foreground, other func() *daemon.Foreground, made string) protocol.RunID {
		o := other()
		run := e.begin(o, made)
		bring(e, to, e.archive(o, run))
		return run
	}
	copied := func(pins bool) func(elsewhere, *daemon.Foreground, func() *daemon.Foreground, string) protocol.RunID {
		return func(e elsewhere, to *daemon.Foreground, other func() *daemon.Foreground, made string) protocol.RunID {
			o := other()
			run := e.begin(o, made)
			x := service.CopyOptions{Runs: []protocol.RunID{run}}
			if pins {
				x.Pins = to.Pins(to.Store)
			}
			_, err := service.Copy(e.Context(), o.Store, to.Store, x)
			e.fatal(err)
			return run
		}
	}
	gone := func(by func(e elsewhere, from, to *daemon.Foreground, run protocol.RunID)) func(elsewhere, *daemon.Foreground, func() *daemon.Foreground, string) protocol.RunID {
		return func(e elsewhere, to *daemon.Foreground, other func() *daemon.Foreground, made string) protocol.RunID {
			o := other()
			run := e.begin(to, made)
			e.fatal(to.Engine.Own(e.Context(), run))
			bring(e, o, e.archive(to, run))
			e.adopt(o, run)
			_, err := o.Local.Answer(e.Context(), run, api.Answer{Text: "by another"})
			e.fatal(err)
			by(e, o, to, run)
			return run
		}
	}
	for _, w := range []way{
		{"an archive", imported, false},
		{"a copy", copied(true), false},
		{"a copy that notes nothing", copied(false), false},
		{"an archive that goes on with an own run", gone(func(e elsewhere, from, to *daemon.Foreground, run protocol.RunID) { bring(e, to, e.archive(from, run)) }), false},
		{"a copy that goes on with an own run", gone(func(e elsewhere, from, to *daemon.Foreground, run protocol.RunID) {
			_, err := service.Copy(e.Context(), from.Store, to.Store, service.CopyOptions{Runs: []protocol.RunID{run}, Pins: to.Pins(to.Store)})
			e.fatal(err)
		}), false},
		{"a fork of an archive", func(e elsewhere, to *daemon.Foreground, other func() *daemon.Foreground, made string) protocol.RunID {
			v, err := to.Fork(e.Context(), imported(e, to, other, made), api.Fork{Step: "gate#1", Hold: true})
			e.fatal(err)
			return v.ID
		}, false},
		{"another process of the user", func(e elsewhere, to *daemon.Foreground, _ func() *daemon.Foreground, made string) protocol.RunID {
			return e.begin(to, made)
		}, true},
	} {
		for _, kind := range []string{"directory", "database"} {
			t.Run(w.name+" in a "+kind, func(t *testing.T) {
				e, ctx, dir := elsewhere{t}, t.Context(), t.TempDir()
				made := filepath.Join(dir, "ran")
				name, mine, second := filepath.Join(dir, "store"), filepath.Join(dir, "mine"), filepath.Join(dir, "mine")
				if kind == "database" {
					_, name = postgres(t)
					second = filepath.Join(dir, "second") // another machine
				}
				to := e.open(name, mine)
				run := w.come(e, to, func() *daemon.Foreground { return e.open(filepath.Join(dir, "other"), filepath.Join(dir, "eve")) }, made)
				there := e.open(name, second)
				v, err := to.Engine.View(ctx, run)
				e.fatal(err)
				if v.Foreign == w.own {
					t.Errorf("it is shown with foreign %v", v.Foreign)
				}
				if !w.own {
					for who, f := range map[string]*daemon.Foreground{"here": to, "at another process": there} {
						for what, do := range map[string]func() error{
							"resume": func() error { return f.Resume(ctx, run, api.Resume{}) },
							"answer": func() error { _, err := f.Answer(ctx, run, api.Answer{Text: "yes"}); return err },
							"fork":   func() error { _, err := f.Fork(ctx, run, api.Fork{}); return err },
							"drive":  func() error { _, err := f.Engine.Drive(ctx, run, engine.DriveOptions{}); return err },
							"child":  func() error { return f.Engine.Own(ctx, run) },
						} {
							if err := do(); !errors.Is(err, protocol.ErrForeign) || !strings.Contains(protocol.HintOf(err), string(run)) {
								t.Errorf("%s %s: %v", what, who, err)
							}
						}
					}
					if q, ok := to.Store.(engine.Queue); ok {
						if due, err := q.Due(ctx, to.Engine.Offers(), 10); err != nil || len(due) > 0 {
							t.Errorf("due are %v, %v", due, err)
						}
					}
					if _, err := os.Stat(made); !errors.Is(err, fs.ErrNotExist) {
						t.Fatal("a command ran")
					}
					e.adopt(to, run)
				}
				e.fatal(there.Engine.Own(ctx, run)) // at the other process too
				drive := func() {
					t.Helper()
					_, err := to.Engine.Drive(ctx, run, engine.DriveOptions{})
					e.fatal(err)
				}
				drive()
				if st, err := to.Engine.State(ctx, run); err != nil || st.Status() == protocol.Waiting {
					e.fatal(err)
					_, err = to.Local.Answer(ctx, run, api.Answer{Text: "yes"})
					e.fatal(err)
					drive()
				}
				if _, err := os.Stat(made); err != nil {
					t.Error("once it was adopted its command did not run", err)
				}
			})
		}
	}
}

// The mark of a run goes with the run.
func TestF418TheMarkOfADeletedRunIsCollected(t *testing.T) {
	e, dir := elsewhere{t}, t.TempDir()
	srv, dsn := postgres(t)
	to, other := e.open(dsn, filepath.Join(dir, "mine")), e.open(filepath.Join(dir, "other"), filepath.Join(dir, "eve"))
	var runs []protocol.RunID
	for range 2 {
		run := e.begin(other, filepath.Join(dir, "ran"))
		_, err := to.Import(t.Context(), e.archive(other, run), api.ImportOptions{})
		e.fatal(err)
		runs = append(runs, run)
	}
	h, err := to.Store.Head(t.Context(), protocol.RunHead(runs[0]))
	e.fatal(err)
	d, err := cas.Bury(h, protocol.Tombstone{At: 1})
	e.fatal(err)
	e.fatal(to.Store.Commit(t.Context(), cas.Batch{Deletes: []cas.Deletion{d}}))
	_, err = store.Collect(t.Context(), to.Store, cas.GCOptions{})
	e.fatal(err)
	left, err := srv.Ask(t.Context(), dsn, `select name from wf.notes where name like 'elsewhere/%'`)
	e.fatal(err)
	if len(left) != 1 || left[0] != "elsewhere/"+string(runs[1]) {
		t.Errorf("left are %v", left)
	}
}
