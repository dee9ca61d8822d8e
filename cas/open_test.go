package cas_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	bolt "go.etcd.io/bbolt"

	"wf/cas"
	"wf/cas/castest"
	"wf/protocol"
)

// pattern is a store with a few events, made once.
var pattern = sync.OnceValue(func() fs.FS {
	dir, err := os.MkdirTemp("", "castest")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	s, err := cas.Open(context.Background(), dir, cas.Options{})
	if err != nil {
		panic(err)
	}
	j, err := s.Journal(context.Background(), "r1")
	for i := 0; i < 200 && err == nil; i += 8 {
		var drafts []cas.Draft
		for k := range 8 {
			drafts = append(drafts, cas.Draft{Step: "coder#1", Data: protocol.TextSaid{Content: protocol.NewText(fmt.Sprint("text ", i+k))}})
		}
		_, err = j.Append(context.Background(), castest.Now+int64(i), drafts, []cas.Block{cas.Raw(fmt.Append(nil, "payload ", i))})
	}
	if err := errors.Join(err, s.Close()); err != nil {
		panic(err)
	}
	out := fstest.MapFS{}
	for _, name := range []string{"store.db", "store.lock", "turn"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			panic(err)
		}
		out[name] = &fstest.MapFile{Data: b, Mode: 0o600}
	}
	return out
})

