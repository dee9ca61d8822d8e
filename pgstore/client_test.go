package pgstore_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"wf/cas"
	"wf/pgstore"
	"wf/pgstore/pgtest"
	"wf/protocol"
)

// client does one operation after another through a store, until stop.
type client struct {
	id     int
	place  string // the history, of whose heads it is
	s      *pgstore.Store
	srv    *pgtest.Server
	dsn    string // of it, through a proxy
	dice   *rand.Rand
	fences bool
	begun  time.Time
	ops    []porcupine.Operation

	seen   [heads]int // the value of each head as this client knows it
	fence  [heads]cas.Fence
	tokens [heads]int
	drawn  int
}

// clients are six at once, on four stores; half of them go one way to the database, and half another.
type clients struct {
	all  []*client
	acks chan error
	stop chan struct{}
	idle sync.WaitGroup
}

// begin has clients begin on the heads of a place; with fences they take claims.
func begin(t *testing.T, dice *rand.Rand, place string, fences bool, srv *pgtest.Server, ways [2]string) *clients {
	links := map[protocol.Link]int{}
	for v := range values {
		links[value(v+1).Link] = v + 1
	}
	l, begun := &clients{acks: make(chan error, 1<<16), stop: make(chan struct{})}, time.Now()
	for id := range 6 {
		c := &client{id: id + 1, place: place, srv: srv, dsn: ways[id%2], dice: rand.New(rand.NewPCG(dice.Uint64(), 0)), fences: fences, begun: begun}
		if l.all = append(l.all, c); id < 4 {
			c.s = open(t, c.dsn)
		} else {
			c.s = l.all[id-4].s // two share a store
		}
		l.idle.Go(func() {
			tick := time.NewTicker(time.Millisecond) // a history that is long takes long to judge
			defer tick.Stop()
			for {
				select {
				case <-l.stop:
					return
				case <-tick.C:
					l.acks <- c.operate(t.Context(), links)
				}
			}
		})
	}
	return l
}

// await returns after n more operations.
func (l *clients) await(t *testing.T, n int) {
	t.Helper()
	for range n {
		if err := <-l.acks; err != nil {
			t.Error(err)
		}
	}
}

// disturb cuts one of two ways, of which something may have been held back for a while.
func (l *clients) disturb(t *testing.T, dice *rand.Rand, wire *pgtest.Proxy) {
	t.Helper()
	if hold := []func(){nil, wire.HoldAnswers, wire.HoldRequests}[dice.IntN(3)]; hold != nil {
		hold()
		wire.AwaitHeld()
		l.await(t, dice.IntN(20)) // of the clients on the other way
	}
	wire.Cut()
	wire.Release()
}

// finish ends the clients and judges what they saw.
func (l *clients) finish(t *testing.T) {
	t.Helper()
	l.await(t, len(l.acks)+10)
	close(l.stop)
	l.idle.Wait()
	l.await(t, len(l.acks))
	var all []porcupine.Operation
	count := map[int]int{}
	for _, c := range l.all {
		all = append(all, c.ops...)
		for _, o := range c.ops {
			count[o.Output.(answered).outcome]++
		}
	}
	asked := time.Now()
	judgeHistory(t, all)
	t.Logf("%d done, %d head moved, %d fenced, %d unclear; judged in %s", count[done], count[headMoved], count[fenced], count[unclear], time.Since(asked).Round(time.Millisecond))
}

// Few heads and few values, so that heads come back to what they were.
const (
	heads  = 3
	values = 4
)

func value(v int) cas.Block { return cas.Raw(fmt.Append(nil, "value ", v)) }

// operate does one operation; an error is one that no client may see.
func (c *client) operate(ctx context.Context, links map[protocol.Link]int) error {
	h := c.dice.IntN(heads)
	root := fmt.Sprint(c.place, "-", h)
	name := "memory/" + root
	if c.dice.IntN(3) == 0 { // this one does not wait until the database is back
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(1+c.dice.IntN(20))*time.Millisecond)
		defer cancel()
	}
	in, out := asked{what: "read", head: h}, answered{}
	call := time.Since(c.begun).Nanoseconds()
	var err error
	switch n := c.dice.IntN(10); {
	case n < 4:
		var head cas.Head
		if head, err = c.s.Head(ctx, name); err != nil {
			return passes(err) // it tells nothing
		}
		out.value = links[head.Link]
		c.seen[h] = out.value
	case n == 4 && c.fences:
		c.drawn++
		in.what, in.token = "fence", c.id*1_000_000+c.drawn
		f := cas.Fence{Root: protocol.RunID(root)}
		binary.BigEndian.PutUint64(f.Token[:], uint64(in.token))
		takes := fmt.Sprintf(`insert into wf.heads(name, token) values ('%s', '\x%x') on conflict (name) do update set token = excluded.token`, protocol.RunHead(f.Root), f.Token)
		if err := c.srv.Exec(ctx, c.dsn, takes); err != nil {
			out.outcome = unclear
		} else {
			c.fence[h], c.tokens[h] = f, in.token
		}
	default:
		in.what, in.old, in.new = "move", c.seen[h], 1+c.dice.IntN(values)
		b := cas.Batch{Blocks: []cas.Block{value(in.new)}, Moves: []cas.Move{{Name: name, New: value(in.new).Link}}}
		if in.old != 0 {
			b.Moves[0].Old = value(in.old).Link
		}
		if c.dice.IntN(4) > 0 {
			in.token, b.Fence = c.tokens[h], c.fence[h]
		}
		switch err = c.s.Commit(ctx, b); {
		case err == nil:
			c.seen[h] = in.new
		case errors.Is(err, protocol.ErrHeadMoved):
			out.outcome, err = headMoved, nil
		case errors.Is(err, protocol.ErrFenced):
			out.outcome, err = fenced, nil
			c.tokens[h], c.fence[h] = 0, cas.Fence{}
		case errors.Is(err, protocol.ErrUnreachable):
			out.outcome, err = unclear, nil
		default:
			return passes(err) // it was not sent
		}
	}
	o := porcupine.Operation{ClientId: c.id, Input: in, Output: out, Call: call, Return: time.Since(c.begun).Nanoseconds()}
	if out.outcome == unclear {
		o.Return = math.MaxInt64
	}
	c.ops = append(c.ops, o)
	return err
}

// passes is nil for an error of a database that is away, or of a client that left.
func passes(err error) error {
	if errors.Is(err, protocol.ErrUnreachable) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}
