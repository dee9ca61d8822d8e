package query

import (
	"context"
	"fmt"
	"time"
	"wf/agentkit/prompt"
	"wf/agentkit/task"
	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/protocol"
)

// Cache builds every prompt of a run again, and compares each with the one before it.
func Cache(ctx context.Context, e *engine.Engine, run protocol.RunID) (*api.Cache, error) {
	r := newCacheReader(e.Histories(ctx))
	out := &api.Cache{Schema: "wf.cache/v1", Run: run, MinPrefix: 1, Items: []*api.CacheCall{}}
	var input, cached int64
	var broken *api.CacheCall // the newest call that a compaction broke
	for x, err := range e.Store.After(ctx, run, 0) {
		if err != nil {
			return nil, err
		}
		c, err := r.event(&x)
		if err != nil {
			return nil, err
		}
		if c == nil {
			continue
		}
		out.Items = append(out.Items, c.CacheCall)
		switch {
		case c.Part != api.CompactionPart:
			out.MinPrefix = min(out.MinPrefix, c.Ratio)
		case c.Differs != nil && (broken == nil || c.Step != broken.Step || c.Bytes != broken.Bytes):
			broken = c.CacheCall // the calls after it have the same prompt
			out.Compactions++
			if out.MinCompacted == nil || c.Ratio < *out.MinCompacted {
				out.MinCompacted = &c.Ratio
			}
		}
		if c.Input != nil && c.Cached != nil {
			input, cached = input+*c.Input, cached+*c.Cached
		}
	}
	if input > 0 {
		out.Hit = new(float64(cached) / float64(input))
	}
	return out, nil
}

// cacheCall is a call with its time.
type cacheCall struct {
	*api.CacheCall
	at int64 // unix µs
}

// cacheReader follows the model calls of a run.
type cacheReader struct {
	past    *engine.Histories
	byCID   map[protocol.Link]string // steps, by their records
	builder prompt.Builder
	prompts map[string]*visitPrompt // by step
	newest  map[string]*cacheCall   // newest call of a step
	calls   map[string]int          // by step
}

func newCacheReader(past *engine.Histories) *cacheReader {
	return &cacheReader{past: past, byCID: map[protocol.Link]string{}, prompts: map[string]*visitPrompt{}, newest: map[string]*cacheCall{}, calls: map[string]int{}}
}

// visitPrompt is P_k of a visit beside P_{k-1}.
type visitPrompt struct {
	bytes  []byte // nil once the next one was compared with it
	size   int
	before string // step
	prefix prompt.Prefix
	part   string
	isTask bool
	fresh  bool // an attempt began: its first request is P_k again
	stale  bool // a compaction moved the visit to another P_k
	less   bool // a compaction made the next request shorter
}

// event gives the call that a usage event tells of, else nil.
func (r *cacheReader) event(x *protocol.Entry) (*cacheCall, error) {
	step := x.StepName()
	if err := r.past.Take(x); err != nil {
		return nil, err
	}
	switch x.Type {
	case protocol.EvStepCompleted:
		d, err := cas.DecodeData[protocol.StepCompleted](&x.Event)
		if err != nil {
			return nil, err
		}
		r.byCID[d.Record] = step
	case protocol.EvAttemptFailed:
		d, err := cas.DecodeData[protocol.AttemptFailed](&x.Event)
		if err != nil {
			return nil, err
		}
		if p := r.prompts[step]; p != nil && !d.Keeps {
			p.fresh = true
		}
	case protocol.EvCompacted:
		d, err := cas.DecodeData[protocol.Compacted](&x.Event)
		if err != nil {
			return nil, err
		}
		if p := r.prompts[step]; p != nil {
			p.less, p.stale = true, p.stale || d.Scope == protocol.ScopeConversation
		}
	case protocol.EvUsage:
		u, err := cas.DecodeData[protocol.Usage](&x.Event)
		if err != nil || u.Child != nil { // in the journal of the sub-workflow's run
			return nil, err
		}
		if u.Kind == protocol.UsageGoal || u.Kind == protocol.UsageReflection {
			return r.aside(step, u), nil
		}
		p, err := r.prompt(step)
		if err != nil {
			return nil, err
		}
		return r.call(step, p, u, x.TS), nil
	}
	return nil, nil
}

