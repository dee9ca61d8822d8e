package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"wf/agentkit/prompt"
	"wf/agentkit/task"
	"wf/cas"
	"wf/engine"
	"wf/protocol"
)

func newCache(a *app) *cobra.Command {
	var least float64
	cmd := &cobra.Command{
		Use:   "cache [RUN]",
		Short: "Tell how much of each prompt the provider has seen before",
		Long: `Build every prompt of a run again and tell, for each model call, how much of the prompt before it begins
with, byte for byte, and what the provider read from its cache. A call that should have been read and was
not has a label: cold, short, ttl, model, tools, system, history, compaction, attempt or provider.`,
		Example: `  wf cache -1

  # in CI: fail when a prompt no longer begins with the one before
  wf cache -1 --min-prefix 1.0`,
		Args: takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if least < 0 || least > 1 {
				return usagef("--min-prefix %v: want a share, from 0 to 1.0", least)
			}
			ctx := cmd.Context()
			return a.withRun(ctx, latestUnless(args), func(s *cas.Store, run protocol.RunID) error {
				return a.cache(ctx, s, run, least)
			})
		},
	}
	cmd.Flags().Float64Var(&least, "min-prefix", 0, "exit 1 if a prompt shares less than this of the one before; compactions aside")
	return cmd
}

// callCache is one model call.
type callCache struct {
	Step    string  `json:"step"`
	Call    int     `json:"call"`           // of the visit, from 1
	Kind    string  `json:"kind,omitempty"` // what the call was for; "" is a turn of the visit
	Model   string  `json:"model"`
	Bytes   int     `json:"bytes"`      // of P_k
	Before  string  `json:"before"`     // the visit whose prompt it goes on from, "" for none
	Of      int     `json:"of"`         // bytes of that prompt
	Shared  int     `json:"shared"`     // of these: what P_k begins with
	Ratio   float64 `json:"ratio"`      // shared / of; 1 where there is none
	Differs *int    `json:"differs_at"` // first byte that differs, null for none
	Part    string  `json:"part"`       // tools, system, history: what it lies in
	Input   *int64  `json:"input"`
	Cached  *int64  `json:"cached"`
	Written *int64  `json:"written"`
	Miss    string  `json:"miss"` // why less was read than could be; "" for no miss or no report

	at int64 // unix µs
}

type cacheJSON struct {
	Schema    string         `json:"schema"`
	Run       protocol.RunID `json:"run"`
	MinPrefix float64        `json:"min_prefix"` // the least ratio of all calls but those after a compaction
	// Compactions are the prompts that a compaction broke on purpose, MinCompacted the least ratio
	// of these; left out where there is none.
	Compactions  int      `json:"compactions,omitempty"`
	MinCompacted *float64 `json:"min_compacted,omitempty"`

	Hit   *float64     `json:"hit"` // cached of input over all calls; null where nothing was told
	Items []*callCache `json:"items"`
}

func (a *app) cache(ctx context.Context, s *cas.Store, run protocol.RunID, least float64) error {
	e := a.Engine(s, nil)
	r := newCacheReader(e.Histories(ctx))
	out := cacheJSON{Schema: "wf.cache/v1", Run: run, MinPrefix: 1, Items: []*callCache{}}
	var input, cached int64
	var broken []*callCache
	for x, err := range s.After(ctx, run, 0) {
		if err != nil {
			return err
		}
		c, err := r.event(&x)
		if err != nil {
			return err
		}
		if c == nil {
			continue
		}
		out.Items = append(out.Items, c)
		switch {
		case c.Part != compactionPart:
			out.MinPrefix = min(out.MinPrefix, c.Ratio)
		case c.Differs != nil && (len(broken) == 0 || c.Step != broken[len(broken)-1].Step || c.Bytes != broken[len(broken)-1].Bytes):
			broken = append(broken, c) // the calls after it have the same prompt
		}
		if c.Input != nil && c.Cached != nil {
			input, cached = input+*c.Input, cached+*c.Cached
		}
	}
	for _, c := range broken {
		out.Compactions++
		if out.MinCompacted == nil || c.Ratio < *out.MinCompacted {
			out.MinCompacted = &c.Ratio
		}
	}
	if input > 0 {
		hit := float64(cached) / float64(input)
		out.Hit = &hit
	}
	if err := a.showCache(out); err != nil {
		return err
	}
	if out.MinPrefix < least {
		return fail(errDifference, "the part that differs is named above; wf messages shows the prompts",
			"run %s: a prompt begins with only %.4f of the one before", run, out.MinPrefix)
	}
	return nil
}

