package agentkit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/model"
	"wf/protocol"
)

// ill is a model that fails in one way until a time.
type ill struct {
	until time.Time
	err   func() error
	asked []time.Time
}

func (m *ill) GenerateContent(ctx context.Context, _ []llms.MessageContent, o ...llms.CallOption) (*llms.ContentResponse, error) {
	m.asked = append(m.asked, time.Now())
	if time.Now().Before(m.until) {
		return nil, m.err()
	}
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: "---\nstatus: done\n---\n"}}}, nil
}

func (m *ill) Call(context.Context, string, ...llms.CallOption) (string, error) { panic("not called") }

func failure503() error { return &model.Error{Class: model.ServerError, Status: 503, Message: "busy"} }

// A call waits as long as the role, the provider or the command line says: the failure comes no later than that, and none of
// the waits is longer than half a minute unless the provider asks for it.
func TestPatience(t *testing.T) {
	us := func(d time.Duration) *int64 { return new(d.Microseconds()) }
	refused := func() error {
		return &model.Error{Class: model.Unavailable, Message: "dial tcp: connection refused", Err: fmt.Errorf("dial: %w", syscall.ECONNREFUSED)}
	}
	later := func(d time.Duration) func() error {
		return func() error { return &model.Error{Class: model.RateLimit, Status: 429, RetryAfter: d, Message: "busy"} }
	}
	for name, c := range map[string]struct {
		role     *int64
		provider time.Duration // negative is none
		given    *time.Duration
		ill      time.Duration
		err      func() error
		ok       bool
		within   time.Duration // it ends between half of this and this
		tries    int           // at most; 0 is any
	}{
		"ten minutes by itself":             {provider: -1, ill: time.Hour, err: failure503, within: 10*time.Minute + time.Second},
		"over five minutes":                 {provider: -1, ill: 5 * time.Minute, err: failure503, ok: true, within: 6 * time.Minute, tries: 20},
		"the provider's":                    {provider: time.Minute, ill: time.Hour, err: failure503, within: time.Minute + time.Second},
		"the role's goes before it":         {role: us(2 * time.Minute), provider: time.Minute, ill: time.Hour, err: failure503, within: 2*time.Minute + time.Second},
		"the command's goes before both":    {role: us(2 * time.Minute), provider: time.Minute, given: new(20 * time.Second), ill: time.Hour, err: failure503, within: 21 * time.Second},
		"none":                              {role: us(0), provider: time.Minute, ill: time.Hour, err: failure503, tries: 1},
		"none by the command":               {provider: -1, given: new(time.Duration), ill: time.Hour, err: failure503, tries: 1},
		"a server that starts":              {provider: -1, ill: 2 * time.Minute, err: refused, ok: true, within: 3 * time.Minute},
		"a server that is not there":        {provider: time.Minute, ill: time.Hour, err: refused, within: time.Minute + time.Second},
		"Retry-After of minutes":            {provider: -1, ill: 4 * time.Minute, err: later(4 * time.Minute), ok: true, within: 5 * time.Minute, tries: 2},
		"Retry-After of more than there is": {provider: -1, ill: time.Hour, err: later(time.Hour), tries: 1},
		"what another request needs":        {provider: -1, ill: time.Hour, err: func() error { return &model.Error{Class: model.Invalid, Status: 422} }, tries: 1},
		"what a person has to mend":         {provider: -1, ill: time.Hour, err: func() error { return &model.Error{Class: model.Unavailable, Status: 401} }, tries: 1},
		"an answer that breaks off":         {provider: -1, ill: time.Hour, err: func() error { return &model.Error{Class: model.ServerError, Message: "cut"} }, within: 3 * time.Second, tries: 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				m := &ill{until: began.Add(c.ill), err: c.err}
				s := newStage(t, "{}")
				s.turn.Role.Patience, s.agent.Patient = c.role, c.given
				s.agent.Models = func(string, string) (llms.Model, error) { return m, nil }
				s.agent.Patience = func(string) (time.Duration, bool) { return c.provider, c.provider >= 0 }
				j := &journal{}
				_, err := s.perform(t, j)
				var f *protocol.Failure
				if (err == nil) != c.ok || err != nil && (!errors.As(err, &f) || !f.Keeps && !f.Suspend) {
					t.Fatalf("got %v", err)
				}
				if err != nil && f.Suspend && strings.Contains(f.Message, "a retry:") {
					t.Errorf("what suspends is not tried again by itself: %v", f)
				}
				if took := time.Since(began); took > c.within || took < c.within/2 {
					t.Errorf("it took %v", took)
				}
				if c.tries > 0 && len(m.asked) > c.tries {
					t.Errorf("it was asked %d times", len(m.asked))
				}
				var held time.Duration
				for _, r := range find[protocol.Released](j) {
					held += time.Duration(r.MS) * time.Millisecond
				}
				if holds := find[protocol.Held](j); held < c.within/2-4*time.Second || len(holds) != len(find[protocol.Released](j)) || len(holds) > 0 && (holds[0].Limit != protocol.HeldByOutage || holds[0].Why == "" || holds[0].Until == 0) {
					t.Errorf("it was held for %v: %+v", held, holds)
				}
			})
		})
	}
}

