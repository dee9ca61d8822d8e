package database_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"wf/hub/queue/database"
	"wf/hub/queue/queuetest"
	"wf/pgstore/pgtest"
	"wf/protocol"
)

// Whatever other roles make in a database, nothing of it runs by what a hub asks, direct and behind a pooler in transaction mode.
func TestF410NothingOfAnotherRoleRunsByAHub(t *testing.T) {
	h := pgtest.Guarded(t)
	for _, c := range []string{"direct", "PgBouncer"} {
		t.Run(c, func(t *testing.T) {
			via := func(dsn string) string { return dsn }
			if c == "PgBouncer" {
				pool, err := pgtest.NewBouncer(h.Server, 4)
				pgtest.Needed(t, err)
				t.Cleanup(func() {
					if err := pool.Stop(); err != nil {
						t.Error(err)
					}
				})
				via = pool.Of
			}
			dsn := must(h.Database(t.Context()))(t)
			last := "" // directory of the suite, each of which is another queue
			queuetest.Exercise(t, func(t *testing.T, dir string) queuetest.Backend {
				if last != dir {
					if err := h.Exec(t.Context(), pgtest.Looker(dsn), "set client_min_messages = warning; drop schema if exists wfhub cascade"); err != nil {
						t.Fatal(err)
					}
					last = dir
				}
				s := must(database.OpenAt(t.Context(), via(dsn), time.Now))(t)
				return queuetest.Backend{Queue: s.Queue, Registry: s.Registry, Pointers: s.Pointers, Close: s.Close}
			})
			s := open(t, via(must(h.Database(t.Context()))(t)), database.Options{}) // hears of others
			submit(t, s, "job")
			database.Sweep(s)
		})
	}
}

// A queue on whose tables another role has put code is not used, and none is made in the schema of another role.
func TestF410AQueueWithCodeOfAnotherRoleIsNotUsed(t *testing.T) {
	server := pgtest.Shared(t)
	for _, c := range []struct{ name, before, after, want string }{
		{"a trigger", "", `create function public.f() returns trigger language plpgsql as 'begin return new; end'; alter function public.f() owner to STRANGER;
			create trigger tr before update on wfhub.meta for each row execute function public.f()`, "trigger tr on wfhub.meta is what runs function public.f() of STRANGER"},
		{"a table", "", `alter table wfhub.jobs owner to STRANGER`, "table wfhub.jobs is owned by STRANGER"},
		{"the right to make something", "", `grant create on schema wfhub to public`, ""},
		{"the schema", `create schema wfhub; grant all on schema wfhub to public; alter schema wfhub owner to STRANGER`, "", "the schema wfhub belongs to the role STRANGER"},
		{"a schema for the hub", `create schema wfhub authorization HUB`, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			admin := must(server.Database(t.Context()))(t)
			of, _, _ := strings.Cut(strings.TrimPrefix(admin, "postgres://wf@/"), "?")
			hub := "hub_" + of
			names := strings.NewReplacer("STRANGER", "stranger_"+of, "HUB", hub)
			do := func(sql string) {
				t.Helper()
				if err := server.Exec(t.Context(), admin, "set client_min_messages = warning; "+names.Replace(sql)); err != nil {
					t.Fatal(err)
				}
			}
			do("create role STRANGER login; create role HUB login; grant create on database " + of + " to HUB; grant all on schema public to public; " + c.before)
			dsn := strings.Replace(admin, "wf@", hub+"@", 1)
			s, err := database.Open(t.Context(), dsn, database.Options{})
			if err == nil {
				if err = s.Close(); err != nil {
					t.Fatal(err)
				}
				do(c.after)
				if s, err = database.Open(t.Context(), dsn, database.Options{}); err == nil {
					err = s.Close()
				}
			}
			if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, protocol.ErrStore) || !strings.Contains(err.Error(), names.Replace(c.want)) || protocol.HintOf(err) == "") {
				t.Errorf("%v (%s), want %q", err, protocol.HintOf(err), c.want)
			}
		})
	}
}
