package engine

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"wf/cas"
	"wf/engine/rules"
	"wf/protocol"
)

// CheckReport is what deciding and rendering a run again gave.
type CheckReport struct {
	Events    int       `json:"events"`
	Children  int       `json:"children,omitempty"` // runs of sub-workflows that the sums hold too
	Decisions Tally     `json:"decisions"`          // edges decided again
	Prompts   Tally     `json:"prompts"`            // digests of P_k rebuilt
	Prefixes  Tally     `json:"prefixes"`           // P_k byte prefix of P_{k+1}
	Results   Tally     `json:"results,omitzero"`   // reused ones, whose keys were made again
	Findings  []Finding `json:"findings"`
}

// Tally counts checks.
type Tally struct {
	Checked int `json:"checked"`
	Equal   int `json:"equal"`
}

// Finding is a difference between what is recorded and what follows from it.
type Finding struct {
	Kind     string `json:"kind"` // decision, prompt, prefix, result
	Where    string `json:"where"`
	Expected string `json:"expected"`
	Actual   string `json:"actual"`
}

// OK reports whether nothing differed.
func (r *CheckReport) OK() bool { return len(r.Findings) == 0 }

// Prompter renders the canonical bytes of the request that a visit has come to, and their
// digest: P_k, and behind it what its Transcript holds, if it has one. agentkit does.
type Prompter func(protocol.Turn) (bytes []byte, digest protocol.Link, err error)

// Check decides every edge of a run again and rebuilds every prompt, from the records alone,
// and compares with what the journal says.
func (e *Engine) Check(ctx context.Context, run protocol.RunID, render Prompter) (*CheckReport, error) {
	c := checker{e: e, run: run, steps: e.Histories(ctx), render: render, r: &CheckReport{Findings: []Finding{}}, first: map[string]protocol.Seq{},
		reused: map[string]*protocol.Reused{}, tasks: map[protocol.Link]bool{}, prompts: map[protocol.Link][]byte{}, starts: map[protocol.Link]protocol.Link{}}
	s := rules.New(e.records(ctx))
	for x, err := range e.Store.After(ctx, run, 0) {
		if err != nil {
			return nil, err
		}
		c.r.Events++
		if err := c.event(ctx, s, x); err != nil {
			return nil, fmt.Errorf("run %s, event %d: %w", run, x.Seq, err)
		}
		if err := s.FoldMore(these(x)); err != nil {
			return nil, fmt.Errorf("run %s: %w", run, err)
		}
	}
	return c.r, nil
}

type checker struct {
	e       *Engine
	run     protocol.RunID
	steps   *Histories
	render  Prompter
	r       *CheckReport
	first   map[string]protocol.Seq         // of the first step_started
	skipped bool                            // since a visit that was skipped nothing has come but others, and starts
	reused  map[string]*protocol.Reused     // by step
	tasks   map[protocol.Link]bool          // whether a record is of a task
	prompts map[protocol.Link][]byte        // P_k by the record of visit k
	starts  map[protocol.Link]protocol.Link // the Start under which that visit was made
}

func (c *checker) event(ctx context.Context, s *rules.State, x protocol.Entry) error {
	step := x.StepName()
	if err := c.steps.Take(&x); err != nil {
		return err
	}
	c.skipped = c.skipped && (x.Type == protocol.EvStepStarted || x.Type == protocol.EvStepCompleted)
	switch x.Type {
	case protocol.EvStepStarted:
		if c.first[step] == 0 {
			c.first[step] = x.Seq
			return c.decision(s, x)
		}
	case protocol.EvPrompt:
		return c.prompt(ctx, s, x)
	case protocol.EvReused:
		d, err := cas.DecodeData[protocol.Reused](&x.Event)
		if err != nil {
			return err
		}
		c.reused[step] = &d
		return c.request(s, x)
	case protocol.EvNotReused:
		delete(c.reused, step)
	case protocol.EvCompacted:
		d, err := cas.DecodeData[protocol.Compacted](&x.Event)
		if err == nil {
			_, err = c.rebuild(ctx, s, x, d.Digest, d.Scope == protocol.ScopeVisit)
		}
		return err
	case protocol.EvStepCompleted:
		d, err := cas.DecodeData[protocol.StepCompleted](&x.Event)
		if err == nil {
			c.skipped = d.Status == protocol.StepSkipped
			err = c.result(ctx, s, x, d.Record)
		}
		if err != nil {
			return err
		}
		if p := c.prompts[stepLink(step)]; p != nil {
			begun := c.steps.open[step]
			c.prompts[d.Record], c.starts[d.Record], c.tasks[d.Record] = p, begun.started.Start, begun.goal != ""
		}
	}
	return nil
}

// stepLink keys a prompt until its record is known.
func stepLink(step string) protocol.Link {
	l, _ := cas.Payload([]byte(step))
	return l
}