// A wait ends when the run does, at once, and the journal says so.
func TestAWaitForAProviderEndsWithTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "{}")
		s.agent.Models = func(string, string) (llms.Model, error) {
			return &ill{until: time.Now().Add(time.Hour), err: failure503}, nil
		}
		ctx, stop := context.WithTimeout(t.Context(), 100*time.Second)
		defer stop()
		j := &journal{}
		began := time.Now()
		if _, err := s.agent.Perform(ctx, s.turn, j.emit); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took != 100*time.Second {
			t.Errorf("it took %v", took)
		}
		if n := len(find[protocol.Held](j)); n == 0 || n != len(find[protocol.Released](j)) {
			t.Errorf("%d holds, %d of them over", n, len(find[protocol.Released](j)))
		}
	})
}

// What next decides, against what is wanted, with any number of models that fail in any way: a call ends; no model is asked before
// the time that it said, nor once it cannot pass, nor behind the end of the patience; the first four tries of a model follow
// each other; and a call is not given up while one might answer.
func TestPatienceWithAnyModels(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 7))
		o := outage{patience: time.Duration(r.IntN(700)) * time.Second, models: make([]failing, 1+r.IntN(4))}
		began := time.Unix(1e9, 0)
		now, at := began, 0
		since := time.Time{}
		may := make([]time.Time, len(o.models)) // by the newest Retry-After
		lost := make([]bool, len(o.models))
		broken := make([]int, len(o.models))
		asked := make([]int, len(o.models))
		var story []string
		for step := 0; ; step++ {
			if step > 3000 {
				t.Fatalf("seed %d: it does not end", seed)
			}
			e, heard := &model.Error{Class: model.ServerError, Status: 503}, false
			switch r.IntN(12) {
			case 0:
				e = &model.Error{Class: model.Unavailable, Status: 401}
			case 1:
				e = &model.Error{Class: model.ServerError}
			case 2:
				heard = true
			case 3:
				e = &model.Error{Class: model.RateLimit, Status: 429, RetryAfter: time.Duration(1+r.IntN(200)) * time.Second}
			}
			now = now.Add(time.Duration(r.IntN(3000)) * time.Millisecond)
			if since.IsZero() {
				since = now
			}
			end := since.Add(o.patience)
			asked[at]++
			if heard || e.Status == 0 {
				broken[at]++
			}
			may[at] = now.Add(e.RetryAfter)
			lost[at] = e.Class == model.Unavailable || broken[at] >= 3 || !now.Before(end) || may[at].After(end)
			story = append(story, fmt.Sprintf("%v: model %d %v", now.Sub(began), at, e.Class))
			then, wait, ok := o.next(at, e, heard, now, func(d time.Duration) time.Duration { return d + time.Duration(r.Int64N(int64(d)/5+1)) })
			bad := func(what string) {
				t.Fatalf("seed %d, patience %v: %s\n%s", seed, o.patience, what, strings.Join(story, "\n"))
			}
			if !ok {
				for i := range lost {
					if !lost[i] && (asked[i] == 0 || now.Before(end)) {
						bad(fmt.Sprintf("given up, and model %d might answer", i))
					}
				}
				break
			}
			when := now.Add(wait)
			switch {
			case lost[then]:
				bad(fmt.Sprintf("model %d is asked again", then))
			case when.Before(may[then]):
				bad(fmt.Sprintf("model %d is asked before its time", then))
			case asked[then] > 0 && (when.After(end) || !now.Before(end)):
				bad("the wait is longer than the patience")
			case e.RetryAfter <= MaxWait && asked[at] < Tries && !lost[at] && then != at:
				bad("another model is asked before the fourth try")
			case wait > 36*time.Second && e.RetryAfter == 0 && then == at && len(lost) == 1:
				bad("it waits for too long")
			}
			if now, at = when, then; asked[then] == 0 {
				may[then] = now
			}
		}
	}
}
