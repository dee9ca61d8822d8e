package castest

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wf/cas"
	"wf/protocol"
)

// tooMany is more heads than what a look at what moved names in any store.
const tooMany = 6000

// rounds are how many things are done.
const rounds = 90

// moved does things at random by two stores of one place, as two processes do. Whatever was done by whichever, and however seldom one asks: the
// newest runs are those of a full listing, and what differs between two looks was named.
func moved(t *testing.T, open func() Store) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice, ctx := rand.New(rand.NewPCG(seed, 1)), t.Context()
	stores := []Store{open(), open()}
	heads := func(s Store) map[string]cas.Head {
		out := map[string]cas.Head{}
		for _, h := range must(s.Heads(ctx, ""))(t) {
			out[h.Name] = h
		}
		return out
	}
	type cursor struct {
		of    Store
		moved func(context.Context) ([]string, bool, error)
		saw   map[string]cas.Head
	}
	var cursors []*cursor
	for i := range 4 {
		s := stores[i%2]
		c := &cursor{s, s.Moved(), heads(s)}
		if names, known, err := c.moved(ctx); known || len(names) > 0 || err != nil {
			t.Errorf("the first look knows %q, %v, %v", names, known, err)
		}
		cursors = append(cursors, c)
	}
	due, known := cas.MovedRuns{Store: stores[0]}, map[string]cas.Head{} // as a follower knows the runs that had to be told of all
	unknown := 0
	check := func(i int) {
		t.Helper()
		for k, s := range stores {
			hasty, stop := context.WithTimeout(ctx, time.Duration(dice.IntN(2000))*time.Microsecond)
			_, _ = s.Newest(hasty) // whatever becomes of it
			stop()
			newest, want := must(s.Newest(ctx))(t), must(s.Heads(ctx, protocol.RunHead("")))(t)
			slices.SortFunc(want, cas.NewerFirst)
			if !slices.Equal(newest, want) {
				t.Fatalf("%d, store %d: the newest runs (-want +have):\n%s", i, k, cmp.Diff(want, newest))
			}
			clear(newest) // it is the caller's
		}
		hasty, stop := context.WithTimeout(ctx, time.Duration(dice.IntN(2000))*time.Microsecond)
		_, _ = due.Due(hasty) // what it should have given is given by the next one
		stop()
		all := must(due.Due(ctx))(t)
		for _, h := range all {
			if dice.IntN(4) > 0 { // else it stays due
				known[h.Name] = h
				due.Done(h)
			}
		}
		late := map[string]bool{}
		for _, h := range must(due.Due(ctx))(t) {
			late[h.Name] = true
		}
		for _, h := range must(stores[0].Heads(ctx, protocol.RunHead("")))(t) {
			if known[h.Name] != h && !late[h.Name] {
				t.Fatalf("%d: %s moved, and is not due", i, h.Name)
			}
			delete(late, h.Name)
		}
		if len(late) > 0 {
			t.Fatalf("%d: due, and gone: %v", i, late)
		}
		if dice.IntN(10) == 0 {
			due.Forget()
		}
		for k, c := range cursors {
			if dice.IntN(1+3*k) > 0 { // some ask seldom
				continue
			}
			names, known, err := c.moved(ctx)
			if err != nil {
				t.Fatal(err)
			}
			now, told := heads(c.of), map[string]bool{}
			for _, name := range names {
				told[name] = true
			}
			if !known {
				unknown++
			} else {
				for _, all := range []map[string]cas.Head{now, c.saw} {
					for name := range all {
						if now[name] != c.saw[name] && !told[name] {
							t.Fatalf("%d: cursor %d was not told of %s", i, k, name)
						}
					}
				}
			}
			c.saw = now
		}
	}
	ts := func() int64 { return Now + int64(dice.IntN(4)) } // often the same one, and often an earlier one
	commit := func(s Store, b cas.Batch) {
		t.Helper()
		if err := s.Commit(ctx, b); err != nil {
			t.Fatal(err)
		}
	}
	var runs []protocol.RunID
	many := cas.Raw([]byte("many"))
	for i := range rounds {
		s := stores[dice.IntN(2)]
		run := protocol.RunID(fmt.Sprintf("r%d", i))
		switch n := dice.IntN(10); {
		case i == rounds/2:
			b := cas.Batch{Blocks: []cas.Block{many}}
			for k := range tooMany {
				b.Moves = append(b.Moves, cas.Move{Name: fmt.Sprintf("memory/many-%d", k), New: many.Link, TS: ts()})
			}
			commit(s, b)
		case n == 0: // more at once than are read one by one
			var b cas.Batch
			for k := range 50 {
				e := must(cas.Encode(protocol.Event{Kind: protocol.KindEvent, V: protocol.RecordVersion, Seq: 1, TS: ts(), Type: protocol.EvText, Data: []byte{0xa0}}))(t)
				b.Blocks = append(b.Blocks, e)
				b.Moves = append(b.Moves, cas.Move{Name: protocol.RunHead(protocol.RunID(fmt.Sprintf("many%d-%d", i, k))), New: e.Link, Events: []cas.EventRef{{Seq: 1, CID: e.Link}}, TS: ts()})
			}
			commit(s, b)
		case n < 3 || len(runs) < 3:
			must(must(s.Journal(ctx, run))(t).Append(ctx, ts(), []cas.Draft{{Data: protocol.RunStarted{}}}, nil))(t)
			runs = append(runs, run)
		case n < 6:
			j := must(s.Journal(ctx, runs[dice.IntN(len(runs))]))(t)
			must(j.Append(ctx, ts(), []cas.Draft{{Data: protocol.ResumedBy{}}}, nil))(t)
		case n < 7:
			of := runs[dice.IntN(len(runs))]
			at := must(Events(ctx, s, of, 0))(t)[0]
			must(must(s.Journal(ctx, of))(t).Fork(ctx, ts(), run, at, []cas.Draft{{Data: protocol.Forked{Base: at.CID}}}, nil, nil))(t)
			runs = append(runs, run)
		case n < 8 && len(runs) > 5:
			k := dice.IntN(len(runs))
			d := must(cas.Bury(must(s.Head(ctx, protocol.RunHead(runs[k])))(t), protocol.Tombstone{At: ts(), By: "someone"}))(t)
			commit(s, cas.Batch{Deletes: []cas.Deletion{d}})
			runs = slices.Delete(runs, k, k+1)
		default: // a head that is no run comes, moves or goes
			names := slices.Sorted(maps.Keys(heads(s)))
			names = slices.DeleteFunc(names, func(name string) bool { return name[:2] != "x/" })
			b := cas.Raw(fmt.Append(nil, i))
			m := cas.Move{Name: "x/" + string(run), New: b.Link, TS: ts()}
			if len(names) > 0 && n == 8 {
				m.Name = names[dice.IntN(len(names))]
				m.Old = must(s.Head(ctx, m.Name))(t).Link
			}
			if len(names) > 3 && dice.IntN(3) == 0 {
				commit(s, cas.Batch{Drops: []string{names[dice.IntN(len(names))]}})
				break
			}
			commit(s, cas.Batch{Blocks: []cas.Block{b}, Moves: []cas.Move{m}})
		}
		if dice.IntN(3) > 0 {
			check(i)
		}
	}
	check(rounds)
	t.Logf("%d looks did not know", unknown)
}
