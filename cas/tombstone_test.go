package cas

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"wf/protocol"
)

// bury deletes a run as its head is now.
func bury(t testing.TB, s *Store, run protocol.RunID) Head {
	t.Helper()
	h := must(s.Head(t.Context(), protocol.RunHead(run)))
	d := must(Bury(h, protocol.Tombstone{By: "ada", At: 1_700_000_000_000_000, Why: "too old"}))
	if err := s.Commit(t.Context(), Batch{Deletes: []Deletion{d}}); err != nil {
		t.Fatal(err)
	}
	return h
}

func TestADeletedRunLeavesATombstoneAlone(t *testing.T) {
	s := openSample(t)
	ctx := t.Context()
	j := sampleRun(t, s, "one", 40)
	sampleRun(t, s, "on", 4)
	sampleRun(t, s, "one1", 4)
	if err := s.Commit(ctx, Batch{Derived: []Derived{{Key: StateKey("one"), Head: must(s.Head(ctx, "run/one")).Link, Data: []byte("state")}}}); err != nil {
		t.Fatal(err)
	}
	layout := func() (v byte) {
		t.Helper()
		if err := s.view(ctx, func(tx *bolt.Tx) error { v = tx.Bucket(bucketMeta).Get(keyVersion)[0]; return nil }); err != nil {
			t.Fatal(err)
		}
		return v
	}
	if layout() != layoutPlain {
		t.Errorf("a store without deletions has layout %d", layout())
	}
	h := bury(t, s, "one")
	if layout() != layoutDeleted {
		t.Errorf("a store with one has layout %d", layout())
	}
	stone := must(Tombstone(ctx, s, "one"))
	if stone.Head != h.Link.String() || stone.Seq != h.Seq || stone.Run != "one" || stone.By != "ada" || stone.Why != "too old" {
		t.Errorf("%+v", stone)
	}
	if err := s.view(ctx, func(tx *bolt.Tx) error {
		for _, b := range []*bolt.Bucket{tx.Bucket(bucketRefs), tx.Bucket(bucketReflog), sub(tx, indexEvents), sub(tx, indexBases), sub(tx, indexForks), sub(tx, indexDerived)} {
			if err := b.ForEach(func(k, _ []byte) error {
				if strings.HasPrefix(string(k), "run/one\x00") || string(k) == "run/one" || string(k) == "state/one" {
					t.Errorf("%q is left", k)
				}
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	// Whatever is asked of it, the answer says that it was deleted, by which user and when.
	_, _, tip := s.Tip(ctx, "one")
	var after error
	for _, err := range s.After(ctx, "one", 0) {
		after = err
	}
	_, exported := Export(ctx, io.Discard, s, ExportOptions{}, "one")
	_, verified := Verify(ctx, s, VerifyOptions{Run: "one"})
	_, appended := j.Append(ctx, 1, []Draft{{Data: protocol.ResumedBy{}}}, nil)
	anew := must(s.Journal(ctx, "one"))
	_, begun := anew.Append(ctx, 1, []Draft{{Data: protocol.RunStarted{}}}, nil)
	again := s.Commit(ctx, Batch{Deletes: []Deletion{must(Bury(h, protocol.Tombstone{}))}})
	for what, err := range map[string]error{"tip": tip, "events": after, "export": exported, "verify": verified, "append": appended, "begin": begun, "delete": again} {
		if !errors.Is(err, protocol.ErrRunDeleted) || !strings.Contains(err.Error(), "by ada: too old") || !strings.Contains(err.Error(), "2023-11-14") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := s.Commit(ctx, Batch{Derived: []Derived{{Key: StateKey("one"), Head: h.Link, Data: []byte("late")}}}); err != nil {
		t.Error(err)
	}
	if d, _, err := s.Derived(ctx, StateKey("one")); err != nil || d.Data != nil {
		t.Errorf("what was derived of a deleted run is stored: %q, %v", d.Data, err)
	}
	for _, run := range []protocol.RunID{"on", "one1"} {
		if _, _, err := s.Tip(ctx, run); err != nil {
			t.Errorf("run %s: %v", run, err)
		}
	}
	if err := s.update(ctx, s.renew); err != nil || layout() != layoutDeleted {
		t.Errorf("with its index made anew it has layout %d, %v", layout(), err)
	}
	if r := must(Verify(ctx, s, VerifyOptions{All: true})); !r.OK {
		t.Errorf("%v", r.Findings)
	}
	if r := must(GC(ctx, s, GCOptions{})); r.Removed == 0 {
		t.Error("its blocks are not removed")
	}
	if _, err := s.Block(ctx, h.Link); !errors.Is(err, protocol.ErrNotFound) {
		t.Errorf("its newest event is there: %v", err)
	}
	if r := must(Verify(ctx, s, VerifyOptions{All: true})); !r.OK {
		t.Errorf("after gc: %v", r.Findings)
	}
}

func TestADeletionOfARunThatMovedIsRefused(t *testing.T) {
	s := openSample(t)
	ctx := t.Context()
	j := sampleRun(t, s, "one", 3)
	d := must(Bury(must(s.Head(ctx, "run/one")), protocol.Tombstone{}))
	if _, err := j.Append(ctx, 1, []Draft{{Data: protocol.ResumedBy{}}}, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(ctx, Batch{Deletes: []Deletion{d}}); !errors.Is(err, protocol.ErrHeadMoved) {
		t.Errorf("%v", err)
	}
	if stone := must(Tombstone(ctx, s, "one")); stone != nil {
		t.Errorf("%+v", stone)
	}
}

func TestAForkOfADeletedRunIsReadAndVerified(t *testing.T) {
	s := openSample(t)
	ctx := t.Context()
	j := sampleRun(t, s, "one", 60)
	var at protocol.Entry
	for e, err := range s.After(ctx, "one", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Seq == 100 {
			at = e
		}
	}
	if _, err := j.Fork(ctx, 1, "two", at, []Draft{{Data: protocol.Forked{}}}, nil, nil); err != nil {
		t.Fatal(err)
	}
	forks := must(s.Forks(ctx, "one"))
	if len(forks) != 1 || forks[0] != (Sharer{"two", 100}) {
		t.Fatalf("%v", forks)
	}
	if n := must(s.Reach(ctx, "two", 100)); n < 200<<10 {
		t.Errorf("the fork shares %d bytes", n)
	}
	bury(t, s, "one")
	must(GC(ctx, s, GCOptions{}))
	for range 2 { // the second time by the checkpoints that the first one made
		n := protocol.Seq(0)
		for e, err := range s.After(ctx, "two", 0) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; e.Seq != n {
				t.Fatalf("event %d at %d", e.Seq, n)
			}
		}
		if n != 101 {
			t.Errorf("%d events", n)
		}
	}
	if base, shared, err := s.Base(ctx, "two"); base != "one" || shared != 100 || err != nil {
		t.Errorf("behind that its base is %q up to %d, %v", base, shared, err)
	}
	if forks := must(s.Forks(ctx, "one")); len(forks) != 1 || forks[0] != (Sharer{"two", 100}) {
		t.Errorf("behind that the run has the forks %v", forks)
	}
	if r := must(Verify(ctx, s, VerifyOptions{All: true})); !r.OK {
		t.Errorf("%v", r.Findings)
	}
}

func TestAPinnedHeadIsHeldAgainstTheTombstone(t *testing.T) {
	s := openSample(t)
	ctx := t.Context()
	j := sampleRun(t, s, "one", 3)
	sampleRun(t, s, "two", 3)
	early := must(s.Head(ctx, "run/one"))
	if _, err := j.Append(ctx, 1, []Draft{{Data: protocol.ResumedBy{}}}, nil); err != nil {
		t.Fatal(err)
	}
	h := bury(t, s, "one")
	other := must(s.Head(ctx, "run/two")).Link
	for _, c := range []struct {
		name string
		seen Seen
		want []string
	}{
		{"the event that it names", Seen{h.Link, h.Seq}, nil},
		{"an earlier one", Seen{early.Link, early.Seq}, nil},
		{"another one of that number", Seen{other, h.Seq}, []string{"head_missing"}},
		{"a later one", Seen{other, h.Seq + 1}, []string{"head_missing"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantKinds(t, must(Verify(ctx, s, VerifyOptions{LastSeen: PinnedHeads{Heads: map[string]Seen{"run/one": c.seen}}})), c.want...)
		})
	}
}

func TestATombstoneThatIsNoneIsFound(t *testing.T) {
	for _, c := range []struct {
		name string
		harm func(*testing.T, *Store, *bolt.Tx) error
		want []string
	}{
		{"its head is gone", func(t *testing.T, s *Store, tx *bolt.Tx) error {
			return tx.Bucket(bucketRefs).Delete([]byte("deleted/one"))
		}, []string{"head_missing"}},
		{"it names another run, and that one is there", func(t *testing.T, s *Store, tx *bolt.Tx) error {
			v := bytes.Clone(tx.Bucket(bucketRefs).Get([]byte("deleted/one")))
			return tx.Bucket(bucketRefs).Put([]byte("deleted/two"), v)
		}, []string{"tombstone"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := openSample(t)
			sampleRun(t, s, "one", 3)
			sampleRun(t, s, "two", 3)
			bury(t, s, "one")
			if err := s.update(context.Background(), func(tx *bolt.Tx) error { return c.harm(t, s, tx) }); err != nil {
				t.Fatal(err)
			}
			r := must(Verify(t.Context(), s, VerifyOptions{}))
			if len(r.Findings) == 0 || r.Findings[0].Kind != c.want[0] {
				t.Errorf("%v", r.Findings)
			}
		})
	}
}

// Tombstones are read some at a time: all of them, once.
func TestAllTombstonesAreRead(t *testing.T) {
	s := openSample(t)
	ctx := t.Context()
	kept := must(s.Journal(ctx, "kept"))
	must(kept.Append(ctx, 1, []Draft{{Data: protocol.ResumedBy{}}}, nil))
	buried := map[protocol.RunID]bool{}
	for i := range 129 {
		run := protocol.RunID(fmt.Sprintf("run%03d", i))
		j := must(s.Journal(ctx, run))
		must(j.Append(ctx, int64(i+2), []Draft{{Data: protocol.ResumedBy{}}}, nil))
		bury(t, s, run)
		buried[run] = true
		if n := i + 1; n == 1 || n%64 < 2 || n%64 == 63 { // below, at and beyond a part
			seen := map[protocol.RunID]bool{}
			all := must(Tombstones(ctx, s))
			for _, x := range all {
				seen[x.Run] = true
			}
			if len(all) != n || !maps.Equal(seen, buried) || must(s.Uncollected(ctx)) != n {
				t.Errorf("of %d runs: %d tombstones of %d runs, %d of them to be collected", n, len(all), len(seen), must(s.Uncollected(ctx)))
			}
		}
	}
	if _, err := GC(ctx, s, GCOptions{}); err != nil {
		t.Fatal(err)
	}
	if n := must(s.Uncollected(ctx)); n != 0 || len(must(Tombstones(ctx, s))) != len(buried) {
		t.Errorf("after gc: %d to be collected", n)
	}
}
