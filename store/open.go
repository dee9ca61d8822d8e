package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"wf/cas"
	"wf/files"
	"wf/pgstore"
	"wf/protocol"
)

// Options are how a store of either kind is opened.
type Options struct {
	MustExist bool   // of a directory: a missing store is an error; a database is never made by opening it
	Seal      []byte // see cas.Options
	Warn      func(error)
	State     string // the user's directory for state, where a database has what lies beside it
}

// outage tells that a database is lost, and that it is back.
func (o Options) outage(err error) {
	switch {
	case o.Warn == nil:
	case err != nil:
		o.Warn(fmt.Errorf("waiting for the store: %w", err))
	default:
		o.Warn(errBack)
	}
}

var errBack = errors.New("the database of the store answers again, and all goes on")

// IsDatabase reports whether the name of a store is the address of a database.
func IsDatabase(name string) bool {
	scheme, _, ok := strings.Cut(name, "://")
	return ok && (strings.EqualFold(scheme, "postgres") || strings.EqualFold(scheme, "postgresql"))
}

// Shown is the name of a store as it may be shown: of a database without what is secret.
func Shown(name string) string {
	scheme, _, isURL := strings.Cut(name, "://")
	switch {
	case IsDatabase(name):
		return pgstore.Redact(name)
	case isURL:
		return scheme + "://…" // a mistake, which may hold a password
	}
	return name
}

// Named is nil for the name of a store of either kind, whether there is one or not. Else the error wraps protocol.ErrStore: an address with a
// mistake in it is no directory.
func Named(name string) error {
	if strings.Contains(name, "://") && !IsDatabase(name) {
		return protocol.ErrStore.With("name a directory, or postgres://USER@HOST:PORT/NAME", "%s is no store that wf knows", Shown(name))
	}
	return nil
}

// Open opens the store that a name names: a directory, or postgres://….
func Open(ctx context.Context, name string, o Options) (Store, error) {
	if err := Named(name); err != nil {
		return nil, err
	}
	if IsDatabase(name) {
		return openDatabase(ctx, name, o)
	}
	of := cas.Options{MustExist: o.MustExist, Warn: o.Warn, Seal: o.Seal}
	// The lock of a read-only store cannot be written, yet the store can be read.
	if o.MustExist && !files.Writable(name) {
		of.ReadOnly = true
	}
	s, err := cas.Open(ctx, name, of)
	if err != nil {
		return nil, err
	}
	s.HandleStop() // Ctrl-Z keeps no other process out
	return s, nil
}

// OfDirectory is nil for a store in a directory, else an error wrapping protocol.ErrNoDirectory; hint says what does
// the same for a database.
func OfDirectory(name, hint string) error {
	if !IsDatabase(name) {
		return nil
	}
	return noDirectory(Shown(name), hint)
}

// Directory is the store as the directory that it is; see OfDirectory.
func Directory(s Store, hint string) (*cas.Store, error) {
	if dir, ok := s.(*cas.Store); ok {
		return dir, nil
	}
	return nil, noDirectory(Shown(s.Name()), hint)
}

func noDirectory(name, hint string) error {
	return protocol.ErrNoDirectory.With(hint, "%s is a database: it has no files that this could work on", name)
}

// database is a store in a database, with what a machine has beside it.
type database struct {
	*pgstore.Store
	name, beside string
}

var _ Store = database{}

func openDatabase(ctx context.Context, name string, o Options) (Store, error) {
	if o.State == "" {
		return nil, protocol.ErrStore.With("set HOME or XDG_STATE_HOME", "%s: there is no directory of this user for what lies beside a database", Shown(name))
	}
	s, err := pgstore.Open(ctx, name, pgstore.Options{Seal: o.Seal, Outage: o.outage})
	if err != nil {
		return nil, err
	}
	return database{Store: s, name: name, beside: filepath.Join(o.State, "databases", strings.TrimPrefix(s.Dir(), "postgres:"))}, nil
}

// Name is the address, as it was opened.
func (d database) Name() string { return d.name }

// LockSink claims a sink among all processes of the database, until unlock is called or this one is not heard of any more.
func (d database) LockSink(ctx context.Context, name string) (unlock func() error, ok bool, err error) {
	claim, err := d.ClaimName(ctx, protocol.NotifyHead(name))
	if errors.Is(err, protocol.ErrRunLive) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	return func() error { return claim.Release(context.WithoutCancel(ctx)) }, true, nil
}

// Beside is a directory in the state of the user, by the id of the store: two addresses of one database share it.
func (d database) Beside() string { return d.beside }
