package pgstore

import (
	"context"
	"fmt"
	"strings"

	"wf/postgres"
	"wf/protocol"
)

// place is where a store lies in a database: always in this schema, whatever the search_path of a role or of an address says.
var place = postgres.Place{Schema: "wf", Meta: "meta",
	Own: []string{"blocks", "changes", "derived", "heads", "held", "meta", "notes", "packed", "reflog", "runs", "unreached", "workers"}}

// pinFunctions has the functions of a store look up names as its connections do, whoever calls them. It is no step to a layout: an older wf works with it.
const pinFunctions = `alter function wf.held(bytea) set search_path = pg_catalog, pg_temp`

const readUnpinned = `select p.proname::text from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname = 'wf' and p.proname = any($1::text[])
	and not coalesce('search_path=pg_catalog, pg_temp' = any(p.proconfig), false) order by 1`

// strangers are the findings about what other roles have in the store, or may put there.
func (c *conn) strangers(ctx context.Context) (out []Finding, err error) {
	if out, err = postgres.Strangers(ctx, c.Conn, place); err != nil {
		return nil, err
	}
	got, err := c.query(ctx, readUnpinned, texts(place.Own))
	for _, r := range got {
		out = append(out, Finding{Setting: "search_path of the function wf." + string(r[0]), Actual: "that of its caller", Want: "pg_catalog, pg_temp, which wf store migrate sets"})
	}
	return out, err
}

// unspoiled is nil for a store in which nothing of another role would run with the rights of this one.
func (c *conn) unspoiled(ctx context.Context) error {
	found, err := postgres.Strangers(ctx, c.Conn, place)
	if err != nil {
		return err
	}
	var bad []string
	for _, f := range found {
		if f.Fatal {
			bad = append(bad, f.String())
		}
	}
	if len(bad) > 0 {
		return protocol.ErrStore.With("wf store check lists all of it", "code of another role would run with the rights of this one: %s", strings.Join(bad, "; "))
	}
	return nil
}

// ownPlace is nil where a store of this role may be made or changed: in no schema of another role, who could put what he likes in the place of its tables.
func (c *conn) ownPlace(ctx context.Context) error {
	owner, own, err := place.Owner(ctx, c.Conn)
	if err != nil || own || owner == "" {
		return err
	}
	return protocol.ErrStore.With(fmt.Sprintf("name the address of %s if that is the owner of the store; else, as an administrator, look at the schema and drop it: drop schema wf cascade", owner),
		"the schema wf, or the tables in it, belong to the role %s, and this role may not act as that one", owner)
}
