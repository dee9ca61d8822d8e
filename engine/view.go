package engine

import (
	"context"
	"fmt"
	"slices"

	"wf/cas"
	"wf/protocol"
)

// RunSchema names the JSON form of a View.
const RunSchema = "wf.run/v1"

// View is a run as people and programs see it: wf.run/v1.
type View struct {
	Schema     string                 `json:"schema"`
	ID         protocol.RunID         `json:"id"`
	Workflow   string                 `json:"workflow"`
	Definition string                 `json:"definition"`
	Status     protocol.RunStatus     `json:"status"`
	Reason     string                 `json:"reason"`
	Suspended  protocol.SuspendReason `json:"suspended_by,omitempty"`
	Code       string                 `json:"code,omitempty"` // of the Error behind a suspension
	Head       string                 `json:"head"`
	Seq        protocol.Seq           `json:"seq"`
	Result     *string                `json:"result"`
	Steps      []*StepView            `json:"steps"`
	Outputs    protocol.JSON          `json:"outputs"`
	Usage      UsageView              `json:"usage"`
	CostUSD    *float64               `json:"cost_usd"` // null: unknown
	Started    string                 `json:"started"`
	Updated    string                 `json:"updated"`
	ActiveMS   int64                  `json:"active_ms"`
	Timing     Timing                 `json:"timing"`
	Scripted   int                    `json:"scripted_calls"`
	Waiting    []WaitingView          `json:"waiting,omitempty"`
	Mend       *Mend                  `json:"mend,omitempty"`      // of a suspended run whose definition is wrong
	Leftovers  []string               `json:"leftovers,omitempty"` // joins of a finished run that still wait, and for whom
	Info       InfoView               `json:"info"`
}

// InfoView is what a run was started with.
type InfoView struct {
	Title       string              `json:"title"`
	Description string              `json:"description"`
	Type        string              `json:"type"`
	Scope       string              `json:"scope"`
	Tags        []string            `json:"tags"`
	CreatedBy   string              `json:"created_by"`
	TargetUser  string              `json:"target_user"`
	RequestID   string              `json:"request_id"`
	Workspace   string              `json:"workspace"`
	File        string              `json:"file"`
	Parent      *protocol.ParentRun `json:"parent"`
	ForkedFrom  *string             `json:"forked_from"`
	Inputs      protocol.JSON       `json:"inputs"`
}

// StepView is one visit.
type StepView struct {
	ID         string              `json:"id"`
	Role       string              `json:"role"`
	Action     protocol.Action     `json:"action"`
	Visit      int                 `json:"visit"`
	Item       *int                `json:"item,omitempty"`
	CID        *string             `json:"cid"`
	Status     string              `json:"status"` // ok, failed, skipped; running, waiting, parked, retrying
	Parents    []string            `json:"parents"`
	Resumes    *string             `json:"resumes"`
	Edge       int                 `json:"edge"`
	Via        protocol.Via        `json:"via"`
	EdgePrompt string              `json:"edge_prompt"`
	Output     protocol.JSON       `json:"output"`
	Text       string              `json:"text"`
	Error      *protocol.ErrorInfo `json:"error"`
	Attempts   []AttemptView       `json:"attempts"`
	ToolCalls  int                 `json:"tool_calls"`
	Usage      UsageView           `json:"usage"`
	MS         int64               `json:"ms"`
	Workspace  *protocol.GitState  `json:"workspace"`
	Child      protocol.RunID      `json:"child,omitempty"` // the run of a sub-workflow
	// Compactions are in order; each took the place of what was read before it.
	Compactions []CompactionView `json:"compactions,omitempty"`
	// Corrections are why answers did not fit the declared output, one for each that the model was
	// told of.
	Corrections []string `json:"corrections,omitempty"`
	// CutOff is set where the newest reply has as many tokens as it may have, and so no end.
	CutOff bool `json:"cut_off,omitempty"`
	// Tools and Inject are blocks: the tools that were offered, what was put at the tail of the
	// first request. null without.
	Tools  protocol.Link `json:"-"`
	Inject protocol.Link `json:"-"`
	record protocol.Link
}

