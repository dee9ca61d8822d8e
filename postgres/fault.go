package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"wf/protocol"
)

// lost reports whether an error of the server is its end, or that of the session, rather than a refusal.
func lost(e *pgconn.PgError) bool {
	return strings.HasPrefix(e.Code, "57P") || strings.HasPrefix(e.Code, "08") || e.SeverityUnlocalized == "FATAL" || e.SeverityUnlocalized == "PANIC"
}

// passing reports whether the server refused for a reason that may pass by itself, or has ended a session that was idle in a transaction.
func passing(e *pgconn.PgError) bool {
	return strings.HasPrefix(e.Code, "57P") || strings.HasPrefix(e.Code, "08") || e.Code == "53300" || e.Code == "25006" || e.Code == "25P03"
}

// Refused reports whether the server refused a statement with one of these codes.
func Refused(err error, codes ...string) bool {
	e, is := errors.AsType[*pgconn.PgError](err)
	for _, c := range codes {
		if is && e.Code == c {
			return true
		}
	}
	return false
}

// Deadlocked reports whether a transaction was undone for the sake of another one, so that it may succeed at the next try.
func Deadlocked(err error) bool { return Refused(err, "40P01", "40001") }

// NoTable reports whether a statement failed because a table, or its schema, is not there.
func NoTable(err error) bool { return Refused(err, "42P01", "3F000") }

// Classify gives an error of pgconn one of the codes of stores.
func Classify(ctx context.Context, err error) error {
	if err == nil || protocol.CodeOf(err) != "" {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w: %w", kindOf(err), err)
}

func kindOf(err error) error {
	e, refused := errors.AsType[*pgconn.PgError](err)
	switch {
	case Refused(err, "25006"), errors.Is(err, pgconn.ErrReadOnlyConnection), errors.Is(err, pgconn.ErrStandbyConnection): // as long as no other one was promoted
		return protocol.ErrUnreachable.With("name the primary in the address, or all hosts of which one is; wf goes on when it takes writes", "the database takes no writes: it is a standby, or read-only")
	case !refused || passing(e):
		return protocol.ErrUnreachable
	}
	switch e.Code {
	case "53100": // disk_full
		return protocol.ErrDiskFull
	case "XX001", "XX002": // data_corrupted, index_corrupted
		return protocol.ErrCorrupt
	case "42501": // insufficient_privilege
		return protocol.ErrReadOnly.With("the owner of the tables grants rights, wf store init --worker ROLE those to drive runs; or name another role in the address", "this role may not do that in the database")
	case "28P01", "28000": // invalid_password, invalid_authorization_specification
		return protocol.ErrStore.With("correct the role in the address, or its password in the file of PGPASSFILE (~/.pgpass) or in a service file", "the database does not let this role in")
	case "3D000": // invalid_catalog_name
		return protocol.ErrStore.With("correct the name at the end of the address, or make the database: createdb NAME", "the server has no such database")
	}
	return protocol.ErrStore.With("the words of the server tell what it refuses", "the database refused it")
}