// made is a copy of pattern.
func made(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	if err := os.CopyFS(dir, pattern()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// edit changes the database behind the back of the store.
func edit(t *testing.T, dir string, f func(*bolt.Tx) error) {
	t.Helper()
	db, err := bolt.Open(filepath.Join(dir, "store.db"), 0o600, &bolt.Options{Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(f), db.Close()); err != nil {
		t.Fatal(err)
	}
}

// tree is every file below dir with its content.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "turn" || d.Name() == "store.lock" {
			return err
		}
		b, err := os.ReadFile(path)
		out[path] = string(b)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return out
}

func TestX02AFailedOpenChangesNothing(t *testing.T) {
	db := func(dir string) string { return filepath.Join(dir, "store.db") }
	truncate := func(n int64) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			if err := os.Truncate(db(dir), n); err != nil {
				t.Fatal(err)
			}
		}
	}
	write := func(name, content string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, dir string)
		opts  cas.Options
		want  error
		says  string
	}{
		{"a store cut to nothing", truncate(0), cas.Options{}, protocol.ErrStore, "empty"},
		{"a store cut in its first page", truncate(100), cas.Options{}, protocol.ErrStore, "cut short"},
		{"a store cut in half", truncate(12 << 10), cas.Options{}, protocol.ErrStore, "cut short"},
		{"a store cut in half, for reading", truncate(12 << 10), cas.Options{ReadOnly: true}, protocol.ErrStore, "cut short"},
		{"another kind of file", write("store.db", strings.Repeat("SQLite format 3 ", 1000)), cas.Options{}, protocol.ErrStore, "no wf store"},
		{"a newer layout", func(t *testing.T, dir string) {
			edit(t, dir, func(tx *bolt.Tx) error { return tx.Bucket([]byte("meta")).Put([]byte("version"), []byte{99}) })
		}, cas.Options{}, protocol.ErrNewerStore, "layout 99, this wf knows up to 2"},
		{"someone else's bbolt file", func(t *testing.T, dir string) {
			edit(t, dir, func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte("blocks")) })
		}, cas.Options{}, protocol.ErrStore, "lacks the buckets"},
		{"damaged meta pages", func(t *testing.T, dir string) {
			b, err := os.ReadFile(db(dir))
			if err != nil {
				t.Fatal(err)
			}
			b[16+50] ^= 1
			b[4096+16+50] ^= 1
			write("store.db", string(b))(t, dir)
		}, cas.Options{}, protocol.ErrStore, "meta pages"},
		{"a directory in place of the file", func(t *testing.T, dir string) {
			if err := errors.Join(os.Remove(db(dir)), os.Mkdir(db(dir), 0o700)); err != nil {
				t.Fatal(err)
			}
		}, cas.Options{}, protocol.ErrStore, "no regular file"},
		{"a link in place of the file", func(t *testing.T, dir string) {
			elsewhere := filepath.Join(t.TempDir(), "db")
			if err := errors.Join(os.Rename(db(dir), elsewhere), os.Symlink(elsewhere, db(dir))); err != nil {
				t.Fatal(err)
			}
		}, cas.Options{}, protocol.ErrStore, "no regular file"},
		{"a link that leads nowhere", func(t *testing.T, dir string) {
			if err := errors.Join(os.Remove(db(dir)), os.Symlink("nowhere", db(dir))); err != nil {
				t.Fatal(err)
			}
		}, cas.Options{}, protocol.ErrStore, "no regular file"},
		{"a store.db that is gone", func(t *testing.T, dir string) {
			if err := os.Remove(db(dir)); err != nil {
				t.Fatal(err)
			}
		}, cas.Options{}, protocol.ErrStore, "put it back"},
		{"a directory of something else", func(t *testing.T, dir string) {
			if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
				t.Fatal(err)
			}
			write("thesis.tex", "x")(t, dir)
		}, cas.Options{}, protocol.ErrStore, "thesis.tex"},
		{"a file", func(t *testing.T, dir string) {
			if err := errors.Join(os.RemoveAll(dir), os.WriteFile(dir, []byte("x"), 0o600)); err != nil {
				t.Fatal(err)
			}
		}, cas.Options{}, protocol.ErrStore, "is a file"},
		{"nothing, where a store must be", func(t *testing.T, dir string) {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}, cas.Options{MustExist: true}, protocol.ErrStore, "no store"},
		{"a held store", func(t *testing.T, dir string) {
			f, err := os.OpenFile(filepath.Join(dir, "store.lock"), os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = f.Close() })
			flock(t, f)
		}, cas.Options{Wait: 50 * time.Millisecond}, protocol.ErrBusy, "held by process"},
		{"another user's directory", func(t *testing.T, dir string) {
			if os.Geteuid() != 0 {
				t.Skip("only root can give a directory away")
			}
			if err := os.Chown(dir, 65534, 65534); err != nil {
				t.Fatal(err)
			}
		}, cas.Options{}, protocol.ErrStore, "belongs to user 65534"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := made(t)
			c.spoil(t, dir)
			before := tree(t, dir)
			s, err := cas.Open(t.Context(), dir, c.opts)
			if err == nil {
				t.Fatal(errors.Join(errors.New("it opened"), s.Close()))
			}
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("want %q with %q, have: %v", protocol.CodeOf(c.want), c.says, err)
			}
			after := tree(t, dir)
			for path, b := range before {
				if after[path] != b {
					t.Errorf("%s went from %d to %d bytes", path, len(b), len(after[path]))
				}
			}
			if len(after) != len(before) {
				t.Errorf("%d files became %d", len(before), len(after))
			}
		})
	}
}