// AttemptView is one try of a visit.
type AttemptView struct {
	Attempt int                 `json:"attempt"`
	Started string              `json:"started"`
	Error   *protocol.ErrorInfo `json:"error"`
	RetryAt *string             `json:"retry_at,omitempty"`
	Usage   UsageView           `json:"usage"`
}

// UsageView sums model calls; what no provider told is null.
type UsageView struct {
	Calls        int    `json:"calls"`
	Input        *int64 `json:"input"`
	Cached       *int64 `json:"cached"`
	CacheWrite5m *int64 `json:"cache_write_5m"`
	CacheWrite1h *int64 `json:"cache_write_1h"`
	Output       *int64 `json:"output"`
	Reasoning    *int64 `json:"reasoning"`
}

// WaitingView is what a run waits for.
type WaitingView struct {
	Step     string            `json:"step"`
	Kind     protocol.WaitKind `json:"kind"`
	Question string            `json:"question"`
	Choices  []protocol.Choice `json:"choices"`
	Form     protocol.JSON     `json:"form,omitempty"` // JSON Schema of the fields to fill in
	Due      *string           `json:"due"`
}

func (u *UsageView) add(x protocol.Usage) {
	u.Calls++
	sum := func(to **int64, n *int64) {
		if n == nil {
			return
		}
		if *to == nil {
			*to = new(int64)
		}
		**to += *n
	}
	sum(&u.Input, x.Input)
	sum(&u.Cached, x.Cached)
	sum(&u.CacheWrite5m, x.CacheWrite5m)
	sum(&u.CacheWrite1h, x.CacheWrite1h)
	sum(&u.Output, x.Output)
	sum(&u.Reasoning, x.Reasoning)
}

// View reads a whole run.
func (e *Engine) View(ctx context.Context, run protocol.RunID) (*View, error) {
	read := e.reader(ctx)
	s := newState(read)
	b := viewer{e: e, read: read, steps: map[string]*StepView{}, named: map[string][]protocol.RunID{}, watch: stopwatch{map[string]*lap{}}}
	action := func(name string) protocol.Action {
		role, ok := s.prog.Workflow.RoleNamed(name)
		if !ok {
			return ""
		}
		return role.Action
	}
	b.v = &View{Schema: RunSchema, ID: run, Steps: []*StepView{}, Outputs: protocol.JSON("{}")}
	for x, err := range e.Store.After(ctx, run, 0) {
		if err == nil {
			err = s.FoldMore(&e.lib, one(x))
		}
		if err == nil {
			err = b.event(x)
		}
		if err == nil {
			err = b.child(ctx, x)
		}
		if err == nil {
			err = b.watch.event(x, action)
		}
		if err != nil {
			return nil, fmt.Errorf("run %s: %w", run, err)
		}
	}
	err := b.children(ctx)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", run, err)
	}
	if err := b.finish(s); err != nil {
		return nil, err
	}
	if b.v.Mend, err = b.mend(ctx, s, b.last); err != nil {
		return nil, fmt.Errorf("run %s: %w", run, err)
	}
	return b.v, nil
}

// children names the runs of sub-workflows that are in the store.
func (b *viewer) children(ctx context.Context) error {
	for step, named := range b.named {
		for _, child := range named {
			h, err := b.e.Store.Head(ctx, protocol.RunHead(child))
			if err != nil {
				return err
			}
			if h.Link.Defined() {
				b.steps[step].Child = child
				break
			}
		}
	}
	return nil
}

// child notes the run of a sub-workflow that an event leads to.
func (b *viewer) child(ctx context.Context, x protocol.Entry) error {
	step := x.StepName()
	child, err := b.e.childNamed(ctx, b.v.ID, x)
	if err == nil && child != "" && b.steps[step] != nil && !slices.Contains(b.named[step], child) {
		b.named[step] = append(b.named[step], child)
	}
	return err
}

