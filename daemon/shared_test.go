package daemon_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"wf/api"
	"wf/daemon"
	"wf/engine"
	"wf/engine/lang"
	"wf/pgstore"
	"wf/pgstore/pgtest"
	"wf/protocol"
	"wf/service/compose"
	"wf/service/words"
	"wf/store"
)

// An archive is a database whose runs are searched.
type archive struct {
	*testing.T
	srv *pgtest.Server
	dsn string
}

func newArchive(t *testing.T) archive {
	t.Helper()
	srv, dsn := postgres(t)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	return archive{t, srv, dsn}
}

// machine is another machine that has the database; dsn is how it is opened there.
func (a archive) machine(dsn string) *daemon.Foreground {
	a.Helper()
	s, err := store.Open(a.Context(), dsn, store.Options{State: a.TempDir()})
	if err != nil {
		a.Fatal(err)
	}
	u := &compose.Setup{}
	a.Cleanup(func() {
		u.Close()
		if err := s.Close(); err != nil {
			a.Error(err)
		}
	})
	return daemon.NewForeground(u, s)
}

// say performs a run that says a text.
func (a archive) say(m *daemon.Foreground, text string) protocol.RunID {
	a.Helper()
	source := []byte("wf: 1\nname: talk\nroles: {say: {set: {said: " + strconv.Quote(text) + "}}}\n")
	p, diags := lang.Load(source, lang.Options{})
	if p == nil {
		a.Fatal(diags)
	}
	run, _, err := m.Engine.Begin(a.Context(), engine.Launch{Program: p, Source: source, Inputs: []byte("{}"), Workspace: a.TempDir(), CreatedBy: "anna"})
	if err == nil {
		_, err = m.Engine.Drive(a.Context(), run, engine.DriveOptions{})
	}
	if err != nil {
		a.Fatal(err)
	}
	return run
}

func (a archive) find(m *daemon.Foreground, text string, want int) *api.Page {
	a.Helper()
	p, err := m.List(a.Context(), api.Query{Search: text, Counts: true, Limit: 100})
	if err != nil {
		a.Fatal(err)
	}
	if len(p.Items) != want || p.Searched.Behind != 0 {
		a.Errorf("%q is said in %d runs, want %d; %+v", text, len(p.Items), want, *p.Searched)
	}
	return p
}

// ask is a number that the database says.
func (a archive) ask(sql string) (n int64) {
	a.Helper()
	got, err := a.srv.Ask(a.Context(), a.dsn, sql)
	if err == nil && len(got) > 0 {
		n, err = strconv.ParseInt(got[0], 10, 64)
	}
	if err != nil {
		a.Fatal(err)
	}
	return n
}

const (
	writtenWords = "select coalesce(sum(n), 0) from wf.notes where name = 'search.db'" // how often
	pagesOfWords = "select count(*) from wf.notes where name like 'search.db/%'"
)

