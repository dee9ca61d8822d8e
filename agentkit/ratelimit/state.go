package ratelimit

import (
	"math/rand/v2"
	"slices"
	"time"
)

// state is what a ledger holds. Times are µs of the clock of a boot.
//
// What is decided on it is pure: it takes the time, and which processes live, from outside.
type state struct {
	Boot  string `json:"boot"`
	Epoch int64  `json:"epoch"` // random; ids of grants are of one
	Last  int64  `json:"last"`  // id of the newest grant
	Sends []send `json:"sends"` // of the window, the oldest first
	// Until is when the time is over for which the provider asked all to wait.
	Until  int64    `json:"until,omitempty"`
	Queue  []ticket `json:"queue,omitempty"`  // of the processes that wait, one of each
	Places []place  `json:"places,omitempty"` // of the processes with calls in flight

	window, grain int64
}

// send is requests that were granted at about the same time: so the window of thousands stays small.
type send struct {
	ID     int64 `json:"id"` // of the first
	At     int64 `json:"at"` // of the newest
	N      int   `json:"n"`
	Tokens int64 `json:"tokens,omitempty"`
}

// ticket is the place of a process in the queue, for the oldest of its calls.
type ticket struct {
	Member  int    `json:"member"`
	PID     int    `json:"pid"`
	Tokens  int64  `json:"tokens,omitempty"`
	Limits  Limits `json:"limits"`
	Since   int64  `json:"since"`
	Offered int64  `json:"offered,omitempty"` // since when it is its turn, 0 is not yet
	Passed  int    `json:"passed,omitempty"`  // grants to those behind it, for which there was room besides
	Idle    bool   `json:"idle,omitempty"`    // it did not take its turn: the others do not wait for it
}

// place is the calls in flight of a process.
type place struct {
	Member int `json:"member"`
	PID    int `json:"pid"`
	N      int `json:"n"`
}

// grains is how many parts of a window are told apart.
const grains = 256

// mayPass is how often a process may be passed by those behind it, so that no time is lost while it wakes.
const mayPass = 1

// patience is how long a turn is kept for a process that does not take it, such as one that was stopped.
const patience = int64(time.Second / time.Microsecond)

// How soon to look again at what no known time ends.
const (
	soon  = 20 * time.Millisecond  // a place in flight, another's turn
	later = 250 * time.Millisecond // tokens that may be given back, a process that may die
)

// verdict is the answer to one who asks.
type verdict struct {
	granted bool
	id      int64
	reason  Reason        // why not
	limit   int64         // of the reason
	again   time.Duration // when to ask again, at the latest
}

func newState(boot string, window time.Duration) *state {
	return &state{Boot: boot, Epoch: rand.Int64(), window: window.Microseconds(), grain: max(1, window.Microseconds()/grains)}
}

// unknown is more requests than any limit has.
const unknown = 1 << 30

// full makes the window as full as any limit can be, from now on.
func (s *state) full(now int64) {
	s.Last++
	s.Sends = append(s.Sends, send{ID: s.Last, At: now, N: unknown, Tokens: 1 << 50})
}

// tidy drops what is over. What lies in the future, since a clock was put back, counts from now.
func (s *state) tidy(now int64) (changed bool) {
	for i := range s.Sends {
		if s.Sends[i].At > now {
			s.Sends[i].At, changed = now, true
		}
	}
	n := len(s.Sends)
	s.Sends = slices.DeleteFunc(s.Sends, func(x send) bool { return x.At+s.window <= now || x.N <= 0 && x.Tokens <= 0 })
	if most := now + MaxRetryAfter.Microseconds(); s.Until > most {
		s.Until, changed = most, true
	}
	for i := range s.Queue {
		if t := &s.Queue[i]; max(t.Offered, t.Since) > now {
			t.Offered, t.Since, changed = min(t.Offered, now), min(t.Since, now), true
		}
	}
	return changed || n != len(s.Sends)
}

// drop forgets a process.
func (s *state) drop(member int) {
	s.Queue = slices.DeleteFunc(s.Queue, func(t ticket) bool { return t.Member == member })
	s.Places = slices.DeleteFunc(s.Places, func(p place) bool { return p.Member == member })
}

// bury forgets the processes that have ended. alive is asked of those that matter alone.
func (s *state) bury(me int, alive func(member int) bool) (changed bool) {
	var dead []int
	look := func(member int) {
		if member != me && !slices.Contains(dead, member) && !alive(member) {
			dead = append(dead, member)
		}
	}
	for _, t := range s.Queue {
		if t.Member == me {
			break
		}
		look(t.Member)
	}
	for _, p := range s.Places {
		look(p.Member)
	}
	for _, member := range dead {
		s.drop(member)
	}
	return len(dead) > 0
}

func (s *state) inFlight() (n int) {
	for _, p := range s.Places {
		n += p.N
	}
	return n
}

