package engine

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"

	"wf/cas"
	"wf/protocol"
)

// CheckReport is what deciding and rendering a run again gave.
type CheckReport struct {
	Events    int       `json:"events"`
	Decisions Tally     `json:"decisions"` // edges decided again
	Prompts   Tally     `json:"prompts"`   // digests of P_k rebuilt
	Prefixes  Tally     `json:"prefixes"`  // P_k byte prefix of P_{k+1}
	Findings  []Finding `json:"findings"`
}

// Tally counts checks.
type Tally struct {
	Checked int `json:"checked"`
	Equal   int `json:"equal"`
}

// Finding is a difference between what is recorded and what follows from it.
type Finding struct {
	Kind     string `json:"kind"` // decision, prompt, prefix
	Where    string `json:"where"`
	Expected string `json:"expected"`
	Actual   string `json:"actual"`
}

// OK reports whether nothing differed.
func (r *CheckReport) OK() bool { return len(r.Findings) == 0 }

// Prompter renders the canonical bytes of P_k and their digest; agentkit does.
type Prompter func(protocol.History) (bytes []byte, digest protocol.Link, err error)

// Check decides every edge of a run again and rebuilds every prompt, from the records alone,
// and compares with what the journal says.
func (e *Engine) Check(ctx context.Context, run protocol.RunID, render Prompter) (*CheckReport, error) {
	c := checker{e: e, read: e.reader(ctx), render: render, r: &CheckReport{Findings: []Finding{}},
		started: map[string]protocol.StepStarted{}, goals: map[string]string{}, prompts: map[protocol.Link][]byte{}}
	s := newState(c.read)
	for x, err := range e.Store.After(ctx, run, 0) {
		if err != nil {
			return nil, err
		}
		c.r.Events++
		if err := c.event(s, x); err != nil {
			return nil, fmt.Errorf("run %s, event %d: %w", run, x.Seq, err)
		}
		if err := s.FoldMore(&e.lib, one(x)); err != nil {
			return nil, fmt.Errorf("run %s: %w", run, err)
		}
	}
	return c.r, nil
}

type checker struct {
	e       *Engine
	read    Reader
	render  Prompter
	r       *CheckReport
	past    pastCache
	started map[string]protocol.StepStarted
	goals   map[string]string        // of tasks, by step
	prompts map[protocol.Link][]byte // P_k by the record of visit k
}

func (c *checker) event(s *State, x protocol.Entry) error {
	switch x.Type {
	case protocol.EvStepStarted:
		d, err := cas.DecodeData[protocol.StepStarted](&x.Event)
		if err != nil {
			return err
		}
		if d.EdgePrompt.S, err = textOf(c.read, d.EdgePrompt); err != nil {
			return err
		}
		if _, again := c.started[x.StepName()]; again {
			return nil
		}
		c.started[x.StepName()] = d
		return c.decision(s, x, d)
	case protocol.EvTaskStarted:
		goal, err := goalOf(&x.Event)
		c.goals[x.StepName()] = goal
		return err
	case protocol.EvPrompt:
		return c.prompt(x)
	case protocol.EvCompacted:
		return c.compacted(x)
	case protocol.EvStepCompleted:
		d, err := cas.DecodeData[protocol.StepCompleted](&x.Event)
		if err != nil {
			return err
		}
		if p := c.prompts[stepLink(x.StepName())]; p != nil {
			c.prompts[d.Record] = p
		}
	}
	return nil
}

// stepLink keys a prompt until its record is known.
func stepLink(step string) protocol.Link { return cas.Raw([]byte(step)).Link }

// decision compares a step_started with what the rules ask for at that point.
func (c *checker) decision(s *State, x protocol.Entry, d protocol.StepStarted) error {
	plan, err := s.plan(true)
	if err != nil {
		return err
	}
	c.r.Decisions.Checked++
	want := describe(d.Role, d.Parents, d.Item, d.Edge, d.Via, d.EdgePrompt.S, d.Resumes, d.Visit)
	var near string
	for _, p := range plan.Start {
		got := describe(p.Role, p.Parents, p.Item, p.Edge, p.Via, p.EdgePrompt, p.Resumes, p.Visit)
		if got == want {
			c.r.Decisions.Equal++
			return nil
		}
		if p.Role == d.Role && slices.Equal(p.Parents, d.Parents) {
			near = got
		}
	}
	if near == "" {
		near = "no such visit"
	}
	c.r.Findings = append(c.r.Findings, Finding{"decision", fmt.Sprintf("seq %d %s", x.Seq, x.StepName()), want, near})
	return nil
}