// What one machine has indexed all of them search, and what one deletes none of them has.
func TestMachinesOfADatabaseShareOneIndex(t *testing.T) {
	a := newArchive(t)
	here, there := a.machine(a.dsn), a.machine(a.dsn)
	former := filepath.Join(there.Store.Beside(), words.Dir)
	if err := errors.Join(os.MkdirAll(former, 0o700), os.WriteFile(filepath.Join(former, "manifest"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	one := a.say(here, "of zeppelins")
	if p := a.find(here, "zeppelins", 1); len(p.Items) == 1 && len(p.Items[0].Hits) != 1 {
		t.Errorf("%+v", p.Items[0])
	}
	written := a.ask(writtenWords)
	if written == 0 {
		t.Error("nothing is written to the database")
	}
	a.find(there, "zeppelins", 1)
	if n := a.ask(writtenWords); n != written {
		t.Error("the second machine has indexed what the first one had")
	}
	a.say(there, "of airships")
	a.find(there, "airships", 1)
	a.find(here, "airships", 1)
	if _, err := os.Stat(former); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an index that an earlier wf made on this machine: %v", err)
	}
	if _, err := here.Delete(t.Context(), one, api.Delete{}); err != nil {
		t.Fatal(err)
	}
	for _, m := range []*daemon.Foreground{here, there} {
		a.find(m, "zeppelins", 0)
		a.find(m, "airships", 1)
	}
	raw, err := a.srv.Ask(t.Context(), a.dsn, "select string_agg(encode(body, 'escape'), '') from wf.notes where name like 'search.db/%'")
	if err != nil || strings.Contains(strings.Join(raw, ""), "zeppelin") || !strings.Contains(strings.Join(raw, ""), "airships") {
		t.Errorf("the database has other words than those of runs that are there, %v", err)
	}
}

// Machines that index at once lose nothing, and repeat nothing that is there.
func TestMachinesIndexAtOnce(t *testing.T) {
	a := newArchive(t)
	const machines, runs = 3, 8
	var work sync.WaitGroup
	var all []*daemon.Foreground
	for i := range machines {
		m := a.machine(a.dsn)
		all = append(all, m)
		work.Go(func() {
			for j := range runs {
				a.say(m, fmt.Sprintf("common word%d%d", i, j))
				if err := m.IndexAll(t.Context(), nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	written := a.ask(writtenWords)
	for _, m := range all {
		a.find(m, "common", machines*runs)
		a.find(m, "word12", 1)
		if err := m.IndexAll(t.Context(), nil); err != nil {
			t.Error(err)
		}
	}
	if n := a.ask(writtenWords); n != written {
		t.Errorf("of what all of them have, %d more lists are written", n-written)
	}
}

// A user that may only read searches what others have indexed, and what they have not in memory.
func TestAReaderSearchesADatabase(t *testing.T) {
	a := newArchive(t)
	here := a.machine(a.dsn)
	a.say(here, "of zeppelins")
	a.find(here, "zeppelins", 1)
	role := fmt.Sprint("looks", os.Getpid()) // roles are of the whole server
	if err := a.srv.Exec(t.Context(), a.dsn, "create role "+role+" login"); err != nil {
		t.Fatal(err)
	}
	if _, err := pgstore.Init(t.Context(), a.dsn, pgstore.Roles{Reader: role}); err != nil {
		t.Fatal(err)
	}
	a.say(here, "of zeppelins again")
	written := a.ask(writtenWords)
	reader := a.machine(strings.Replace(a.dsn, "wf@", role+"@", 1))
	a.find(reader, "zeppelins", 2)
	a.find(reader, "again", 1)
	if n := a.ask(writtenWords); n != written {
		t.Error("a user that may only read has written")
	}
	a.find(here, "again", 1)
	a.find(reader, "again", 1)
}

// Rows that wf has not written so are replaced.
func TestADamagedIndexOfADatabaseIsMadeAnew(t *testing.T) {
	for what, sql := range map[string]string{
		"a page is gone":       "delete from wf.notes where name like 'search.db/%'",
		"a page is changed":    "update wf.notes set body = overlay(body placing 'x' from length(body) - 2) where name like 'search.db/%'",
		"a page is cut off":    "update wf.notes set body = substr(body, 1, length(body) - 3) where name like 'search.db/%'",
		"the list is nonsense": "update wf.notes set body = 'nonsense', n = n + 1 where name = 'search.db'",
		"the list is gone":     "delete from wf.notes where name = 'search.db'",
	} {
		t.Run(what, func(t *testing.T) {
			a := newArchive(t)
			knows := a.machine(a.dsn)
			a.say(knows, "of zeppelins")
			a.find(knows, "zeppelins", 1)
			if err := a.srv.Exec(t.Context(), a.dsn, sql); err != nil {
				t.Fatal(err)
			}
			for _, m := range []*daemon.Foreground{a.machine(a.dsn), knows} {
				if err := m.IndexAll(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
				p, err := m.List(t.Context(), api.Query{Search: "zeppelins"}) // that sees the damage, where these words were not read since
				if err != nil {
					t.Fatal(err)
				}
				if len(p.Items) == 0 && p.Searched.Behind == 0 {
					t.Errorf("nothing is found in %+v", *p.Searched)
				}
				a.find(m, "zeppelins", 1)
			}
			if n := a.ask(pagesOfWords); n != 1 {
				t.Errorf("%d pages are there", n)
			}
		})
	}
}
