package pgstore_test

import (
	"bytes"
	"io"
	"slices"
	"testing"

	"wf/cas"
	"wf/cas/castest"
	"wf/pgstore"
	"wf/protocol"
)

// directory opens a new store in a directory, and closes it at the end of the test.
func directory(t testing.TB) *cas.Store {
	t.Helper()
	s := must(cas.Open(t.Context(), t.TempDir()+"/store", cas.Options{Wait: -1}))(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func exported(t testing.TB, s cas.Keeper, run protocol.RunID, children ...protocol.RunID) []byte {
	t.Helper()
	var out bytes.Buffer
	must(cas.Export(t.Context(), &out, s, cas.ExportOptions{Files: true}, run, children...))(t)
	return out.Bytes()
}

// An archive has the same bytes whatever kind of store it was written from, and comes into any.
func TestArchivesOfBothKindsOfStores(t *testing.T) {
	dir, db := directory(t), open(t, fresh(t, running(t)))
	castest.Many(t, dir)
	castest.Many(t, db)
	for _, run := range []protocol.RunID{"one", "fork-of-fork"} {
		if !bytes.Equal(exported(t, dir, run, "two"), exported(t, db, run, "two")) {
			t.Errorf("run %s: the archives differ", run)
		}
	}
	if _, err := cas.Export(t.Context(), io.Discard, db, cas.ExportOptions{}, "gone"); protocol.CodeOf(err) != "run_deleted" {
		t.Errorf("a run that was deleted: %v", err)
	}
	archive := exported(t, db, "one", "third")
	for _, into := range []cas.Keeper{directory(t), open(t, fresh(t, running(t)))} {
		in := must(cas.Import(t.Context(), io.MultiReader(bytes.NewReader(archive)), into, cas.ImportOptions{}))(t) // which cannot be read twice
		if !slices.Equal(in.Runs, []protocol.RunID{"one"}) || !slices.Equal(in.Children, []protocol.RunID{"third"}) {
			t.Errorf("%+v", in)
		}
		if !bytes.Equal(exported(t, into, "one", "third"), archive) {
			t.Error("it is another archive then")
		}
		again := must(cas.Import(t.Context(), bytes.NewReader(archive), into, cas.ImportOptions{}))(t)
		if !slices.Equal(again.Held, []protocol.RunID{"one", "third"}) {
			t.Errorf("the second time %+v", again)
		}
		clean(t, proven(t, into))
	}
}

// proven is the report on a store of either kind.
func proven(t testing.TB, s cas.Keeper) cas.Report {
	t.Helper()
	if dir, ok := s.(*cas.Store); ok {
		return must(cas.Verify(t.Context(), dir, cas.VerifyOptions{}))(t)
	}
	return verified(t, s.(*pgstore.Store), cas.VerifyOptions{})
}

// A run with many events comes in one commit, and is read in parts all the same.
func TestALongRunThatCameInOneCommit(t *testing.T) {
	dir, db := directory(t), open(t, fresh(t, running(t)))
	castest.Longer(t, castest.Sample(t, dir, "long", 0, nil), 5000)
	want := exported(t, dir, "long")
	must(cas.Import(t.Context(), bytes.NewReader(want), db, cas.ImportOptions{}))(t)
	if !bytes.Equal(exported(t, db, "long"), want) {
		t.Error("it is another archive then")
	}
	for _, from := range []protocol.Seq{0, 1, 1023, 1024, 4990} {
		got := must(castest.Events(t.Context(), db, "long", from))(t)
		if len(got) != 5002-int(from) || got[0].Seq != from+1 {
			t.Errorf("after %d: %d events", from, len(got))
		}
	}
}
