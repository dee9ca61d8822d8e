package cas_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"

	"wf/cas"
	"wf/cas/castest"
	"wf/protocol"
)

// What was restored from a backup, or has lost its index, knows the bases of its forks: as they were made, but that a fork of what a fork
// shares is one of the run that has it. A run that was deleted is no base then.
func TestForksAreKnownBehindABackupAndWithoutAnIndex(t *testing.T) {
	ctx, dir := t.Context(), filepath.Join(t.TempDir(), "store")
	s := openStore(t, dir)
	castest.Many(t, s)
	j := castest.Sample(t, s, "base", 40, nil)
	last, runs := protocol.RunID("base"), []protocol.RunID{"one", "fork", "fork-of-fork", "third", "base", "left", "orphan"}
	want := map[protocol.RunID]cas.Kinship{
		"fork": {Fork: "fork", Base: "one", Shared: 8}, "fork-of-fork": {Fork: "fork-of-fork", Base: "fork", Shared: 9}, "third": {Fork: "third", Base: "one", Shared: 5}}
	for i := range 60 { // a chain of forks, and as many of one run
		deep, wide := protocol.RunID(fmt.Sprint("deep", i)), protocol.RunID(fmt.Sprint("wide", i))
		h := must(s.Head(ctx, protocol.RunHead(last)))(t)
		castest.Append(t, castest.Forked(t, s, last, deep, h.Seq), i%3)
		want[deep] = cas.Kinship{Fork: deep, Base: last, Shared: h.Seq}
		at := protocol.Seq(2 + i)
		castest.Forked(t, s, "base", wide, at)
		want[wide] = cas.Kinship{Fork: wide, Base: "base", Shared: at}
		runs, last = append(runs, deep, wide), deep
	}
	castest.Append(t, j, 5)
	castest.Sample(t, s, "left", 4, nil)
	castest.Forked(t, s, "left", "orphan", 6)
	made := castest.Bases(t, s, runs...)
	if made["third"].Base != "fork-of-fork" || made["orphan"].Base != "left" {
		t.Fatalf("%v", made)
	}
	castest.Buried(t, s, "left")

	same := func(what string, s *cas.Store) {
		t.Helper()
		if d := cmp.Diff(want, castest.Bases(t, s, runs...)); d != "" {
			t.Errorf("%s (-want +have):\n%s", what, d)
		}
		for _, run := range []protocol.RunID{"deep59", "wide7", "orphan", "third"} {
			h := must(s.Head(ctx, protocol.RunHead(run)))(t)
			if events, err := castest.Events(ctx, s, run, 0); err != nil || len(events) != int(h.Seq) || h.Seq == 0 {
				t.Errorf("%s: run %s has %d events of %d, %v", what, run, len(events), h.Seq, err)
			}
		}
		if r := must(cas.Verify(ctx, s, cas.VerifyOptions{All: true}))(t); !r.OK {
			t.Errorf("%s: %v", what, r.Findings)
		}
	}
	backup, to := t.TempDir(), filepath.Join(t.TempDir(), "restored")
	must(cas.Backup(ctx, s, backup, cas.BackupOptions{}))(t)
	must(cas.Restore(ctx, backup, to, castest.Now, cas.Options{}))(t)
	there := openStore(t, to)
	if err := there.Release(ctx); err != nil {
		t.Fatal(err)
	}
	same("restored", there)
	must(cas.GC(ctx, there, cas.GCOptions{}))(t)
	same("restored and collected", there)

	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, lose := range []string{"bases", "forks", ""} {
		edit(t, dir, func(tx *bolt.Tx) error {
			if lose == "" {
				return tx.DeleteBucket([]byte("index"))
			}
			return tx.Bucket([]byte("index")).DeleteBucket([]byte(lose))
		})
		s = openStore(t, dir)
		same("without index/"+lose, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}

	// A first move that is not in the history of its head proves nothing.
	edit(t, dir, func(tx *bolt.Tx) error {
		log := tx.Bucket([]byte("reflog"))
		other := log.Get([]byte("run/wide3\x00\x00\x00\x00\x00"))
		if err := log.Put([]byte("run/wide4\x00\x00\x00\x00\x00"), append([]byte(nil), other...)); err != nil {
			return err
		}
		return tx.DeleteBucket([]byte("index"))
	})
	s = openStore(t, dir)
	forged := maps.Clone(want)
	delete(forged, "wide4")
	if d := cmp.Diff(forged, castest.Bases(t, s, runs...)); d != "" {
		t.Errorf("with the reflog of another fork (-want +have):\n%s", d)
	}
}
