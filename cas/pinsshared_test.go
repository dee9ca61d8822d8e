package cas_test

import (
	"errors"
	"os"
	"testing"

	"wf/cas"
	"wf/cas/castest"
	"wf/protocol"
)

// inDatabase is a store that has no path.
type inDatabase struct{ *cas.Store }

func (inDatabase) Dir() string { return "postgres:0b7e4a1e-0000-4000-8000-000000000001" }

// Runs of a database are the user's own whatever machine began them, and are known there by its name, in whatever directory a
// process is. One that is older than it was seen is not.
func TestPinsOfADatabase(t *testing.T) {
	ctx, state := t.Context(), t.TempDir()
	s, older := inDatabase{opened(t)}, inDatabase{opened(t)}
	j := must(s.Journal(ctx, "r1"))(t)
	castest.Append(t, j, 3)
	castest.Append(t, must(older.Journal(ctx, "r1"))(t), 2)
	p := cas.NewPins(s, state)
	if err := p.Own(ctx, "r1"); err != nil {
		t.Errorf("a run that another machine began: %v", err)
	}
	if err := p.Note(ctx, "r1"); err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := cas.NewPins(older, state).Own(ctx, "r1"); !errors.Is(err, protocol.ErrRolledBack) {
		t.Errorf("the database was put back: %v", err)
	}
	if all := must(os.ReadDir(state + "/heads"))(t); len(all) != 2 { // the heads and their lock
		t.Errorf("files of pinned heads: %v", all)
	}
	if err := p.Disown(ctx, []protocol.RunID{"r1"}); !errors.Is(err, protocol.ErrUsage) {
		t.Errorf("a run from elsewhere: %v", err)
	}
}

func opened(t *testing.T) *cas.Store {
	t.Helper()
	s := must(cas.Open(t.Context(), t.TempDir()+"/store", cas.Options{}))(t)
	t.Cleanup(func() { s.Close() })
	return s
}