func TestReadOnlyStoresAreRead(t *testing.T) {
	dir := made(t)
	before := tree(t, dir)
	s, err := cas.Open(t.Context(), dir, cas.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	events, err := castest.Events(t.Context(), s, "r1", 0)
	if err != nil || len(events) != 200 {
		t.Errorf("%d events, %v", len(events), err)
	}
	if err := s.Commit(t.Context(), cas.Batch{}); !errors.Is(err, protocol.ErrReadOnly) {
		t.Errorf("commit: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for path, b := range tree(t, dir) {
		if before[path] != b {
			t.Errorf("%s changed", path)
		}
	}
}

func TestW05IndexesAreRebuilt(t *testing.T) {
	drop := func(names ...string) func(*bolt.Tx) error {
		return func(tx *bolt.Tx) error {
			for _, n := range names {
				if err := tx.DeleteBucket([]byte(n)); err != nil {
					return err
				}
			}
			return nil
		}
	}
	inner := func(name string) func(*bolt.Tx) error {
		return func(tx *bolt.Tx) error { return tx.Bucket([]byte("index")).DeleteBucket([]byte(name)) }
	}
	for _, c := range []struct {
		name string
		lose func(*bolt.Tx) error
		kin  bool // what forks share is known also where the store is not written
	}{
		{"all but blocks and heads", drop("index", "reflog", "meta"), false},
		{"the index", drop("index"), false},
		{"the places of blocks", inner("blocks"), true},
		{"the checkpoints of events", inner("events"), true},
		{"what forks share", inner("bases"), false},
		{"the forks of each run", inner("forks"), true},
		{"the derived values", inner("derived"), true},
	} {
		for _, readOnly := range []bool{false, true} {
			name := c.name
			if readOnly {
				name += ", for reading only"
			}
			t.Run(name, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "store")
				s, ctx := openStore(t, dir), t.Context()
				j, err := s.Journal(ctx, "r1")
				if err != nil {
					t.Fatal(err)
				}
				base := castest.Append(t, j, 300)
				f, err := j.Fork(ctx, castest.Now, "r2", base[149], []cas.Draft{{Data: protocol.Forked{Base: base[149].CID}}}, nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				castest.Append(t, f, 100)
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				edit(t, dir, c.lose)
				s, err = cas.Open(ctx, dir, cas.Options{ReadOnly: readOnly})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				for range 2 { // the second time from what the first one rebuilt
					for run, want := range map[protocol.RunID]int{"r1": 300, "r2": 251} {
						for _, from := range []int{0, 40, 140, 200} {
							got, err := castest.Events(ctx, s, run, protocol.Seq(from))
							if err != nil || len(got) != want-from {
								t.Fatalf("%s after %d: %d events, %v", run, from, len(got), err)
							}
							if run == "r1" && !bytes.Equal(got[0].Raw, base[from].Raw) {
								t.Errorf("%s after %d: other bytes", run, from)
							}
						}
					}
				}
				if c.kin || !readOnly {
					base, shared, err := s.Base(ctx, "r2")
					forks, why := s.Forks(ctx, "r1")
					if base != "r1" || shared != 150 || !slices.Equal(forks, []cas.Sharer{{Run: "r2", Seq: 150}}) || err != nil || why != nil {
						t.Errorf("r2 shares the events up to %d with %q, and r1 has the forks %v: %v, %v", shared, base, forks, err, why)
					}
				}
				if readOnly {
					return
				}
				j, err = s.Journal(ctx, "r1")
				if err != nil {
					t.Fatal(err)
				}
				castest.Append(t, j, 70)
				if got, err := castest.Events(ctx, s, "r1", 0); err != nil || len(got) != 370 {
					t.Errorf("after going on: %d events, %v", len(got), err)
				}
			})
		}
	}
}

func TestDamageIsFoundNotReturned(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector checks pointer arithmetic, and of what bbolt does on a damaged page it makes a throw that nothing recovers from")
	}
	dir := made(t)
	path := filepath.Join(dir, "store.db")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := openStore(t, dir)
	want, err := castest.Events(t.Context(), s, "r1", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	found := 0
	for at := 8192; at < len(whole); at += 151 {
		spoiled := bytes.Clone(whole)
		spoiled[at] ^= 1 << (at % 8)
		if err := os.WriteFile(path, spoiled, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := cas.Open(t.Context(), dir, cas.Options{ReadOnly: true})
		if err != nil {
			found++
			continue
		}
		got, err := castest.Events(t.Context(), s, "r1", 0)
		if err != nil {
			found++
			if protocol.CodeOf(err) == "" {
				t.Errorf("byte %d: an error without a code: %v", at, err)
			}
		}
		for i := range got {
			if !bytes.Equal(got[i].Raw, want[i].Raw) {
				t.Errorf("byte %d: event %d came back changed", at, i+1)
			}
		}
		if err == nil && len(got) != len(want) {
			t.Errorf("byte %d: %d events and no error", at, len(got))
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if found == 0 {
		t.Error("no flipped bit was noticed")
	}
}
