package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"wf/pgstore/pgtest"
	"wf/store"
)

// database is the address of an empty database.
func database(t testing.TB) string {
	t.Helper()
	dsn, err := pgtest.Shared(t).Database(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return dsn
}

// succeeds performs a command that must succeed, and gives what it wrote to stdout.
func succeeds(t testing.TB, args ...string) string {
	t.Helper()
	got := wfMain(args...)
	if got.exit != 0 {
		t.Fatalf("wf %s: exit %d\n%s%s", args, got.exit, got.stdout, got.stderr)
	}
	return got.stdout
}

// atDatabase copies the store into a database.
func (h *house) atDatabase(t *testing.T) []string {
	dsn := database(t)
	succeeds(t, "store", "init", dsn)
	succeeds(t, "store", "copy", filepath.Join(h.dir, ".wf"), dsn)
	succeeds(t, "store", "adopt", "--yes", "--store", dsn)
	t.Setenv("WF_STORE", filepath.Join(h.top, "house", "empty"))
	h.mask.place, h.store = store.Shown(dsn), dsn
	return []string{"--store", dsn}
}

// What cannot be a store in a database is one clear error, and nothing is made.
func TestADatabaseThatIsNotFit(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_STATE_HOME", "")
	dsn := database(t)
	for _, x := range []struct {
		args []string
		exit int
		want []string
	}{
		{[]string{"ls", "--store", dsn}, 5, []string{"the database holds no store", "wf store init makes one"}},
		{[]string{"store", "check", dsn}, 5, []string{"is not fit for a store"}},
		{[]string{"store", "migrate", dsn}, 5, []string{"the database holds no store"}},
		{[]string{"ls", "--store", "postgres://a:secret@localhost/x"}, 5, []string{"the address holds a password", "PGPASSFILE"}},
		{[]string{"ls", "--store", "postgres://db.example.com/x"}, 5, []string{"its certificate would not be verified", "sslmode=verify-full"}},
		{[]string{"ls", "--store", "postgres://wf@127.0.0.1:1/x"}, 5, []string{"cannot be reached", "postgres://wf@127.0.0.1:1/x"}},
		{[]string{"ls", "--store", strings.Replace(dsn, "wf@", "nobody@", 1)}, 5, []string{"nobody"}},
		{[]string{"ls", "--store", strings.Replace(dsn, "?", "gone?", 1)}, 5, []string{"does not exist"}},
		{[]string{"store", "backup", "x", "--store", "postgres://localhost/x"}, 5, []string{"is a database", "pg_basebackup"}},
		{[]string{"ls", "--store", "postgress://a:secret@localhost/x"}, 5, []string{"is no store that wf knows", "postgres://USER@HOST"}},
		{[]string{"hub", "--data", "postgres://a:secret@localhost/x"}, 5, []string{"the address holds a password", "PGPASSFILE"}},
		{[]string{"hub", "--data", "postgress://a:secret@localhost/x"}, 5, []string{"is no store that wf knows", "postgres://USER@HOST"}},
		{[]string{"hub", "--data", "postgres://wf@127.0.0.1:1/x"}, 5, []string{"cannot be reached", "postgres://wf@127.0.0.1:1/x"}},
		{[]string{"hub", "--data", strings.Replace(dsn, "?", "gone?", 1)}, 5, []string{"does not exist", "correct the name at the end of the address"}},
		{[]string{"hub", "--state", "x"}, 2, []string{"whose --data is a database"}},
		{[]string{"store", "init", "x"}, 2, []string{"is no address of a database"}},
		{[]string{"store", "init"}, 2, []string{"is a directory"}},
	} {
		got := wfMain(x.args...)
		if got.exit != x.exit || slices.ContainsFunc(x.want, func(w string) bool { return !strings.Contains(got.stdout+got.stderr, w) }) || strings.Contains(got.String(), "secret") {
			t.Errorf("wf %s: exit %d, want %d and %q\n%s%s", x.args, got.exit, x.exit, x.want, got.stdout, got.stderr)
		}
	}
}