func one(x protocol.Entry) func(func(protocol.Entry, error) bool) {
	return func(yield func(protocol.Entry, error) bool) { yield(x, nil) }
}

type viewer struct {
	e     *Engine
	read  Reader
	v     *View
	steps map[string]*StepView
	named map[string][]protocol.RunID // of sub-workflows, by step; its own one first
	last  string                      // step that was completed last
	watch stopwatch
}

func (b *viewer) event(x protocol.Entry) error {
	v := b.v
	v.Head, v.Seq, v.Updated = x.CID.String(), x.Seq, stamp(x.TS)
	if x.Seq == 1 {
		v.Started = stamp(x.TS)
	}
	st := b.steps[x.StepName()]
	if x.Type != protocol.EvStepStarted && x.Type != protocol.EvUsage && st == nil {
		return nil
	}
	switch x.Type {
	case protocol.EvStepStarted:
		return b.started(x, st)
	case protocol.EvToolCall:
		st.ToolCalls++
	case protocol.EvCompacted:
		return b.compacted(x, st)
	case protocol.EvCorrection:
		d, err := cas.DecodeData[protocol.Correction](&x.Event)
		if err != nil {
			return err
		}
		reasons, err := textOf(b.read, d.Reasons)
		if err != nil {
			return err
		}
		st.Corrections = append(st.Corrections, reasons)
	case protocol.EvUsage:
		u, err := cas.DecodeData[protocol.Usage](&x.Event)
		if err != nil {
			return err
		}
		v.Usage.add(u)
		if st != nil {
			st.Usage.add(u)
			if u.Kind == protocol.UsageTurn && u.Child == nil {
				st.CutOff = u.Stop == protocol.StopLength
			}
			st.Attempts[len(st.Attempts)-1].Usage.add(u)
		}
	case protocol.EvAttemptFailed:
		f, err := cas.DecodeData[protocol.AttemptFailed](&x.Event)
		if err != nil {
			return err
		}
		a := &st.Attempts[len(st.Attempts)-1]
		a.Error = &f.Error
		if f.RetryAt > 0 {
			at := stamp(f.RetryAt)
			a.RetryAt = &at
		}
	case protocol.EvStepCompleted:
		d, err := cas.DecodeData[protocol.StepCompleted](&x.Event)
		if err != nil {
			return err
		}
		b.last = st.ID
		st.record, st.MS, st.Workspace = d.Record, st.MS+d.MS, d.Workspace
	}
	return nil
}

func (b *viewer) started(x protocol.Entry, st *StepView) error {
	d, err := cas.DecodeData[protocol.StepStarted](&x.Event)
	if err != nil {
		return err
	}
	if st == nil {
		st = &StepView{ID: x.StepName(), Role: d.Role, Visit: d.Visit, Status: "running", Edge: d.Edge, Via: d.Via,
			Parents: []string{}, Output: protocol.JSON("{}"), Resumes: text(d.Resumes)}
		for _, p := range d.Parents {
			st.Parents = append(st.Parents, p.String())
		}
		if d.Item != nil {
			st.Item = &d.Item.Index
		}
		if st.EdgePrompt, err = textOf(b.read, d.EdgePrompt); err != nil {
			return err
		}
		b.steps[st.ID] = st
		b.v.Steps = append(b.v.Steps, st)
	}
	st.Tools, st.Inject = d.Tools, d.Inject
	if n := len(st.Attempts); n == 0 || st.Attempts[n-1].Attempt != d.Attempt {
		st.Attempts = append(st.Attempts, AttemptView{Attempt: d.Attempt, Started: stamp(x.TS)})
	}
	return nil
}