func describe(role string, parents []protocol.Link, item *protocol.Item, edge int, via protocol.Via, prompt string, resumes protocol.Link, visit int) string {
	at := ""
	if item != nil {
		at = fmt.Sprintf("[%d %s]", item.Index, item.Value.Short())
	}
	return fmt.Sprintf("%s%s visit %d by %s %d from %v, resumes %q, prompt %q", role, at, visit, via, edge, parents, resumes, prompt)
}

// prompt rebuilds P_k and compares its digest, and the prefix it shares with P_{k-1}.
func (c *checker) prompt(x protocol.Entry) error {
	d, err := cas.DecodeData[protocol.PromptSent](&x.Event)
	if err != nil {
		return err
	}
	started, ok := c.started[x.StepName()]
	if !ok {
		return fmt.Errorf("a prompt of %s, which was not started: %w", x.StepName(), protocol.ErrCorrupt)
	}
	where := fmt.Sprintf("seq %d %s", x.Seq, x.StepName())
	prompt, err := c.rebuild(started, x.StepName(), where, d.Digest)
	if err != nil {
		return err
	}
	c.prompts[stepLink(x.StepName())] = prompt
	before, ok := c.prompts[started.Resumes]
	if !ok {
		return nil
	}
	if c.goals[x.StepName()] != "" {
		before = lasting(before)
	}
	c.r.Prefixes.Checked++
	if bytes.HasPrefix(prompt, before) {
		c.r.Prefixes.Equal++
		return nil
	}
	n := 0
	for n < len(before) && n < len(prompt) && before[n] == prompt[n] {
		n++
	}
	c.r.Findings = append(c.r.Findings, Finding{"prefix", where, fmt.Sprintf("%d bytes shared", len(before)), fmt.Sprintf("differs at byte %d", n)})
	return nil
}

// lasting is what all tasks of a role begin with: the tools and the system message, each a line.
func lasting(prompt []byte) []byte {
	end := 0
	for range 2 {
		end += bytes.IndexByte(prompt[end:], '\n') + 1
	}
	return prompt[:end]
}

// rebuild renders P_k and compares its digest.
func (c *checker) rebuild(started protocol.StepStarted, step, where, digest string) ([]byte, error) {
	h, err := c.e.lib.history(c.read, &c.past, started)
	if err != nil {
		return nil, err
	}
	h.Goal = c.goals[step]
	prompt, got, err := c.render(h)
	if err != nil {
		return nil, err
	}
	c.r.Prompts.Checked++
	if got.String() == digest {
		c.r.Prompts.Equal++
	} else {
		c.r.Findings = append(c.r.Findings, Finding{"prompt", where, digest, got.String()})
	}
	return prompt, nil
}

// compacted moves a visit to its Compaction and compares the prompt that follows from it.
func (c *checker) compacted(x protocol.Entry) error {
	d, err := cas.DecodeData[protocol.Compacted](&x.Event)
	if err != nil || d.Scope != protocol.ScopeConversation {
		return err
	}
	started, ok := c.started[x.StepName()]
	if !ok {
		return fmt.Errorf("a compaction of %s, which was not started: %w", x.StepName(), protocol.ErrCorrupt)
	}
	started.Resumes = d.Record
	c.started[x.StepName()] = started
	_, err = c.rebuild(started, x.StepName(), fmt.Sprintf("seq %d %s", x.Seq, x.StepName()), d.Digest)
	return err
}

// upTo cuts a journal after an event.
func upTo(events iter.Seq2[protocol.Entry, error], last protocol.Seq) iter.Seq2[protocol.Entry, error] {
	return func(yield func(protocol.Entry, error) bool) {
		for x, err := range events {
			if err == nil && x.Seq > last {
				return
			}
			if !yield(x, err) {
				return
			}
		}
	}
}