// ask takes a place in the queue, or goes on waiting in it, and is granted when there is room for all that wait
// before, and for itself. The state is tidy, and has none but live processes that matter.
func (s *state) ask(now int64, me ticket) verdict {
	at := slices.IndexFunc(s.Queue, func(t ticket) bool { return t.Member == me.Member })
	if at < 0 {
		at = len(s.Queue)
		me.Since = now
		s.Queue = append(s.Queue, me)
	}
	own := &s.Queue[at]
	own.Tokens, own.Limits, own.Idle = me.Tokens, me.Limits, false
	var ahead []*ticket
	all, passed := []ticket{*own}, false
	for i := range s.Queue[:at] {
		if t := &s.Queue[i]; !t.Idle {
			ahead, all, passed = append(ahead, t), append(all, *t), passed || t.Passed >= mayPass && s.room(now, []ticket{*t}).granted
		}
	}
	v := s.room(now, all)
	if v.granted && !passed {
		for _, t := range ahead {
			t.Passed++
		}
		s.Queue = slices.Delete(s.Queue, at, at+1)
		s.Last++
		v.id = s.Last
		s.count(send{ID: v.id, At: now, N: 1, Tokens: me.Tokens})
		s.take(me.Member, me.PID, 1)
		return v
	}
	if len(ahead) > 0 && s.offer(now, ahead[0]) || v.granted {
		v.again = min(v.again, soon)
	}
	v.granted = false
	return v
}

// offer notes since when it is the turn of the first. It reports whether it is.
func (s *state) offer(now int64, first *ticket) bool {
	switch {
	case !s.room(now, []ticket{*first}).granted:
		first.Offered = 0
		return false
	case first.Offered == 0:
		first.Offered = max(1, now)
	case now-first.Offered > patience:
		first.Offered, first.Idle = 0, true
	}
	return true
}

// room reports whether all of some tickets could be granted now. The limits are those of the first, which asks, and
// of those that have waited for long: a process with lower limits, by another config, has its turn now and then.
func (s *state) room(now int64, all []ticket) verdict {
	lim, tokens := all[0].Limits, int64(0)
	for _, t := range all {
		if now-t.Since > 2*s.window {
			lim = lim.Lowest(t.Limits)
		}
		tokens += t.Tokens
	}
	sent, used := 0, int64(0)
	for _, x := range s.Sends {
		sent, used = sent+x.N, used+x.Tokens
	}
	n := len(all)
	tokensFit := func(used int64) bool {
		return lim.Tokens == 0 || used+tokens <= lim.Tokens || used == 0 && n == 1
	}
	v := verdict{again: later}
	until := func(most time.Duration, at int64) {
		v.again = max(time.Microsecond, min(most, time.Duration(at-now)*time.Microsecond))
	}
	switch {
	case s.Until > now:
		v.reason, v.limit = ByRetryAfter, 0
		until(time.Second, s.Until)
	case lim.Requests > 0 && sent+n > lim.Requests:
		v.reason, v.limit = ByRequests, int64(lim.Requests)
		for _, x := range s.Sends {
			if sent -= x.N; sent+n <= lim.Requests {
				until(time.Second, x.At+s.window)
				break
			}
		}
	case !tokensFit(used):
		v.reason, v.limit = ByTokens, lim.Tokens
		for _, x := range s.Sends {
			if used -= x.Tokens; tokensFit(used) {
				until(later, x.At+s.window)
				break
			}
		}
	case lim.InFlight > 0 && s.inFlight()+n > lim.InFlight:
		v.reason, v.limit, v.again = ByInFlight, int64(lim.InFlight), soon
	default:
		v.granted = true
	}
	return v
}

// count adds to the window: to its newest part, where that is of about the same time.
func (s *state) count(x send) {
	if n := len(s.Sends); n > 0 && s.Sends[n-1].At/s.grain == x.At/s.grain {
		last := &s.Sends[n-1]
		last.At, last.N, last.Tokens = max(last.At, x.At), last.N+x.N, last.Tokens+x.Tokens
		return
	}
	s.Sends = append(s.Sends, x)
}

// discount takes a grant, or a part of it, out of the window, where that still has it.
func (s *state) discount(id int64, n int, tokens int64) {
	for i := range slices.Backward(s.Sends) { // ids begin with 1
		if x := &s.Sends[i]; x.ID <= id {
			x.N, x.Tokens = x.N-n, max(0, x.Tokens-tokens)
			return
		}
	}
}

// take notes calls in flight of a process, or that they ended.
func (s *state) take(member, pid, n int) {
	i := slices.IndexFunc(s.Places, func(p place) bool { return p.Member == member })
	if i < 0 {
		i = len(s.Places)
		s.Places = append(s.Places, place{Member: member, PID: pid})
	}
	if s.Places[i].N += n; s.Places[i].N <= 0 {
		s.Places = slices.Delete(s.Places, i, i+1)
	}
}

// withdraw gives up the place of a process in the queue.
func (s *state) withdraw(member int) {
	s.Queue = slices.DeleteFunc(s.Queue, func(t ticket) bool { return t.Member == member })
}

// sent has a grant count from now: it took a while until it was written. Its id is another one then.
func (s *state) sent(now, id, tokens int64) int64 {
	s.discount(id, 1, tokens)
	s.Last++
	s.count(send{ID: s.Last, At: now, N: 1, Tokens: tokens})
	return s.Last
}

// settle ends a call that was granted for so many tokens. What was used beyond these counts from now.
func (s *state) settle(now, id, tokens int64, r Result) {
	switch {
	case !r.Sent:
		s.discount(id, 1, tokens)
	case r.Used > tokens:
		s.Last++
		s.count(send{ID: s.Last, At: now, Tokens: r.Used - tokens})
	case r.Used >= 0:
		s.discount(id, 0, tokens-r.Used)
	}
	if r.RetryAfter > 0 {
		s.Until = max(s.Until, now+min(r.RetryAfter, MaxRetryAfter).Microseconds())
	}
}
