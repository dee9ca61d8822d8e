package agentkit

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"wf/agentkit/model"
	"wf/agentkit/prompt"
	"wf/agentkit/ratelimit"
	"wf/protocol"
)

// How a model call that failed for now is made again.
const (
	DefaultPatience = 10 * time.Minute       // for which a call waits for its providers, where nobody says another time
	Tries           = 4                      // of a model that others stand in for, the first included, before they are asked
	Backoff         = 500 * time.Millisecond // before the second try, then twice as long each time
	MaxWait         = 30 * time.Second       // before any try, unless the provider asks for more
	brokenTries     = 3                      // of a call whose answer begins and breaks off: each may have to be paid for
)

// An outage is what a call knows of its models while they fail. What to do next is decided without a clock or an effect.
//
//	failed ─► next ─► the same model, a little later │ the next one, at once │ whichever may be asked first │ the end
type outage struct {
	patience time.Duration
	since    time.Time // when the first failure came that may pass
	models   []failing
}

// failing is a model, as its newest failures have it.
type failing struct {
	tries  int
	broken int       // answers that broke off
	again  time.Time // it is not asked before
	out    bool      // it is not asked any more
}

// next takes in that model i failed at now, and tells which one to ask next, and when; ok is false for none. heard is that
// its answer had begun.
func (o *outage) next(i int, e *model.Error, heard bool, now time.Time, later func(time.Duration) time.Duration) (then int, wait time.Duration, ok bool) {
	m := &o.models[i]
	m.tries++
	if heard || e.Status == 0 && e.Class == model.ServerError {
		m.broken++
	}
	if o.since.IsZero() {
		o.since = now
	}
	end := o.since.Add(o.patience)
	asked := cmp.Or(e.RetryAfter, min(Backoff<<min(m.tries-1, 10), MaxWait))
	m.out = !e.MayPass() || m.broken >= brokenTries || !now.Before(end) || now.Add(e.RetryAfter).After(end)
	if m.again = now.Add(later(asked)); m.again.After(end) {
		m.again = end // a last try
	}
	switch {
	case e.Class == model.Invalid:
		return 0, 0, false
	case !m.out && m.tries < Tries && asked <= MaxWait:
		return i, m.again.Sub(now), true
	}
	then = -1
	for k := range o.models {
		j := (i + 1 + k) % len(o.models)
		if x := &o.models[j]; !x.out && (x.tries == 0 || now.Before(end)) && (then < 0 || x.again.Before(o.models[then].again)) {
			if then = j; !x.again.After(now) {
				break
			}
		}
	}
	if then < 0 {
		return 0, 0, false
	}
	return then, max(0, o.models[then].again.Sub(now)), true
}

// lasted says how long model i was tried, in words that are the same however often that was.
func (o *outage) lasted(i int, e *model.Error) string {
	switch m := o.models[i]; {
	case m.broken >= brokenTries:
		return fmt.Sprintf(", in each of %d tries", brokenTries)
	case m.tries > 1 && e.RetryAfter == 0:
		return fmt.Sprintf(", again and again for %v", o.patience)
	}
	return ""
}

// patience is for how long a call waits for its models, all together.
func (v *visit) patience() time.Duration {
	if p := v.agent.Patient; p != nil {
		return *p
	}
	if p := v.turn.Role.Patience; p != nil {
		return time.Duration(*p) * time.Microsecond
	}
	if v.agent.Patience != nil {
		if d, ok := v.agent.Patience(v.Model()); ok {
			return d
		}
	}
	return DefaultPatience
}

// waitOut waits before a further try, and has it journaled where it takes its time.
func (v *visit) waitOut(ctx context.Context, name string, d time.Duration, e *model.Error) error {
	if d > ratelimit.HoldAfter && v.holds != nil {
		provider, _, _ := strings.Cut(name, "/")
		release := v.holds.begin(protocol.Held{Provider: provider, Limit: protocol.HeldByOutage,
			Why: prompt.Head(v.clean(valid(wordsOf(name, e))), 200), Until: time.Now().Add(d).UnixMicro()})
		err := model.Wait(ctx, d)
		release()
		return v.holds.join(err)
	}
	return model.Wait(ctx, d)
}