// finish adds what the state and the records tell.
func (b *viewer) finish(s *State) error {
	v := b.v
	o, err := b.e.lib.open(s.Start, b.read)
	if err != nil {
		return err
	}
	v.Workflow, v.Definition = o.prog.Workflow.Name, o.start.Workflow.String()
	v.Status, v.Reason, v.Suspended, v.Code, v.Result = s.Status(), s.Reason(), s.SuspendedBy(), s.Code(), text(s.Result())
	v.Timing = b.watch.timing()
	v.ActiveMS, v.Scripted = s.Totals.Active/1000, s.Totals.Scripted
	if cost, _ := b.e.Cost(s.Totals); cost != nil {
		dollars := float64(*cost) / 1e12
		v.CostUSD = &dollars
	}
	if err := b.info(s); err != nil {
		return err
	}
	if v.Status == protocol.Done {
		v.Leftovers = s.lacking()
	}
	for _, visits := range s.agenda.visits {
		for _, x := range visits {
			b.open(x, s.stop != nil)
		}
	}
	for _, st := range v.Steps {
		if role, ok := o.prog.Workflow.RoleNamed(st.Role); ok {
			st.Action = role.Action
		}
		if err := b.record(st); err != nil {
			return err
		}
	}
	for _, w := range s.Waiting() {
		x := WaitingView{Step: w.Step.String(), Kind: w.Kind, Choices: w.Choices}
		if x.Question, err = textOf(b.read, w.Question); err != nil {
			return err
		}
		form, err := textOf(b.read, w.Form)
		if err != nil {
			return err
		}
		x.Form = protocol.JSON(form)
		if w.Due > 0 {
			at := stamp(w.Due)
			x.Due = &at
		}
		v.Waiting = append(v.Waiting, x)
	}
	if s.Result().Defined() {
		var r protocol.Result
		if err := decode(b.read, s.Result(), &r); err != nil {
			return err
		}
		if r.Outputs.Defined() {
			if v.Outputs, err = protocol.PayloadBytes(b.read, r.Outputs); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *viewer) info(s *State) error {
	i := s.Info
	b.v.Info = InfoView{Title: i.Title, Type: i.Type, Scope: i.Scope, Tags: i.Tags, CreatedBy: i.CreatedBy,
		TargetUser: i.TargetUser, RequestID: i.RequestID, Workspace: i.Workspace, File: i.File, Parent: i.Parent, ForkedFrom: text(i.Forked)}
	b.v.Info.Inputs = s.begun.raw
	var err error
	b.v.Info.Description, err = textOf(b.read, i.Description)
	return err
}

// open says where a visit stands that has not ended. In a run that has stopped nothing runs.
func (b *viewer) open(x *visit, stopped bool) {
	st := b.steps[x.id.String()]
	if st == nil {
		return
	}
	st.Status = map[mode]string{runs: "running", ready: "running", waits: "waiting", retries: "retrying", parked: "parked"}[x.mode]
	if stopped && (x.mode != waits || b.v.Status.Final()) {
		st.Status = "parked"
	}
	if st.record.Defined() { // a failed visit that is tried again
		st.record = protocol.Link{}
	}
	if x.mode == parked && x.lastErr != "" {
		st.Error = &protocol.ErrorInfo{Code: "suspended", Phase: string(st.Action), Message: x.lastErr}
	}
}

func (b *viewer) record(st *StepView) error {
	if !st.record.Defined() {
		return nil
	}
	st.CID = text(st.record)
	p, err := loadPast(&b.e.lib, b.read, st.record)
	if err != nil {
		return err
	}
	st.Status, st.Text, st.Error = string(p.Status), p.Text, p.Error
	if p.Data != nil {
		st.Output = p.Data
	}
	return nil
}

func text(l protocol.Link) *string {
	if !l.Defined() {
		return nil
	}
	s := l.String()
	return &s
}

func stamp(us int64) string {
	e := protocol.Event{TS: us}
	return e.Time().Format("2006-01-02T15:04:05.000000Z07:00")
}
