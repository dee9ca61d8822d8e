package pgstore_test

import (
	"strconv"
	"testing"

	"wf/cas"
	"wf/cas/castest"
	"wf/pgstore"
	"wf/pgstore/pgtest"
)

// Whatever other roles make, nothing of it runs by what a store asks, direct and behind a pooler in transaction mode: the suite of stores, and all else that is
// done to a database.
func TestF410NothingOfAnotherRoleRuns(t *testing.T) {
	h := pgtest.Guarded(t)
	for _, c := range []struct {
		name string
		via  func(*testing.T, *pgtest.Hostile) func(dsn string) string
	}{
		{"direct", func(*testing.T, *pgtest.Hostile) func(string) string { return func(dsn string) string { return dsn } }},
		{"by its own search_path", func(*testing.T, *pgtest.Hostile) func(string) string {
			return func(dsn string) string { return dsn + "&search_path=public,pg_catalog" }
		}},
		{"by options", func(*testing.T, *pgtest.Hostile) func(string) string {
			return func(dsn string) string { return dsn + "&options=-c%20search_path%3Dpublic,pg_catalog" }
		}},
		{"several hosts", func(*testing.T, *pgtest.Hostile) func(string) string {
			return func(dsn string) string { return dsn + "&target_session_attrs=primary" }
		}},
		{"PgBouncer", func(t *testing.T, h *pgtest.Hostile) func(string) string {
			pool := started(pgtest.NewBouncer(h.Server, 2))(t)
			return pool.Of
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			via := c.via(t, h)
			places := map[string]string{}
			made := func(t *testing.T, place string) string {
				if places[place] == "" {
					places[place] = must(h.Database(t.Context()))(t)
					must(pgstore.Init(t.Context(), via(places[place]), pgstore.Roles{Worker: "looker", Reader: "mallory"}))(t)
				}
				return via(places[place])
			}
			if c.name == "direct" { // the others send the same statements
				castest.Exercise(t, func(t *testing.T, place string) *pgstore.Store { return open(t, made(t, place)) }, func(t *testing.T, s *pgstore.Store) int64 {
					for _, dsn := range places {
						if uuid := must(h.Ask(t.Context(), pgtest.Looker(dsn), "select uuid from wf.meta"))(t)[0]; s.Dir() == "postgres:"+uuid {
							return must(strconv.ParseInt(must(h.Ask(t.Context(), pgtest.Looker(dsn), "select count(*) from wf.reflog"))(t)[0], 10, 64))(t)
						}
					}
					t.Fatal("the store is of none of the databases")
					return 0
				})
			}
			besides(t, made(t, "besides"))
		})
	}
}

// besides is what the suite of stores does not do.
func besides(t *testing.T, dsn string) {
	ctx := t.Context()
	if r := must(pgstore.Check(ctx, dsn))(t); len(fatal(r)) > 0 || r.Meta.Layout == 0 {
		t.Errorf("%+v", r)
	}
	must(pgstore.Migrate(ctx, dsn, nil))(t)
	s, other := open(t, dsn), open(t, dsn)
	for range 3 { // statements are prepared
		work(t, s, "first")
		work(t, other, "second")
	}
	if err := s.Note("n").Change(func([]byte) ([]byte, error) { return []byte("x"), nil }); err != nil {
		t.Error(err)
	}
	shelf := s.Shelf("words")
	if err := shelf.Put(ctx, "f", []byte("words")); err != nil {
		t.Error(err)
	}
	if _, ok, err := shelf.Replace(ctx, 0, []byte("list"), []string{"f"}); err != nil || !ok {
		t.Error(ok, err)
	}
	if _, _, err := shelf.List(ctx); err != nil {
		t.Error(err)
	}
	must(shelf.Number(ctx))(t)
	must(shelf.Read(ctx, []pgstore.Part{{File: "f", At: 0, Size: 2}}))(t)
	if err := shelf.Remove(ctx, "f"); err != nil {
		t.Error(err)
	}
	must(s.Offers(ctx))(t)
	must(s.CountRuns(ctx))(t)
	must(s.Uncollected(ctx))(t)
	must(s.Find(ctx, "bafy"))(t)
	if err := s.PutOff(ctx, "first", 1); err != nil {
		t.Error(err)
	}
	c := must(s.ClaimName(ctx, "schedule"))(t)
	if err := c.Release(ctx); err != nil {
		t.Error(err)
	}
	must(s.Newest(ctx))(t)
	must(s.Size(ctx))(t)
	if err := s.Commit(ctx, cas.Batch{Derived: []cas.Derived{{Key: "memo/x", Data: []byte("x")}}, Blocks: []cas.Block{cas.Raw([]byte("loose"))}}); err != nil {
		t.Error(err)
	}
	must(s.Changes(ctx))(t)
	must(pgstore.Verify(ctx, s, cas.VerifyOptions{}))(t)
	must(pgstore.GC(ctx, s, cas.GCOptions{DryRun: true}))(t)
	must(pgstore.GC(ctx, s, cas.GCOptions{}))(t)
}
