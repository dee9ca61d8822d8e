package cas

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	bolt "go.etcd.io/bbolt"

	"wf/protocol"
)

// bare begins a run, or a fork, with one event; its head is where the next fork goes on from.
func bare(t testing.TB, s *Store, run, base protocol.RunID, shared int) {
	t.Helper()
	ctx := context.Background()
	j := must(s.Journal(ctx, cmp.Or(base, run)))
	if base == "" {
		must(j.Append(ctx, 1, []Draft{{Data: protocol.RunStarted{}}, {Data: protocol.ResumedBy{}}, {Data: protocol.ResumedBy{}}}, nil))
		return
	}
	for e, err := range s.After(ctx, base, protocol.Seq(shared-1)) {
		if err != nil {
			t.Fatal(err)
		}
		must(j.Fork(ctx, 1, run, e, []Draft{{Data: protocol.Forked{Base: e.CID}}, {Data: protocol.ResumedBy{}}, {Data: protocol.ResumedBy{}}}, nil, nil))
		return
	}
}

// Whatever becomes of a store, the forks of each run are those that were made of it and are there, with what they share.
func TestForksAreThoseThatAreThere(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 1))
	s, ctx := openSample(t), t.Context()
	type kin struct {
		base protocol.RunID
		at   protocol.Seq
	}
	there, of := map[protocol.RunID]bool{}, map[protocol.RunID]kin{}
	anew := false
	pick := func() protocol.RunID {
		all := slices.Sorted(maps.Keys(there))
		return all[dice.IntN(len(all))]
	}
	for i := range 200 {
		run := protocol.RunID(fmt.Sprintf("r%d", i)) // r1 begins as r10 does
		switch n := dice.IntN(20); {
		case i > 3 && (n == 19 || i == 150):
			var dead []Block
			for range 32 {
				data := make([]byte, 32<<10)
				for k := range data {
					data[k] = byte(dice.Uint32())
				}
				dead = append(dead, Raw(data))
			}
			if err := s.Commit(ctx, Batch{Blocks: dead}); err != nil {
				t.Fatal(err)
			}
			anew = must(GC(ctx, s, GCOptions{})).Compacted || anew
		case i < 3 || n < 4:
			bare(t, s, run, "", 0)
			there[run] = true
		case n < 14:
			x := kin{pick(), protocol.Seq(1 + dice.IntN(3))}
			bare(t, s, run, x.base, int(x.at))
			there[run], of[run] = true, x
		case n < 18 && len(there) > 3:
			gone := pick()
			bury(t, s, gone)
			delete(there, gone)
		case n == 18: // an older wf makes none
			if err := s.update(ctx, func(tx *bolt.Tx) error { return tx.Bucket(bucketIndex).DeleteBucket(indexForks) }); err != nil {
				t.Fatal(err)
			}
			read := must(Open(ctx, s.Dir(), Options{ReadOnly: true}))
			if have, want := must(read.Forks(ctx, "r0")), must(s.Forks(ctx, "r0")); !slices.Equal(have, want) {
				t.Errorf("without an index of forks: %v, and not %v", have, want)
			}
			if err := read.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if i%10 != 9 {
			continue
		}
		for j := range i + 1 {
			run := protocol.RunID(fmt.Sprintf("r%d", j))
			var want []Sharer
			for _, fork := range slices.Sorted(maps.Keys(of)) {
				if of[fork].base == run && there[fork] {
					want = append(want, Sharer{fork, of[fork].at})
				}
			}
			if have := must(s.Forks(ctx, run)); !slices.Equal(have, want) {
				t.Fatalf("%d: %s has the forks %v, and not %v", i, run, have, want)
			}
		}
	}
	if !anew {
		t.Error("store.db was never written anew")
	}
	if r := must(Verify(ctx, s, VerifyOptions{All: true})); !r.OK {
		t.Errorf("%v", r.Findings)
	}
}

// The forks of a run are found as fast among many of other runs.
func BenchmarkForks(b *testing.B) {
	for _, others := range []int{0, 10_000} {
		b.Run(fmt.Sprintf("%d of other runs", others), func(b *testing.B) {
			s, ctx := openSample(b), b.Context()
			bare(b, s, "mine", "", 0)
			bare(b, s, "other", "", 0)
			link := must(s.Head(ctx, "run/other")).Link
			var moves []Move
			for i := range others {
				moves = append(moves, Move{Name: fmt.Sprintf("run/f%d", i), New: link, Events: []EventRef{{4, link}}, Base: "other"})
			}
			if err := s.Commit(ctx, Batch{Moves: moves}); err != nil {
				b.Fatal(err)
			}
			for i := range 3 {
				bare(b, s, protocol.RunID(fmt.Sprintf("g%d", i)), "mine", 3)
			}
			b.ResetTimer()
			for b.Loop() {
				if forks := must(s.Forks(ctx, "mine")); len(forks) != 3 {
					b.Fatal(forks)
				}
			}
		})
	}
}

// What forks share is found anew for what the events cost, each read once, and where it is noted for a look at each run.
func BenchmarkKinAnew(b *testing.B) {
	const events, forks, deep = 100_000, 10_000, 100
	s, ctx := openSample(b), b.Context()
	j := must(s.Journal(ctx, "base"))
	must(j.Append(ctx, 1, []Draft{{Data: protocol.RunStarted{}}}, nil))
	for n := 1; n < events; n += 1000 {
		must(j.Append(ctx, 1, slices.Repeat([]Draft{{Data: protocol.ResumedBy{By: "someone"}}}, min(1000, events-n)), nil))
	}
	for i := range forks {
		bare(b, s, protocol.RunID(fmt.Sprint("wide", i)), "base", events-i%3)
	}
	last := protocol.RunID("base")
	for i := range deep {
		run := protocol.RunID(fmt.Sprint("deep", i))
		bare(b, s, run, last, events+3*i)
		last = run
	}
	for _, c := range []struct {
		name string
		lose [][]byte
	}{{"no base is noted", [][]byte{indexBases, indexForks, indexDerived}}, {"all are", [][]byte{indexDerived}}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				err := s.update(ctx, func(tx *bolt.Tx) error {
					for _, name := range c.lose {
						if err := tx.Bucket(bucketIndex).DeleteBucket(name); err != nil {
							return err
						}
					}
					return s.rebuild(tx)
				})
				if err != nil {
					b.Fatal(err)
				}
				if have := must(s.Forks(ctx, "base")); len(have) != forks+1 {
					b.Fatal(len(have))
				}
			}
		})
	}
}
