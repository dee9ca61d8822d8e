package castest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/cas"
	"wf/protocol"
)

// lists is the memories, sinks, tombstones and tables of a store.
func lists(t *testing.T, open func() Store) {
	s, ctx := open(), t.Context()
	same := func(what string, want, have any) {
		t.Helper()
		if d := cmp.Diff(want, have); d != "" {
			t.Errorf("%s (-want +have):\n%s", what, d)
		}
	}
	if n := len(must(cas.Memories(ctx, s))(t)) + len(must(cas.Sinks(ctx, s))(t)) + len(must(cas.Tombstones(ctx, s))(t)) + len(must(cas.Tables(ctx, s))(t)); n > 0 {
		t.Errorf("an empty store lists %d", n)
	}
	draft := []cas.Draft{{Data: protocol.ResumedBy{By: "someone"}}}
	for _, scope := range []string{"user", "role/fix/coder", "émue"} {
		must(must(cas.OpenMemory(s, scope))(t).Append(ctx, Now, cas.EventRef{}, draft))(t)
	}
	must(must(cas.OpenSink(s, "ops"))(t).Append(ctx, Now, cas.EventRef{}, draft))(t)
	same("memories", []string{"role/fix/coder", "user", "émue"}, must(cas.Memories(ctx, s))(t))
	same("sinks", []string{"ops"}, must(cas.Sinks(ctx, s))(t))

	const buried = 70
	for i := range buried {
		run := protocol.RunID(fmt.Sprintf("gone%02d", i))
		Append(t, must(s.Journal(ctx, run))(t), 1)
		d := must(cas.Bury(must(s.Head(ctx, protocol.RunHead(run)))(t), protocol.Tombstone{At: Now + int64(i), By: "someone"}))(t)
		if err := s.Commit(ctx, cas.Batch{Deletes: []cas.Deletion{d}}); err != nil {
			t.Fatal(err)
		}
	}
	Append(t, must(s.Journal(ctx, "kept"))(t), 1)
	all := must(cas.Tombstones(ctx, s))(t)
	for i, x := range all {
		if want := protocol.RunID(fmt.Sprintf("gone%02d", i)); x.Run != want || x.At != Now+int64(i) || x.By != "someone" {
			t.Errorf("tombstone %d: %+v, want that of %s", i, x, want)
		}
	}
	if len(all) != buried {
		t.Errorf("%d tombstones, want %d", len(all), buried)
	}
	if one := must(cas.Tombstone(ctx, s, "gone07"))(t); one == nil || one.At != Now+7 {
		t.Errorf("one tombstone: %+v", one)
	}
	if one := must(cas.Tombstone(ctx, s, "kept"))(t); one != nil {
		t.Errorf("of a run that is there: %+v", one)
	}

	table := func(id protocol.RunID, at int64) cas.StoredTable {
		return cas.StoredTable{ID: id, At: at, Head: []byte(`{"head":1}`), Data: []byte(`{"data":"` + string(id) + `"}`)}
	}
	for _, x := range []cas.StoredTable{table("T2", Now+2), table("T1", Now+1), table("T3", Now+2), table("T1", Now+3)} {
		if err := s.Commit(ctx, cas.Batch{Derived: cas.PutTable(x)}); err != nil {
			t.Fatal(err)
		}
	}
	var ids []protocol.RunID
	for _, x := range must(cas.Tables(ctx, s))(t) {
		ids = append(ids, x.ID)
		if string(x.Head) != `{"head":1}` || x.Data != nil {
			t.Errorf("a list of tables has %+v", x)
		}
	}
	same("tables", []protocol.RunID{"T1", "T2", "T3"}, ids)
	have, ok, err := cas.Table(ctx, s, "T1")
	if !ok || err != nil {
		t.Errorf("one table: %t, %v", ok, err)
	}
	same("one table", table("T1", Now+3), have)
	if _, ok, err := cas.Table(ctx, s, "T4"); ok || err != nil {
		t.Errorf("a table that is not there: %t, %v", ok, err)
	}
	same("keys", []string{"table-head/T1", "table-head/T2", "table-head/T3"}, must(s.DerivedKeys(ctx, "table-head/"))(t))
}

// prefixes lists heads and keys of derived values whose names lie close to one another in the order of bytes.
func prefixes(t *testing.T, open func() Store) {
	s, ctx := open(), t.Context()
	names := []string{"a", "a.", "a/", "a/b", "a/é", "a/\U0010ffff", "a0", "a~", "a~~", "a\x7f", "a\x7fb", "aé", "aéb", "b"} // in the order of bytes
	var b cas.Batch
	for _, name := range names {
		x := cas.Raw([]byte(name))
		b.Blocks = append(b.Blocks, x)
		b.Moves = append(b.Moves, cas.Move{Name: name, New: x.Link, TS: Now})
		b.Derived = append(b.Derived, cas.Derived{Key: name, Head: x.Link, Data: x.Data})
	}
	if err := s.Commit(ctx, b); err != nil {
		t.Fatal(err)
	}
	for _, prefix := range append([]string{"", "a\U0010ffff", "c"}, names...) {
		var want, heads []string
		for _, name := range names {
			if strings.HasPrefix(name, prefix) {
				want = append(want, name)
			}
		}
		for _, h := range must(s.Heads(ctx, prefix))(t) {
			heads = append(heads, h.Name)
		}
		if d := cmp.Diff(want, heads); d != "" {
			t.Errorf("heads that begin with %q (-want +have):\n%s", prefix, d)
		}
		keys := slices.DeleteFunc(must(s.DerivedKeys(ctx, prefix))(t), ofKin)
		if d := cmp.Diff(want, keys); d != "" {
			t.Errorf("keys that begin with %q (-want +have):\n%s", prefix, d)
		}
	}
}

// ofKin reports whether a key of derived values is one by which the store finds what runs share.
func ofKin(key string) bool { return strings.HasPrefix(key, "kin/") }
