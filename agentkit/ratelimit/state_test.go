package ratelimit

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

const second = int64(time.Second / time.Microsecond)

// person is a process of the simulation, which asks for one call after another.
type person struct {
	ticket
	asks    int   // calls that wait, the newest included
	next    int64 // when it asks again
	since   int64 // it is first in its own line
	longest int64
}

type granted struct {
	at, id, tokens int64
	used           int64 // settled
	end            int64 // when it ends
	over           bool
	by             int
}

// The rules, against random crowds: never more than the limits in any window, no call waits for ever, and processes
// take turns.
func TestNoWindowHoldsMoreThanItsLimits(t *testing.T) {
	for seed := range uint64(16) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		lim := Limits{Requests: 1 + rnd.IntN(40)}
		if rnd.IntN(2) == 0 {
			lim.Tokens = int64(1 + rnd.IntN(20_000))
		}
		if rnd.IntN(2) == 0 {
			lim.InFlight = 1 + rnd.IntN(6)
		}
		s := newState("a", Window)
		crowd := make([]*person, 1+rnd.IntN(5))
		for i := range crowd {
			crowd[i] = &person{ticket: ticket{Member: i + 1, PID: i + 1, Limits: lim}, asks: min(60, 6*lim.Requests)}
		}
		var all []*granted
		alive := func(int) bool { return true }
		for now := int64(0); now < 8000*second && slices.ContainsFunc(crowd, func(p *person) bool { return p.asks > 0 }); now += 1 + rnd.Int64N(50_000) {
			for _, g := range all {
				if !g.over && g.end <= now {
					g.over = true
					s.settle(now, g.id, g.tokens, Result{Sent: true, Used: g.used})
					s.take(g.by, 0, -1)
				}
			}
			for _, i := range rnd.Perm(len(crowd)) {
				p := crowd[i]
				if p.asks == 0 || now < p.next {
					continue
				}
				if p.Tokens == 0 {
					p.Tokens, p.since = 1+rnd.Int64N(900), now
				}
				s.tidy(now)
				s.bury(p.Member, alive)
				v := s.ask(now, p.ticket)
				if !v.granted {
					if v.again <= 0 || v.again > time.Second || v.reason == "" && len(s.Queue) < 2 {
						t.Fatalf("seed %d: asks again after %v, by %q", seed, v.again, v.reason)
					}
					p.next = now + v.again.Microseconds()
					continue
				}
				g := &granted{at: now, id: v.id, tokens: p.Tokens, used: rnd.Int64N(p.Tokens + 1), by: p.Member, end: now + rnd.Int64N(20*second)}
				all = append(all, g)
				p.asks--
				p.longest = max(p.longest, now-p.since)
				p.Tokens = 0
				check(t, seed, lim, all, now)
			}
		}
		for _, p := range crowd {
			if p.asks > 0 {
				t.Fatalf("seed %d: %+v: process %d still waits for %d calls after %d grants; the state is %+v", seed, lim, p.Member, p.asks, len(all), s)
			}
			// A call that is the first of its process waits for the others' one each, and once for being passed.
			if most := int64(2*len(crowd)+1) * Window.Microseconds(); p.longest > most {
				t.Errorf("seed %d: %+v: a call of process %d waited %d s for its turn", seed, lim, p.Member, p.longest/second)
			}
		}
	}
}

// check looks at the window that ends with the newest grant.
func check(t *testing.T, seed uint64, lim Limits, all []*granted, now int64) {
	t.Helper()
	requests, flying, tokens := 0, 0, int64(0)
	for _, g := range all {
		if !g.over {
			flying++
		}
		if now-g.at >= Window.Microseconds() {
			continue
		}
		requests++
		if tokens += g.tokens; g.over {
			tokens += g.used - g.tokens
		}
	}
	last := all[len(all)-1]
	switch {
	case requests > lim.Requests:
		t.Fatalf("seed %d: %d requests in a window, of %d", seed, requests, lim.Requests)
	case lim.InFlight > 0 && flying > lim.InFlight:
		t.Fatalf("seed %d: %d calls in flight, of %d", seed, flying, lim.InFlight)
	case lim.Tokens > 0 && tokens > lim.Tokens && tokens > last.tokens:
		t.Fatalf("seed %d: %d tokens in a window, of %d", seed, tokens, lim.Tokens)
	}
}

func sends(n int, at int64) (out []send) {
	for i := range n {
		out = append(out, send{ID: int64(i + 1), At: at + int64(i), N: 1})
	}
	return out
}

// A token bucket of 60 admits 119 in its first minute.
func TestSixtyAreSixtyInTheFirstMinute(t *testing.T) {
	s := newState("a", Window)
	n := 0
	for now := int64(0); now < Window.Microseconds(); now += 50_000 {
		s.tidy(now)
		if s.ask(now, ticket{Member: 1, Limits: Limits{Requests: 60}}).granted {
			n++
		}
	}
	if n != 60 {
		t.Errorf("%d were granted", n)
	}
	now := Window.Microseconds() + newState("", Window).grain
	if s.tidy(now); !s.ask(now, ticket{Member: 1, Limits: Limits{Requests: 60}}).granted {
		t.Error("none is granted in the next")
	}
}

