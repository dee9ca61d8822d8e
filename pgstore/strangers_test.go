package pgstore_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"wf/cas/castest"
	"wf/pgstore"
	"wf/pgstore/pgtest"
	"wf/protocol"
)

// sharedDatabase is a database whose owner is no superuser, with a second role that is nobody. The addresses are those of the owner and of an administrator.
func sharedDatabase(t *testing.T) (srv *pgtest.Server, owner, stranger, dsn, admin string) {
	t.Helper()
	srv = running(t)
	admin = must(srv.Database(t.Context()))(t)
	of := nameOf(admin)
	owner, stranger = "owner_"+of, "stranger_"+of
	if err := srv.Exec(t.Context(), admin, fmt.Sprintf(`create role %[1]s login; create role %[2]s login; create role both_%[3]s in role %[1]s login; grant create on database %[3]s to %[1]s, %[2]s, both_%[3]s; grant all on schema public to public`, owner, stranger, of)); err != nil {
		t.Fatal(err)
	}
	return srv, owner, stranger, strings.Replace(admin, "wf@", owner+"@", 1), admin
}

// What another role has in the schema of a store or on its tables, and may put there, is told, with the statement that mends it; what would run with the rights of
// those who use the store keeps it from being opened. What the owner, or one who may act as it, has there is its own.
func TestF410WhatOtherRolesHaveInAStoreIsTold(t *testing.T) {
	srv, owner, stranger, dsn, admin := sharedDatabase(t)
	ctx := t.Context()
	must(pgstore.Init(ctx, dsn, pgstore.Roles{}))(t)
	do := func(sql string) {
		t.Helper()
		sql = strings.NewReplacer("OWNER", owner, "STRANGER", stranger, "BOTH", "both_"+nameOf(admin)).Replace(sql)
		if err := srv.Exec(ctx, admin, "set client_min_messages = warning; "+sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	told := func() (all string, fatal bool) {
		for _, f := range must(pgstore.Check(ctx, dsn))(t).Findings {
			if f.Setting != "idle_in_transaction_session_timeout" {
				all, fatal = all+f.String()+"\n", fatal || f.Fatal
			}
		}
		return all, fatal
	}
	const f = `create function public.f() returns trigger language plpgsql as 'begin return new; end'; alter function public.f() owner to STRANGER; `
	const b = `create function public.b(bytea) returns boolean immutable language sql as 'select true'; alter function public.b(bytea) owner to STRANGER; `
	for _, c := range []struct {
		name, plant string
		want        []string // in what is told; none: nothing is
		fatal       bool
		mend        string // "": the statements that are told
	}{
		{"nothing", "", nil, false, ""},
		{"a trigger", f + `create trigger tr before insert on wf.runs for each row execute function public.f()`, []string{"trigger tr on wf.runs is what runs function public.f() of STRANGER", "drop trigger tr on wf.runs"}, true, `drop function public.f() cascade`},
		{"a trigger of the owner", `create function public.f() returns trigger language plpgsql as 'begin return new; end'; alter function public.f() owner to OWNER; create trigger tr before insert on wf.runs for each row execute function public.f()`, nil, false, `drop function public.f() cascade`},
		{"a trigger of one who may act as the owner", `create function public.f() returns trigger language plpgsql as 'begin return new; end'; alter function public.f() owner to BOTH; create trigger tr before insert on wf.runs for each row execute function public.f()`, nil, false, `drop function public.f() cascade`},
		{"a default", `create function public.d() returns bigint language sql as 'select 1::bigint'; alter function public.d() owner to STRANGER; alter table wf.heads alter seq set default public.d()`, []string{"default value for wf.heads.seq is what runs function public.d() of STRANGER", "alter function public.d() owner to OWNER"}, true, `alter table wf.heads alter seq set default 0; drop function public.d()`},
		{"a constraint", b + `alter table wf.blocks add constraint ch check (public.b(data))`, []string{"table constraint ch on wf.blocks is what runs function public.b(pg_catalog.bytea) of STRANGER"}, true, `alter table wf.blocks drop constraint ch; drop function public.b`},
		{"an index", b + `create index ix on wf.blocks (public.b(data))`, []string{"index wf.ix is what runs function public.b(pg_catalog.bytea) of STRANGER"}, true, `drop index wf.ix; drop function public.b`},
		{"a policy", b + `alter table wf.derived enable row level security; create policy po on wf.derived using (public.b(value))`, []string{"policy po on wf.derived is what runs function public.b(pg_catalog.bytea) of STRANGER", "drop policy po on wf.derived"}, true, `drop policy po on wf.derived; alter table wf.derived disable row level security; drop function public.b`},
		{"a rule", b + `create rule ru as on update to wf.notes where public.b(new.body) do also delete from wf.notes where false`, []string{"rule ru on wf.notes is what runs function public.b(pg_catalog.bytea) of STRANGER", "drop rule ru on wf.notes"}, true, `drop rule ru on wf.notes; drop function public.b`},
		{"a used table", `alter table wf.notes owner to STRANGER`, []string{"table wf.notes is owned by STRANGER", "alter table wf.notes owner to OWNER"}, true, `alter table wf.notes owner to OWNER`},
		{"the used view", `alter view wf.packed owner to STRANGER`, []string{"view wf.packed is owned by STRANGER"}, true, `alter view wf.packed owner to OWNER`},
		{"the used function", `alter function wf.held owner to STRANGER`, []string{"function wf.held(pg_catalog.bytea) is owned by STRANGER"}, true, `alter function wf.held owner to OWNER`},
		{"another table", `create table wf.mine(n int); alter table wf.mine owner to STRANGER`, []string{"table wf.mine is owned by STRANGER", "drop table wf.mine"}, false, `drop table wf.mine`},
		{"another function", `create function wf.unnest(bytea[]) returns setof bytea language sql set search_path = pg_catalog as 'select null::bytea'; alter function wf.unnest owner to STRANGER`, []string{"function wf.unnest(pg_catalog.bytea[]) is owned by STRANGER"}, false, `drop function wf.unnest`},
		{"an operator", `create operator wf.= (function = pg_catalog.byteaeq, leftarg = bytea, rightarg = bytea); alter operator wf.= (bytea, bytea) owner to STRANGER`, []string{"operator wf.=(pg_catalog.bytea,pg_catalog.bytea) is owned by STRANGER"}, false, `drop operator wf.= (bytea, bytea)`},
		{"a type", `create type wf.ty as enum ('a'); alter type wf.ty owner to STRANGER`, []string{"type wf.ty is owned by STRANGER"}, false, `drop type wf.ty`},
		{"the schema", `alter schema wf owner to STRANGER; grant all on schema wf to OWNER`, []string{"schema wf is owned by STRANGER", "alter schema wf owner to OWNER"}, false, `alter schema wf owner to OWNER`},
		{"the right to make something, of all", `grant create on schema wf to public`, []string{"create on wf is a right of public", "revoke create on schema wf from public"}, false, ""},
		{"the right to make something", `grant create on schema wf to STRANGER`, []string{"create on wf is a right of STRANGER", "revoke create on schema wf from STRANGER"}, false, ""},
		{"the right to make something, of one who may act as the owner", `grant create on schema wf to BOTH`, nil, false, "revoke create on schema wf from BOTH"},
		{"the right to put triggers", `grant all on wf.heads to STRANGER`, []string{"trigger on wf.heads is a right of STRANGER", "revoke trigger on table wf.heads from STRANGER"}, false, ""},
		{"rights of a worker", `grant usage on schema wf to STRANGER; grant select, insert, update, delete on all tables in schema wf to STRANGER`, nil, false, ""},
		{"a view elsewhere that reads", b + `create view public.v as select * from wf.blocks where public.b(data); alter view public.v owner to STRANGER`, nil, false, `drop view public.v; drop function public.b`},
		{"the search_path of a function", `alter function wf.held reset search_path`, []string{"search_path of the function wf.held is that of its caller", "wf store migrate"}, false, "migrate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			do(c.plant)
			all, fatal := told()
			for _, w := range c.want {
				if w = strings.NewReplacer("OWNER", owner, "STRANGER", stranger).Replace(w); !strings.Contains(all, w) {
					t.Errorf("told:\n%swant %q", all, w)
				}
			}
			if len(c.want) == 0 && all != "" || fatal != c.fatal {
				t.Errorf("told, fatal %t:\n%s", fatal, all)
			}
			s, err := pgstore.Open(ctx, dsn, pgstore.Options{})
			if err == nil {
				err = s.Close()
			}
			if c.fatal != errors.Is(err, protocol.ErrStore) || !c.fatal && err != nil {
				t.Errorf("opened: %v", err)
			}
			if _, err := pgstore.Migrate(ctx, dsn, nil); c.fatal != errors.Is(err, protocol.ErrStore) || !c.fatal && err != nil {
				t.Errorf("migrated: %v", err)
			}
			switch c.mend {
			case "migrate":
			case "": // what is said works as it is said
				for line := range strings.Lines(all) {
					_, sql, _ := strings.Cut(line, " alone: ")
					do(sql)
				}
			default:
				do(c.mend)
			}
			if all, _ := told(); all != "" {
				t.Errorf("mended, and told:\n%s", all)
			}
		})
	}
}

// What another role has made beforehand is not taken for the place of a store.
func TestF410NoStoreIsMadeInTheSchemaOfAnotherRole(t *testing.T) {
	for _, c := range []struct{ name, plant, want string }{
		{"an empty schema", `create schema wf; grant all on schema wf to public; alter schema wf owner to STRANGER`, "belong to the role STRANGER"},
		{"a whole store", `STORE`, "belong to the role STRANGER"},
		{"tables in a schema of the owner", `create schema wf authorization OWNER; create table wf.mine(n int); alter table wf.mine owner to STRANGER`, ""},
		{"a schema of an administrator", `create schema wf; grant all on schema wf to OWNER`, ""},
		{"a schema for the owner", `create schema wf authorization OWNER`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv, owner, stranger, dsn, admin := sharedDatabase(t)
			names := strings.NewReplacer("OWNER", owner, "STRANGER", stranger)
			if c.plant == "STORE" {
				must(pgstore.Init(t.Context(), strings.Replace(admin, "wf@", stranger+"@", 1), pgstore.Roles{Worker: owner}))(t)
			} else if err := srv.Exec(t.Context(), admin, names.Replace(c.plant)); err != nil {
				t.Fatal(err)
			}
			_, err := pgstore.Init(t.Context(), dsn, pgstore.Roles{})
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				castest.Append(t, must(open(t, dsn).Journal(t.Context(), "r1"))(t), 3)
				return
			}
			if !errors.Is(err, protocol.ErrStore) || !strings.Contains(err.Error(), names.Replace(c.want)) || protocol.HintOf(err) == "" {
				t.Errorf("%v, %s", err, protocol.HintOf(err))
			}
		})
	}
}
