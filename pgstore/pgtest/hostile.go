package pgtest

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"testing"
)

//go:embed hostile.sql
var hostile string

// Hostile is a server in whose databases another role, mallory, has made what catches every name that is not looked up in pg_catalog alone.
type Hostile struct {
	*Server
	template string
}

// Guarded is one of a test, which fails for whatever was caught by its end.
func Guarded(t testing.TB) *Hostile {
	t.Helper()
	s := Own(t)
	h := &Hostile{s, fmt.Sprint("hostile", s.names.Add(1))}
	at := func(dsn, sql string) {
		t.Helper()
		if err := s.Exec(t.Context(), dsn, sql); err != nil {
			t.Fatal(err)
		}
	}
	at(s.DSN("postgres"), "create role mallory; create role looker superuser login; alter role looker set search_path = pg_catalog")
	at(s.DSN("postgres"), "create database "+h.template+" template template0")
	at(Looker(s.DSN(h.template)), hostile)

	dsn, err := h.Database(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{`select unnest('{}'::bytea[])`, `select count(*)`, `select substr('a'::bytea, 1, 2)`, `select 1 = 1`, `select 'a'::text`, `select * from pg_class`,
		`select pg_is_in_recovery()`, `select max(1::bigint)`, `select pg_notify('a', 'b')`, `select coalesce(null, 'a') || 'b'`} {
		if s.Exec(t.Context(), dsn, sql) == nil {
			t.Fatalf("%s is not caught", sql)
		}
		at(Looker(dsn), sql)
	}
	before := len(h.caught())
	t.Cleanup(func() { // before the server is stopped
		for _, line := range h.caught()[before:] {
			t.Error(line)
		}
	})
	return h
}

// Database makes a new database and gives its address. The role of the address, wf, finds there what mallory has made before all else, unless
// it says where it looks: an administrator has set its search_path so. Looker finds what is meant.
func (h *Hostile) Database(ctx context.Context) (string, error) {
	name := fmt.Sprint("t", h.names.Add(1))
	return h.DSN(name), errors.Join(h.Exec(ctx, h.DSN("postgres"), "create database "+name+" template "+h.template),
		h.Exec(ctx, h.DSN("postgres"), "alter role wf in database "+name+" set search_path = public, pg_catalog"))
}

// Looker is an address for a test that looks into a database.
func Looker(dsn string) string { return strings.Replace(dsn, "wf@", "looker@", 1) }

// caught are the lines of the server's log that tell of something of mallory's that ran.
func (h *Hostile) caught() (out []string) {
	for line := range strings.Lines(h.said()) {
		if strings.Contains(line, "canary") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}