func TestTokensBelowAtAndBeyondTheLimit(t *testing.T) {
	lim := Limits{Tokens: 100}
	for _, c := range []struct {
		used, asked int64
		want        bool
	}{{0, 99, true}, {0, 100, true}, {0, 101, true}, {1, 99, true}, {1, 100, false}, {1, 101, false}, {100, 1, false}} {
		s := newState("a", Window)
		s.Sends = []send{{ID: 1, At: 0, N: 1, Tokens: c.used}}
		v := s.ask(1, ticket{Member: 1, Tokens: c.asked, Limits: lim})
		if v.granted != c.want || !c.want && (v.reason != ByTokens || v.limit != 100) {
			t.Errorf("%d of 100 are used, %d more: %+v", c.used, c.asked, v)
		}
	}
}

func TestWhatWasUsedIsSettled(t *testing.T) {
	for name, c := range map[string]struct {
		r        Result
		requests int
		tokens   int64
		until    int64
	}{
		"less than reserved":    {Result{Sent: true, Used: 30}, 1, 30, 0},
		"as reserved":           {Result{Sent: true, Used: 100}, 1, 100, 0},
		"more than reserved":    {Result{Sent: true, Used: 130}, 1, 130, 0},
		"not known":             {Result{Sent: true, Used: -1}, 1, 100, 0},
		"refused":               {Result{Sent: true, Used: 0, RetryAfter: 7 * time.Second}, 1, 0, 7*second + 5},
		"refused for very long": {Result{Sent: true, Used: 0, RetryAfter: 24 * time.Hour}, 1, 0, 600*second + 5},
		"never sent":            {Result{}, 0, 0, 0},
	} {
		s := newState("a", Window)
		id := s.ask(1, ticket{Member: 1, Tokens: 100, Limits: Limits{Requests: 9}}).id
		s.settle(5, id, 100, c.r)
		s.tidy(5)
		requests, tokens := 0, int64(0)
		for _, x := range s.Sends {
			requests, tokens = requests+x.N, tokens+x.Tokens
		}
		if requests != c.requests || tokens != c.tokens || s.Until != c.until {
			t.Errorf("%s: %d requests, %d tokens, until %d", name, requests, tokens, s.Until)
		}
	}
}

// A request that was written long after its grant counts from then.
func TestARequestCountsWhenItIsSent(t *testing.T) {
	s := newState("a", Window)
	lim := Limits{Requests: 1}
	id := s.ask(0, ticket{Member: 1, Tokens: 5, Limits: lim}).id
	s.sent(30*second, id, 5)
	s.tidy(Window.Microseconds() + second)
	if v := s.ask(Window.Microseconds()+second, ticket{Member: 1, Limits: lim}); v.granted {
		t.Error("it counted from its grant")
	}
	now := 30*second + Window.Microseconds()
	if s.tidy(now); !s.ask(now, ticket{Member: 1, Limits: lim}).granted {
		t.Error("it counts for ever")
	}
}

// A process that was stopped in front of the queue holds the others up for a moment.
func TestATurnThatIsNotTakenPasses(t *testing.T) {
	s := newState("a", Window)
	lim := Limits{Requests: 1}
	s.Sends = sends(1, 0)
	s.ask(1, ticket{Member: 1, Limits: lim}) // and is never seen again
	s.ask(1, ticket{Member: 2, Limits: lim})
	now := Window.Microseconds()
	for ; ; now += soon.Microseconds() {
		s.tidy(now)
		if s.ask(now, ticket{Member: 2, Limits: lim}).granted {
			break
		}
		if now > Window.Microseconds()+2*patience {
			t.Fatal("the others wait for it")
		}
	}
	if now < Window.Microseconds()+patience {
		t.Error("its turn was not kept")
	}
	if len(s.Queue) != 1 || s.Queue[0].Member != 1 {
		t.Errorf("its place is lost: %+v", s.Queue)
	}
}

// A process with lower limits than the others has its turn all the same.
func TestLowerLimitsAreNotStarved(t *testing.T) {
	s := newState("a", Window)
	strict, loose := Limits{Requests: 2}, Limits{Requests: 50}
	got := map[int]int{}
	for now := int64(0); now < 20*Window.Microseconds(); now += 100_000 {
		for member, lim := range map[int]Limits{1: strict, 2: loose} {
			s.tidy(now)
			if s.ask(now, ticket{Member: member, Limits: lim}).granted {
				got[member]++
			}
		}
	}
	if got[1] < 6 || got[2] < 500 {
		t.Errorf("granted %v", got)
	}
}

// Processes that always have calls share the window.
func TestProcessesShareTheWindow(t *testing.T) {
	s := newState("a", Window)
	lim := Limits{Requests: 40}
	got := [3]int{}
	for now := int64(0); now < 10*Window.Microseconds(); now += 30_000 {
		s.tidy(now)
		for _, member := range []int{1, 2} {
			for s.ask(now, ticket{Member: member, Limits: lim}).granted {
				got[member]++
			}
		}
	}
	if got[1] > 2*got[2] || got[2] > 2*got[1] || got[1]+got[2] < 390 {
		t.Errorf("granted %v", got)
	}
}

func TestALedgerWithoutAClockToTrustLetsNothingMoreThrough(t *testing.T) {
	s := newState("a", Window)
	lim := Limits{Requests: 3}
	s.Sends = sends(3, 1000*second)
	s.Until = 5000 * second
	now := 10 * second // the clock was put back
	if s.tidy(now); s.ask(now, ticket{Member: 1, Limits: lim}).granted {
		t.Error("it is granted")
	}
	if s.Until > now+MaxRetryAfter.Microseconds() {
		t.Error("it is closed for ever")
	}
	now = s.Until
	if s.tidy(now); !s.ask(now, ticket{Member: 1, Limits: lim}).granted {
		t.Error("it stops for ever")
	}
}
