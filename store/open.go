package store

import (
	"context"
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
}

// IsDatabase reports whether the name of a store is the address of a database.
func IsDatabase(name string) bool {
	scheme, _, ok := strings.Cut(name, "://")
	return ok && (strings.EqualFold(scheme, "postgres") || strings.EqualFold(scheme, "postgresql"))
}

// Shown is the name of a store as it may be shown: of a database without what is secret.
func Shown(name string) string {
	if IsDatabase(name) {
		return pgstore.Redact(name)
	}
	return name
}

// Open opens the store that a name names: a directory, or postgres://….
func Open(ctx context.Context, name string, o Options) (Store, error) {
	if IsDatabase(name) {
		return nil, protocol.ErrStore.With("", "%s: no store in a database is opened yet", Shown(name))
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
	return nil, noDirectory(s.Dir(), hint)
}

func noDirectory(name, hint string) error {
	return protocol.ErrNoDirectory.With(hint, "%s is a database: it has no files that this could work on", name)
}
