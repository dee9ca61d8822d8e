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

// asked is an operation of a client on one head.
type asked struct {
	what     string // "read", "fence" or "move"
	head     int
	token    int // of fence: the one it sets; of move: the one it carries, 0 for none
	old, new int // of move; 0 is no value
}

// Outcomes of operations, as far as a client knows them.
const (
	done = iota
	headMoved
	fenced
	unclear
)

type answered struct {
	outcome int
	value   int // of a read
}

// headState is a head as the model has it.
type headState struct{ token, value int }

// registers are heads, each a register with compare-and-swap, and a token that a swap may carry. An unclear operation
// may come to pass at any time, so it returns at infinity: at the end it does no harm if it never did.
var registers = porcupine.Model{
	Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
		by := map[int][]porcupine.Operation{}
		for _, o := range all {
			by[o.Input.(asked).head] = append(by[o.Input.(asked).head], o)
		}
		var out [][]porcupine.Operation
		for _, ops := range by {
			out = append(out, ops)
		}
		return out
	},
	Init: func() any { return headState{} },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.(headState), input.(asked), output.(answered)
		outcome := done
		switch {
		case in.what == "read":
			return out.value == s.value, s
		case in.what == "fence":
			s.token = in.token
		case in.token != 0 && in.token != s.token:
			outcome = fenced
		case in.old != s.value:
			outcome = headMoved
		default:
			s.value = in.new
		}
		return out.outcome == unclear || out.outcome == outcome, s
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v %+v", input, output) },
}

// judgeHistory fails where no order of a history explains it.
func judgeHistory(t *testing.T, all []porcupine.Operation) {
	t.Helper()
	result, info := porcupine.CheckOperationsVerbose(registers, all, time.Minute)
	if result == porcupine.Ok {
		return
	}
	file := t.TempDir() + "/history.html"
	err := porcupine.VisualizePath(registers, info, file)
	for _, o := range all {
		t.Logf("client %d, %d to %d: %+v: %+v", o.ClientId, o.Call, o.Return, o.Input, o.Output)
	}
	t.Errorf("the history is %s (%v)", result, err)
}

// The judge itself: what must not be is found.
func TestTheModelOfHeads(t *testing.T) {
	read := func(v int) (asked, answered) { return asked{what: "read"}, answered{value: v} }
	move := func(token, old, new, outcome int) (asked, answered) {
		return asked{what: "move", token: token, old: old, new: new}, answered{outcome: outcome}
	}
	fence := func(token, outcome int) (asked, answered) {
		return asked{what: "fence", token: token}, answered{outcome: outcome}
	}
	var all []porcupine.Operation
	then := func(in asked, out answered) {
		o := porcupine.Operation{Input: in, Output: out, Call: int64(2 * len(all)), Return: int64(2*len(all) + 1)}
		if out.outcome == unclear {
			o.Return = math.MaxInt64
		}
		all = append(all, o)
	}
	for _, c := range []struct {
		name string
		want porcupine.CheckResult
		does func()
	}{
		{"a swap and its refusal", porcupine.Ok, func() { then(move(0, 0, 1, done)); then(move(0, 0, 2, headMoved)); then(read(1)) }},
		{"an acknowledged swap that is lost", porcupine.Illegal, func() { then(move(0, 0, 1, done)); then(read(0)) }},
		{"an unclear swap that comes to pass late", porcupine.Ok, func() { then(move(0, 0, 1, unclear)); then(read(0)); then(read(1)) }},
		{"one that comes to pass and goes again", porcupine.Illegal, func() { then(move(0, 0, 1, unclear)); then(read(1)); then(read(0)) }},
		{"one that comes to pass twice", porcupine.Illegal, func() { then(move(0, 0, 1, unclear)); then(read(1)); then(move(0, 1, 0, done)); then(read(1)) }},
		{"a refusal without a cause", porcupine.Illegal, func() { then(move(0, 0, 1, headMoved)) }},
		{"a token that was overtaken", porcupine.Ok, func() {
			then(fence(1, done))
			then(move(1, 0, 1, done))
			then(fence(2, done))
			then(move(1, 1, 2, fenced))
		}},
		{"a swap under a token after its successor's first", porcupine.Illegal, func() {
			then(fence(1, done))
			then(fence(2, unclear))
			then(move(2, 0, 1, done))
			then(move(1, 1, 2, done))
		}},
	} {
		all = nil
		c.does()
		if got := porcupine.CheckOperationsTimeout(registers, all, time.Minute); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

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

// Clients move and read a few heads while connections are cut, what is said is held back, and the server is killed. What they saw can be
// explained by one order of all operations: nothing acknowledged was lost, refused without a cause, or done twice, and nothing was done
// under a token after its successor's first.
func TestHistories(t *testing.T) {
	links := map[protocol.Link]int{}
	for v := range values {
		links[value(v+1).Link] = v + 1
	}
	srv, dice := started(pgtest.Start())(t), chance(t)
	direct := fresh(t, srv)
	for i := range rounds(4) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			wires := []*pgtest.Proxy{proxy(t, srv), proxy(t, srv)}
			var clients []*client
			var idle sync.WaitGroup
			stop, acks, begun := make(chan struct{}), make(chan error, 1<<16), time.Now()
			for id := range 6 {
				dsn := wires[id%2].DSN(nameOf(direct))
				c := &client{id: id + 1, place: fmt.Sprint(i), srv: srv, dsn: dsn, dice: rand.New(rand.NewPCG(dice.Uint64(), 0)), fences: i%2 == 1, begun: begun}
				if clients = append(clients, c); id < 4 {
					c.s = open(t, dsn)
				} else {
					c.s = clients[id-4].s // two share a store
				}
				idle.Go(func() {
					tick := time.NewTicker(time.Millisecond) // a history that is long takes long to judge
					defer tick.Stop()
					for {
						select {
						case <-stop:
							return
						case <-tick.C:
							acks <- c.operate(t.Context(), links)
						}
					}
				})
			}
			await := func(n int) {
				t.Helper()
				for range n {
					if err := <-acks; err != nil {
						t.Error(err)
					}
				}
			}
			for range 12 {
				await(len(acks) + 1 + dice.IntN(30))
				wire := wires[dice.IntN(2)]
				switch dice.IntN(6) {
				case 0, 1:
					wire.HoldAnswers()
					wire.AwaitHeld()
					await(dice.IntN(20)) // of the clients on the other one
				case 2, 3:
					wire.HoldRequests()
					wire.AwaitHeld()
					await(dice.IntN(20))
				case 4:
					if err := errors.Join(srv.Kill(), srv.Restart()); err != nil {
						t.Fatal(err)
					}
				}
				wire.Cut()
				wire.Release()
			}
			await(len(acks) + 10)
			close(stop)
			idle.Wait()
			await(len(acks))
			var all []porcupine.Operation
			count := map[int]int{}
			for _, c := range clients {
				all = append(all, c.ops...)
				for _, o := range c.ops {
					count[o.Output.(answered).outcome]++
				}
			}
			asked := time.Now()
			judgeHistory(t, all)
			t.Logf("%d done, %d head moved, %d fenced, %d unclear; judged in %s", count[done], count[headMoved], count[fenced], count[unclear], time.Since(asked).Round(time.Millisecond))
		})
	}
}
