package daemon_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"wf/api"
	"wf/daemon"
	"wf/engine"
	"wf/engine/lang"
	"wf/protocol"
	"wf/service/compose"
	"wf/service/words"
	"wf/store"
)

// A search at a hub finds the runs of all its workers, in pages, and says how far all of them are searched.
func TestASearchAtAHubAsksAllWorkers(t *testing.T) {
	hub, address := meeting(t)
	var workers []*daemon.Daemon
	var runs []protocol.RunID
	for _, topic := range []string{"zeppelins", "airships"} {
		dir := t.TempDir()
		yaml := "wf: 1\nname: talk\ninputs: {topic: {type: string}}\nroles:\n  say: {set: {said: \"${{ 'of ' + (inputs.topic ?? '') }}\"}}\n  gate: {ask: \"Enough?\"}\nedges:\n  - {from: START, to: say}\n  - {from: say, to: gate}\n  - {from: gate, to: END}\n"
		if err := os.WriteFile(filepath.Join(dir, "talk.yaml"), []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
		d := serving(t, dir)
		d.Name = topic
		for range 2 {
			run, _, err := d.Service.Start(t.Context(), api.Start{Workflow: "talk", Inputs: map[string]json.RawMessage{"topic": json.RawMessage(`"` + topic + `"`)}})
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Follow(t.Context(), run, api.Following{Until: api.Parked}, func(api.Update) error { return nil }); err != nil {
				t.Fatal(err)
			}
			runs = append(runs, run)
		}
		leave, err := d.Join(daemon.Remote{URL: address, Admin: true})
		t.Cleanup(leave)
		if err != nil {
			t.Fatal(err)
		}
		workers = append(workers, d)
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for connected := 0; connected < len(workers); <-tick.C {
		list, err := hub.Registry.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		connected = len(list)
	}
	there := behind(t, address)
	for _, c := range []struct {
		search string
		limit  int
		want   int
	}{{"zeppelins", 0, 2}, {"airships", 0, 2}, {"enough", 0, 4}, {"enough", 1, 1}, {"zeppelins airships", 0, 0}} {
		p, err := there.List(t.Context(), api.Query{Search: c.search, Limit: c.limit, Counts: true})
		if err != nil || len(p.Missing) > 0 {
			t.Fatalf("%v, %v", p, err)
		}
		all := map[string]int{"zeppelins": 2, "airships": 2, "enough": 4}[c.search]
		if len(p.Items) != c.want || p.Counts[protocol.Waiting] != all || p.Searched == nil || p.Searched.Runs != len(runs) || p.Searched.Behind != 0 || p.Searched.UpTo == "" {
			t.Errorf("%q, at most %d: %d runs, %v, %+v; want %d of %d", c.search, c.limit, len(p.Items), p.Counts, p.Searched, c.want, all)
		}
		for _, row := range p.Items {
			if len(row.Hits) == 0 || row.Agent == "" {
				t.Errorf("%q: a run of %q without a hit", c.search, row.Agent)
			}
		}
	}
}

// segments is how many files of words there are.
func segments(t *testing.T, m *daemon.Foreground) (n int) {
	t.Helper()
	if err := filepath.WalkDir(filepath.Join(m.Store.Beside(), words.Dir), func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".seg" {
			n++
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	return n
}

// What retention deletes, its words leave the index with it.
func TestRetentionDropsWords(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", home)
	if err := errors.Join(os.Mkdir(filepath.Join(home, "wf"), 0o700), os.WriteFile(filepath.Join(home, "wf", "config.yaml"), []byte("retention: {done: 30d}\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), ".wf"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	u := &compose.Setup{}
	t.Cleanup(func() {
		u.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	m := daemon.NewForeground(u, s)
	source := []byte("wf: 1\nname: talk\nroles: {say: {set: {said: \"of zeppelins\"}}}\n")
	p, diags := lang.Load(source, lang.Options{})
	if p == nil {
		t.Fatal(diags)
	}
	for range 3 {
		run, _, err := m.Engine.Begin(t.Context(), engine.Launch{Program: p, Source: source, Inputs: []byte("{}"), Workspace: t.TempDir(), CreatedBy: "anna"})
		if err == nil {
			_, err = m.Engine.Drive(t.Context(), run, engine.DriveOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := m.IndexAll(t.Context(), nil); err != nil || segments(t, m) == 0 {
		t.Fatal("nothing is indexed", err)
	}
	deleted := 0
	if err := m.Retain(t.Context(), time.Now().Add(31*24*time.Hour), func(_ *api.Deleted, err error) {
		if deleted++; err != nil {
			t.Error(err)
		}
	}); err != nil || deleted != 3 {
		t.Errorf("%d runs are deleted, %v", deleted, err)
	}
	if n := segments(t, m); n > 0 {
		t.Errorf("%d segments are left", n)
	}
}
