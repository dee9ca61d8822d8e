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
	kind := protocol.ErrUnreachable
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && !passing(e) {
		switch e.Code {
		case "53100": // disk_full
			kind = protocol.ErrDiskFull
		case "XX001", "XX002": // data_corrupted, index_corrupted
			kind = protocol.ErrCorrupt
		case "42501": // insufficient_privilege
			kind = protocol.ErrReadOnly
		default:
			kind = protocol.ErrStore
		}
	}
	return fmt.Errorf("%w: %w", kind, err)
}