// decision compares the first step_started of a visit with what the rules ask for at that point.
func (c *checker) decision(s *rules.State, x protocol.Entry) error {
	d := c.steps.open[x.StepName()].started
	prompt, err := textOf(c.steps.read, d.EdgePrompt)
	if err != nil {
		return err
	}
	asked, err := s.Asked(d, c.skipped)
	if err != nil {
		return err
	}
	c.r.Decisions.Checked++
	want := describe(d.Role, d.Parents, d.Item, d.Edge, d.Via, prompt, d.Resumes, d.Visit)
	var near string
	for _, p := range asked {
		got := describe(p.Role, p.Parents, p.Item, p.Edge, p.Via, p.EdgePrompt, p.Resumes, p.Visit)
		if got == want {
			c.r.Decisions.Equal++
			return nil
		}
		if p.Role == d.Role && slices.Equal(p.Parents, d.Parents) {
			near = got
		}
	}
	near = cmp.Or(near, "no such visit")
	c.r.Findings = append(c.r.Findings, Finding{"decision", place(x), want, near})
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
func (c *checker) prompt(ctx context.Context, s *rules.State, x protocol.Entry) error {
	d, err := cas.DecodeData[protocol.PromptSent](&x.Event)
	if err != nil {
		return err
	}
	prompt, err := c.rebuild(ctx, s, x, d.Digest, false)
	if err != nil {
		return err
	}
	c.prompts[stepLink(x.StepName())] = prompt
	begun := c.steps.open[x.StepName()]
	resumes, isTask := begun.started.Resumes, begun.goal != ""
	before, ok := c.prompts[resumes]
	if !ok || isTask != c.tasks[resumes] { // a fork can make tasks of a conversation
		return nil
	}
	now, was := begun.started.Start, c.starts[resumes]
	if now != was {
		if isTask { // it begins with nothing but what the definition says
			return nil
		}
		if prompt, before, ok, err = c.acrossAFork(prompt, before, now, was); !ok || err != nil {
			return err
		}
	}
	if isTask {
		before = lasting(before)
	}
	c.r.Prefixes.Checked++
	if bytes.HasPrefix(prompt, before) {
		c.r.Prefixes.Equal++
		return nil
	}
	n := sharedPrefix(before, prompt)
	c.r.Findings = append(c.r.Findings, Finding{"prefix", place(x), fmt.Sprintf("%d bytes shared", len(before)), fmt.Sprintf("differs at byte %d", n)})
	return nil
}

// acrossAFork leaves away what another definition may say otherwise: the tools and the system
// message. ok is false where nothing is left to compare, since the inputs are others.
func (c *checker) acrossAFork(prompt, before []byte, now, was protocol.Link) (p, b []byte, ok bool, err error) {
	o, err := c.e.lib.open(now, c.steps.read)
	if err != nil {
		return nil, nil, false, err
	}
	old, err := c.e.lib.open(was, c.steps.read)
	if err != nil || !bytes.Equal(o.Raw, old.Raw) {
		return nil, nil, false, err
	}
	return prompt[len(lasting(prompt)):], before[len(lasting(before)):], true, nil
}

// lasting is what all tasks of a role begin with: the tools and the system message, each a line.
func lasting(prompt []byte) []byte {
	end := 0
	for range 2 {
		end += bytes.IndexByte(prompt[end:], '\n') + 1
	}
	return prompt[:end]
}

func place(x protocol.Entry) string { return fmt.Sprintf("seq %d %s", x.Seq, x.StepName()) }

// rebuild renders what was sent after an event and compares its digest: P_k, or with the
// transcript up to there the request in the middle of the visit. A compaction of a conversation moves the
// visit to another P_k; that of a visit changes what stands behind it.
func (c *checker) rebuild(ctx context.Context, s *rules.State, x protocol.Entry, digest string, within bool) ([]byte, error) {
	begun := c.steps.open[x.StepName()]
	if begun == nil {
		return nil, fmt.Errorf("%s of %s, which was not started: %w", protocol.Article(string(x.Type)), x.StepName(), protocol.ErrCorrupt)
	}
	turn, err := c.turn(s, x.StepName())
	if err != nil {
		return nil, err
	}
	if within {
		events := upTo(c.e.Store.After(ctx, c.run, c.first[x.StepName()]-1), x.Seq)
		if err := transcript(c.steps.read, &turn, events); err != nil {
			return nil, err
		}
	}
	prompt, got, err := c.render(turn)
	if err != nil {
		return nil, err
	}
	c.r.Prompts.Checked++
	if got.String() == digest {
		c.r.Prompts.Equal++
	} else {
		c.r.Findings = append(c.r.Findings, Finding{"prompt", place(x), digest, got.String()})
	}
	return prompt, nil
}

// turn is that of a visit, as far as its first request follows from it.
func (c *checker) turn(s *rules.State, step string) (turn protocol.Turn, err error) {
	id, err := protocol.ParseStepID(step)
	if err != nil {
		return turn, err
	}
	open := c.steps.open[step]
	if open == nil {
		return turn, fmt.Errorf("%s was not started: %w", step, protocol.ErrCorrupt)
	}
	begun := open.started
	role, ok := s.Program().Workflow.RoleNamed(begun.Role)
	if !ok {
		return turn, fmt.Errorf("the definition has no role %q: %w", begun.Role, protocol.ErrCorrupt)
	}
	turn = s.TurnOf(c.run, id, role)
	if turn.History, err = c.steps.Of(step); err != nil {
		return turn, err
	}
	turn.Visit, turn.Attempt, turn.EdgePrompt = begun.Visit, begun.Attempt, turn.History.Visit.EdgePrompt
	return turn, nil
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

// these are events that were read.
func these(entries ...protocol.Entry) iter.Seq2[protocol.Entry, error] {
	return func(yield func(protocol.Entry, error) bool) {
		for _, x := range entries {
			if !yield(x, nil) {
				return
			}
		}
	}
}
