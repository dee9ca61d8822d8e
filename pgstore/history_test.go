package pgstore_test

import (
	"errors"
	"fmt"
	"testing"

	"wf/pgstore/pgtest"
)

// Clients move and read a few heads while connections are cut, what is said is held back, and the server is killed. What they saw can be
// explained by one order of all operations: nothing acknowledged was lost, refused without a cause, or done twice, and nothing was done
// under a token after its successor's first.
func TestHistories(t *testing.T) {
	srv, dice := started(pgtest.Start())(t), chance(t)
	name := nameOf(fresh(t, srv))
	for i := range rounds(4) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			wires := []*pgtest.Proxy{proxy(t, srv), proxy(t, srv)}
			l := begin(t, dice, fmt.Sprint(i), i%2 == 1, srv, [2]string{wires[0].DSN(name), wires[1].DSN(name)})
			for range 12 {
				l.await(t, len(l.acks)+1+dice.IntN(30))
				if dice.IntN(6) == 0 {
					if err := errors.Join(srv.Kill(), srv.Restart()); err != nil {
						t.Fatal(err)
					}
				}
				l.disturb(t, dice, wires[dice.IntN(2)])
			}
			l.finish(t)
		})
	}
}

// The same while the primary is killed and its standby promoted.
func TestHistoriesOfPromotions(t *testing.T) {
	dice := chance(t)
	for i := range rounds(1) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			primary := started(pgtest.Start())(t)
			name := nameOf(fresh(t, primary))
			standby := started(primary.Standby(t.Context(), nil))(t)
			var ways [2]string
			var before, after [2]*pgtest.Proxy
			for side := range ways {
				before[side], after[side] = proxy(t, primary), proxy(t, standby)
				ways[side] = fmt.Sprintf("postgres://wf@%s,%s/%s?sslmode=disable&target_session_attrs=read-write", before[side].Addr(), after[side].Addr(), name)
			}
			l := begin(t, dice, "h", true, primary, ways)
			for n := range 8 {
				l.await(t, len(l.acks)+1+dice.IntN(30))
				if n < 4 {
					l.disturb(t, dice, before[dice.IntN(2)])
					continue
				}
				if n == 4 {
					if err := errors.Join(primary.Kill(), standby.Promote(t.Context())); err != nil {
						t.Fatal(err)
					}
				}
				l.disturb(t, dice, after[dice.IntN(2)])
			}
			l.finish(t)
		})
	}
}
