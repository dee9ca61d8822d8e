package store

import (
	"context"

	"wf/cas"
	"wf/pgstore"
)

// What is done to databases before they are opened; see pgstore.
type (
	Roles  = pgstore.Roles
	Meta   = pgstore.Meta
	Report = pgstore.Report
)

// Init makes a store in the database with this address; see pgstore.Init.
func Init(ctx context.Context, name string, r Roles) (Meta, error) { return pgstore.Init(ctx, name, r) }

// Migrate brings a store to the layout of this program; see pgstore.Migrate.
func Migrate(ctx context.Context, name string, tell func(string)) (Meta, error) {
	return pgstore.Migrate(ctx, name, tell)
}

// Check looks at a database without changing it; see pgstore.Check.
func Check(ctx context.Context, name string) (Report, error) { return pgstore.Check(ctx, name) }

// Verify proves a store by hash; see cas.Verify.
func Verify(ctx context.Context, s Store, o cas.VerifyOptions) (cas.Report, error) {
	if d, ok := s.(database); ok {
		return pgstore.Verify(ctx, d.Store, o)
	}
	dir, err := Directory(s, "")
	if err != nil {
		return cas.Report{}, err
	}
	return cas.Verify(ctx, dir, o)
}

// Collect removes the blocks that nothing reaches; see cas.GC and pgstore.GC, which keeps them for days.
func Collect(ctx context.Context, s Store, o cas.GCOptions) (cas.GCReport, error) {
	if d, ok := s.(database); ok {
		return pgstore.GC(ctx, d.Store, o)
	}
	dir, err := Directory(s, "")
	if err != nil {
		return cas.GCReport{}, err
	}
	return cas.GC(ctx, dir, o)
}

// A Note is a text in a store that several processes change; see pgstore.Note.
type Note interface {
	Change(do func(old []byte) (text []byte, err error)) error
}

// A Shelf has files of a cache that all machines of a store share; see pgstore.Shelf.
type (
	Shelf = *pgstore.Shelf
	Part  = pgstore.Part
)

// ShelfOf is a shelf of a store of several machines; false for a directory, beside which files lie.
func ShelfOf(s Store, name string) (Shelf, bool) {
	d, ok := s.(database)
	if !ok {
		return nil, false
	}
	return d.Store.Shelf(name), true
}

// NoteOf is a note of a store of several machines; false for a directory, beside which files lie.
func NoteOf(s Store, name string) (Note, bool) {
	d, ok := s.(database)
	if !ok {
		return nil, false
	}
	return d.Store.Note(name), true
}