// compactionPart is the part of a break that a compaction made, once and on purpose.
const compactionPart = "compaction"

// cacheReader follows the model calls of a run.
type cacheReader struct {
	past    *engine.Histories
	byCID   map[protocol.Link]string // steps, by their records
	builder prompt.Builder
	prompts map[string]*visitPrompt // by step
	newest  map[string]*callCache   // newest call of a step
	calls   map[string]int          // by step
}

func newCacheReader(past *engine.Histories) *cacheReader {
	return &cacheReader{past: past, byCID: map[protocol.Link]string{}, prompts: map[string]*visitPrompt{}, newest: map[string]*callCache{}, calls: map[string]int{}}
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
func (r *cacheReader) event(x *protocol.Entry) (*callCache, error) {
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
		if p := r.prompts[step]; p != nil {
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
		resumes, p.part = past.Compaction.Prior, compactionPart
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
func (r *cacheReader) call(step string, p *visitPrompt, u protocol.Usage, at int64) *callCache {
	r.calls[step]++
	c := &callCache{
		Step: step, Call: r.calls[step], Kind: u.Kind, Model: u.Model, Bytes: p.size, Before: p.before, Of: p.prefix.Of, Shared: p.prefix.Shared,
		Ratio: p.prefix.Ratio(), Part: p.part, Input: u.Input, Cached: u.Cached, Written: tokensWritten(u), at: at,
	}
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
func (r *cacheReader) aside(step string, u protocol.Usage) *callCache {
	r.calls[step]++
	return &callCache{Step: step, Call: r.calls[step], Kind: u.Kind, Model: u.Model, Ratio: 1,
		Input: u.Input, Cached: u.Cached, Written: tokensWritten(u)}
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
func (r *cacheReader) miss(c, before *callCache, p *visitPrompt) string {
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
		return compactionPart
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

func (a *app) showCache(c cacheJSON) error {
	if a.asJSON() {
		return a.answer(c)
	}
	p := paint{a.out.color}
	var head []string
	for _, name := range []string{"step", "call", "prompt", "of the one before", "differs", "input", "cached", "written", "miss"} {
		head = append(head, p.dim(name))
	}
	rows := [][]string{head}
	for _, i := range c.Items {
		shared, differs := "", ""
		if i.Before != "" {
			shared = fmt.Sprintf("%d of %d bytes, %s", i.Shared, i.Of, i.Before)
		}
		if i.Differs != nil {
			differs = fmt.Sprintf("byte %d, %s", *i.Differs, i.Part)
		}
		rows = append(rows, []string{i.Step, strconv.Itoa(i.Call), fmt.Sprintf("%d bytes", i.Bytes), shared, differs, count(i.Input), count(i.Cached), count(i.Written), i.Miss})
	}
	if err := table(a.out, rows); err != nil {
		return err
	}
	if len(c.Items) == 0 {
		_, err := fmt.Fprintln(a.out, "no model calls: there is nothing to compare")
		return err
	}
	hit := "not told"
	if c.Hit != nil {
		hit = fmt.Sprintf("%.1f %%", *c.Hit*100)
	}
	least := fmt.Sprintf("shared prefix ≥ %.4f", c.MinPrefix)
	if !slices.ContainsFunc(c.Items, func(i *callCache) bool { return i.Before != "" }) {
		least = "no call goes on from another: no prefix to compare"
	}
	if n := c.Compactions; n > 0 {
		least += fmt.Sprintf(", but ≥ %.4f after %s", *c.MinCompacted, protocol.Plural(n, "compaction"))
	}
	_, err := fmt.Fprintf(a.out, "%s   read from the cache: %s\n", least, hit)
	return err
}
