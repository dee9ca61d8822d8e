package database

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"

	"wf/postgres"
	"wf/protocol"
)

//go:embed schema.sql
var schema string

// layout of the tables. A hub of another one does not use them.
const layout = 1

// lockKey keeps two hubs apart that make the tables.
const lockKey = 0x7766_6875 // "wfhu"

type meta struct {
	layout int
	uuid   string
	digest []byte
}

// place is where the queue lies, whatever the search_path of a role or of an address says.
var place = postgres.Place{Schema: "wfhub", Meta: "meta", Own: []string{"boxes", "jobs", "links", "meta", "pointers", "workers"}}

// unspoiled is nil for a queue in which nothing of another role would run with the rights of this one.
func unspoiled(ctx context.Context, c *postgres.Conn) error {
	found, err := postgres.Strangers(ctx, c, place)
	for _, f := range found {
		if f.Fatal {
			return protocol.ErrStore.With("as an administrator: look at it, and do what is said", "code of another role would run with the rights of this one: %s", f)
		}
	}
	return err
}

// ownPlace is nil where this role may make a queue: in no schema of another one, who could put what he likes in the place of its tables.
func ownPlace(ctx context.Context, c *postgres.Conn) error {
	owner, own, err := place.Owner(ctx, c)
	if err != nil || own || owner == "" {
		return err
	}
	return protocol.ErrStore.With("as an administrator, if nothing is in it: drop schema wfhub; create schema wfhub authorization ROLE",
		"the schema wfhub belongs to the role %s, and this role may not act as that one", owner)
}

// metaOf reads what the tables say of themselves.
func metaOf(ctx context.Context, c *postgres.Conn) (meta, error) {
	got, err := c.Query(ctx, `select layout::bigint, uuid::text, digest from wfhub.meta`)
	if err != nil {
		return meta{}, err
	}
	if len(got) != 1 {
		return meta{}, fmt.Errorf("wfhub.meta has %d rows: %w", len(got), protocol.ErrCorrupt)
	}
	m := meta{int(postgres.ReadLong(got[0][0])), string(got[0][1]), got[0][2]}
	if m.layout > layout {
		return m, fmt.Errorf("the queue has layout %d, this wf knows up to %d: %w", m.layout, layout, protocol.ErrNewerStore)
	}
	return m, nil
}

// safe is nil for a connection to a database that keeps what it acknowledges.
func safe(ctx context.Context, c *postgres.Conn) error {
	_, found, err := postgres.Settings(ctx, c)
	for _, f := range found {
		if f.Fatal {
			return protocol.ErrStore.With("change that setting: what the database acknowledges must be durable", "%s", f)
		}
	}
	return err
}

// explain says what to do about an error of the database, where its hint is for stores.
func explain(err error) error {
	switch {
	case errors.Is(err, protocol.ErrStore) && protocol.HintOf(err) == protocol.ErrStore.Hint:
		return protocol.Hinted(err, "mend what the database says, or name another one with --data")
	case errors.Is(err, protocol.ErrReadOnly):
		return protocol.Hinted(err, "as the owner of the schema: grant usage on schema wfhub to ROLE; grant select, insert, update, delete on all tables in schema wfhub to ROLE")
	}
	return err
}

// prepare makes the tables where there are none, and looks at them. Nothing half made stays.
func prepare(ctx context.Context, a *postgres.Address) (m meta, err error) {
	c, err := a.Connect(ctx, postgres.Writable, nil)
	if err != nil {
		return m, explain(err)
	}
	defer c.Close()
	if err = safe(ctx, c); err != nil {
		return m, explain(postgres.Classify(ctx, err))
	}
	there, err := c.Query(ctx, `select to_regclass('wfhub.meta') is not null`)
	if err == nil && there[0][0][0] == 0 {
		if err = postgres.Classify(ctx, create(ctx, c)); errors.Is(err, protocol.ErrReadOnly) {
			return m, protocol.Hinted(fmt.Errorf("the role may not make the tables of the queue: %w", err), "as the owner of the database: create schema wfhub authorization ROLE; the hub makes its tables there")
		}
	}
	if err == nil {
		m, err = metaOf(ctx, c)
	}
	if err == nil {
		err = unspoiled(ctx, c)
	}
	return m, explain(postgres.Classify(ctx, err))
}

// create makes the tables in one transaction. Another hub may have been faster.
func create(ctx context.Context, c *postgres.Conn) error {
	if err := c.Do(ctx, fmt.Sprintf("begin; set local synchronous_commit = on; set local client_min_messages = warning; select pg_advisory_xact_lock(%d)", lockKey)); err != nil {
		return err
	}
	// Another statement, after the lock: it sees what the one before has made.
	got, err := c.Query(ctx, `select to_regclass('wfhub.meta') is not null, to_regnamespace('wfhub') is not null`)
	if err != nil {
		return err
	}
	if made := got[0][0][0] == 1; made {
		return c.Do(ctx, "commit")
	}
	if err := ownPlace(ctx, c); err != nil {
		return err
	}
	if there := got[0][1][0] == 1; !there {
		if err := c.Do(ctx, "create schema wfhub"); err != nil {
			return err
		}
	}
	if err := c.Do(ctx, schema); err != nil {
		return err
	}
	digest := make([]byte, 32)
	_, _ = rand.Read(digest) // it never fails
	if _, err := c.Query(ctx, `insert into wfhub.meta (layout, uuid, digest) values ($1, gen_random_uuid(), $2)`, postgres.Integer(layout), postgres.Bytea(digest)); err != nil {
		return err
	}
	return c.Do(ctx, "commit")
}