// prompt builds P_k of a visit as it is now, and compares it with the one it goes on from.
func (r *cacheReader) prompt(step string) (*visitPrompt, error) {
	old := r.prompts[step]
	if old != nil && !old.stale {
		return old, nil
	}
	p, h, err := r.build(step)
	if err != nil {
		return nil, err
	}
	if old != nil {
		p.less, p.fresh = old.less, old.fresh
	}
	r.prompts[step] = p

	resumes := h.Visit.Resumes
	if past, _, ok := h.Records.Get(resumes); ok && past.Compaction != nil {
		resumes, p.part = past.Compaction.Prior, api.CompactionPart
	}
	other, known := r.byCID[resumes]
	if !known {
		return p, nil
	}
	before := r.prompts[other]
	if before == nil || before.stale || before.bytes == nil {
		if before, _, err = r.build(other); err != nil {
			return nil, err
		}
	}
	if p.isTask != before.isTask {
		return p, nil // in a fork that made tasks of a conversation, or the other way
	}
	earlier := before.bytes
	if p.isTask { // each has a context of its own
		earlier = prompt.Lasting(earlier)
	}
	p.before, p.prefix = other, prompt.Compare(earlier, p.bytes)
	if p.part == "" {
		p.part = p.prefix.Part
	}
	before.bytes = nil // hardly ever wanted again
	return p, nil
}

// build renders P_k of a visit.
func (r *cacheReader) build(step string) (*visitPrompt, protocol.History, error) {
	h, err := r.past.Of(step)
	if err != nil {
		return nil, h, fmt.Errorf("%s: %w", step, err)
	}
	b, err := r.builder.Prompt(h)
	if err != nil {
		return nil, h, fmt.Errorf("%s: %w", step, err)
	}
	return &visitPrompt{bytes: b, size: len(b), isTask: task.Offered(h.Tools)}, h, nil
}

// call fills in one call. Within an attempt requests only grow, so the prefix of all of them
// is that of P_k.
func (r *cacheReader) call(step string, p *visitPrompt, u protocol.Usage, at int64) *cacheCall {
	r.calls[step]++
	c := &cacheCall{CacheCall: &api.CacheCall{
		Step: step, Call: r.calls[step], Kind: u.Kind, Model: u.Model, Bytes: p.size, Before: p.before, Of: p.prefix.Of, Shared: p.prefix.Shared,
		Ratio: p.prefix.Ratio(), Part: p.part, Input: u.Input, Cached: u.Cached, Written: tokensWritten(u),
	}, at: at}
	if !p.prefix.Whole() {
		c.Differs = &p.prefix.Shared
	}
	before := r.newest[step]
	if before == nil {
		before = r.newest[p.before]
	}
	c.Miss = r.miss(c, before, p)
	if u.Input != nil {
		r.newest[step] = c
	}
	p.fresh, p.less = false, false
	return c
}

// aside is a call of the visit with a context of its own: it shares nothing with P_k.
func (r *cacheReader) aside(step string, u protocol.Usage) *cacheCall {
	r.calls[step]++
	return &cacheCall{CacheCall: &api.CacheCall{Step: step, Call: r.calls[step], Kind: u.Kind, Model: u.Model, Ratio: 1,
		Input: u.Input, Cached: u.Cached, Written: tokensWritten(u)}}
}

func tokensWritten(u protocol.Usage) *int64 {
	var sum *int64
	for _, n := range []*int64{u.CacheWrite5m, u.CacheWrite1h} {
		if n == nil {
			continue
		}
		if sum == nil {
			sum = new(int64)
		}
		*sum += *n
	}
	return sum
}

// What providers promise, at the least.
const (
	cacheShortest = 1024            // tokens of a prompt that is cached at all
	cacheStep     = 128             // tokens by which the cached part is rounded down
	cacheLife     = 5 * time.Minute // of an entry that nobody reads
)

// miss says why a call read less from the cache than the call before it sent.
func (r *cacheReader) miss(c, before *cacheCall, p *visitPrompt) string {
	switch {
	case c.Input == nil || c.Cached == nil:
		return ""
	case before == nil || before.Input == nil:
		if *c.Cached > 0 {
			return ""
		}
		return "cold"
	}
	// What both share: all of the earlier request within a visit, P_{k-1} of its newest one
	// between visits, whose size in tokens is estimated by its bytes.
	could := *before.Input
	if before.Step != c.Step {
		could = int64(float64(*c.Input) * float64(p.prefix.Shared) / float64(max(1, p.size)))
	}
	if *c.Cached >= could*9/10-cacheStep {
		return ""
	}
	switch {
	case p.less:
		return api.CompactionPart
	case before.Model != c.Model:
		return "model"
	case before.Step != c.Step && c.Part != "":
		return c.Part
	case p.fresh:
		return "attempt"
	case could < cacheShortest:
		return "short"
	case time.Duration(c.at-before.at)*time.Microsecond > cacheLife:
		return "ttl"
	}
	return "provider"
}
