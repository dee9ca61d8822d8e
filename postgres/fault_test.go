package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"wf/postgres"
	"wf/protocol"
)

// F507: what the server says leads to words about that, each with the way out, and never to those about a damaged directory.
func TestF507WhatTheServerRefusesIsNamed(t *testing.T) {
	for _, c := range []struct {
		err         error
		kind        *protocol.Error
		words, hint string
	}{
		{&pgconn.PgError{Code: "28P01"}, protocol.ErrStore, "does not let this role in", "PGPASSFILE"},
		{&pgconn.PgError{Code: "28000"}, protocol.ErrStore, "does not let this role in", "PGPASSFILE"},
		{&pgconn.PgError{Code: "3D000"}, protocol.ErrStore, "no such database", "createdb"},
		{&pgconn.PgError{Code: "42501"}, protocol.ErrReadOnly, "this role may not", "--worker"},
		{&pgconn.PgError{Code: "25006"}, protocol.ErrUnreachable, "takes no writes", "primary"},
		{pgconn.ErrReadOnlyConnection, protocol.ErrUnreachable, "takes no writes", "primary"},
		{pgconn.ErrStandbyConnection, protocol.ErrUnreachable, "takes no writes", "primary"},
		{&pgconn.PgError{Code: "22000"}, protocol.ErrStore, "refused it", "the server"},
		{&pgconn.PgError{Code: "57P01"}, protocol.ErrUnreachable, "cannot be reached", "answers"},
		{&pgconn.PgError{Code: "53300"}, protocol.ErrUnreachable, "cannot be reached", "answers"},
		{&pgconn.PgError{Code: "53100"}, protocol.ErrDiskFull, "no space", "space"},
		{errors.New("connection refused"), protocol.ErrUnreachable, "cannot be reached", "answers"},
	} {
		got := postgres.Classify(t.Context(), fmt.Errorf("connect: %w", c.err))
		hint := protocol.HintOf(got)
		if !errors.Is(got, c.kind) || !errors.Is(got, c.err) || !strings.Contains(got.Error(), c.words) || !strings.Contains(hint, c.hint) || strings.Contains(hint, "wf verify") {
			t.Errorf("%v: %v, fix: %s", c.err, got, hint)
		}
	}
}
