package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"wf/api"
	"wf/engine/rules"
	"wf/protocol"
)

// View reads a whole run.
func (e *Engine) View(ctx context.Context, run protocol.RunID) (*api.Run, error) {
	return e.ViewWindow(ctx, run, api.Window{})
}

// ViewWindow reads a run with some of its steps. What it costs depends on the events since these
// steps began and on their number, and not on the length of the run; a run as it was is folded from
// its beginning. Where steps are chosen by their states or role, all events are read, and of the steps only those that
// are shown.
func (e *Engine) ViewWindow(ctx context.Context, run protocol.RunID, w api.Window) (*api.Run, error) {
	s, p, sums, err := e.windowOf(ctx, run, w)
	if err != nil {
		return nil, err
	}
	p.most = w.Bytes
	b, err := e.viewer(ctx, run, s, p, false)
	if err == nil {
		err = b.kin(ctx)
	}
	if err == nil {
		err = b.because(ctx)
	}
	if err == nil && w.At == 0 { // what was cannot be mended
		err = b.mends(ctx)
	}
	if err != nil {
		return nil, err
	}
	if n := len(b.v.Steps); n < s.Totals.Steps {
		b.v.Total, b.v.Earlier = s.Totals.Steps, cmp.Or(b.cut, p.earlier)
		b.v.Roles, b.v.Ways = s.Roles(), s.Ways()
	}
	b.v.Matching, b.v.Fans = sums.matching, sums.fans
	return b.v, nil
}

// windowOf is a state with the steps that are to be read, and where those are chosen with what there is in all.
func (e *Engine) windowOf(ctx context.Context, run protocol.RunID, w api.Window) (s *rules.State, p page, x sums, err error) {
	if w.Chooses() || w.Fold > 0 {
		return e.chosen(ctx, run, w)
	}
	if s, err = e.stateAt(ctx, run, w.At); err == nil {
		p, err = e.page(ctx, run, s, w)
	}
	return s, p, x, err
}

// stateAt is the state after an event, that of now where at is 0.
func (e *Engine) stateAt(ctx context.Context, run protocol.RunID, at protocol.Seq) (*rules.State, error) {
	if at == 0 {
		return e.State(ctx, run)
	}
	s, err := rules.Fold(e.records(ctx), upTo(e.Store.After(ctx, run, 0), at))
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", run, err)
	}
	return s, nil
}

// StateAt is the state of a run after an event; 0 is its newest.
func (e *Engine) StateAt(ctx context.Context, run protocol.RunID, at protocol.Seq) (*rules.State, error) {
	return e.stateAt(ctx, run, at)
}

// ViewStep reads a run with one of its steps alone, where it has it, and without Mend. What it costs
// depends on the events since that step began.
func (e *Engine) ViewStep(ctx context.Context, run protocol.RunID, step string) (*api.Run, error) {
	s, err := e.State(ctx, run)
	if err != nil {
		return nil, err
	}
	p, err := e.pageWith(ctx, run, s, step)
	if err != nil {
		return nil, err
	}
	b, err := e.viewer(ctx, run, s, p, false)
	if err != nil {
		return nil, err
	}
	b.v.Total = s.Totals.Steps
	return b.v, nil
}

// Outline reads a whole run without the records of its steps: edge prompts, texts, outputs and
// errors are left out, and Mend is.
func (e *Engine) Outline(ctx context.Context, run protocol.RunID) (*api.Run, error) {
	s, err := e.State(ctx, run)
	if err != nil {
		return nil, err
	}
	b, err := e.viewer(ctx, run, s, page{first: 1}, true)
	if err != nil {
		return nil, err
	}
	return b.v, nil
}

// viewer reads the steps of a page; a brief one without what their records and texts hold.
func (e *Engine) viewer(ctx context.Context, run protocol.RunID, s *rules.State, p page, brief bool) (*viewer, error) {
	b := &viewer{e: e, read: e.reader(ctx), s: s, brief: brief, most: p.most, only: p.steps, steps: map[string]*shown{}, unsettled: map[string]string{}, named: map[string][]protocol.RunID{},
		v: &api.Run{Schema: api.RunSchema, ID: run, Steps: []*api.Step{}, Outputs: protocol.JSON("{}")}}
	b.read = b.counting(b.read)
	if err := b.all(ctx, p); err != nil {
		return nil, fmt.Errorf("run %s: %w", run, err)
	}
	return b, nil
}

// all reads what is to be shown of a page.
func (b *viewer) all(ctx context.Context, p page) error {
	newest, err := b.e.entry(ctx, b.v.ID, b.s.Seq)
	if err != nil {
		return err
	}
	b.v.Head, b.v.Seq, b.v.Updated, b.v.Started = newest.CID.String(), newest.Seq, stamp(newest.TS), stamp(b.s.Info.Started)
	b.updated = newest.TS
	spans := p.spans
	if spans == nil {
		spans = []span{{p.first, b.s.Seq}}
	}
	for _, part := range spans {
		if err := b.part(ctx, part); err != nil {
			return err
		}
	}
	if err := b.finish(ctx); err != nil {
		return err
	}
	b.v.Driving = b.e.Driving(ctx, b.v.ID, b.s)
	b.v.Queue = b.e.QueueOf(ctx, b.v.ID, b.s)
	for _, st := range b.v.Steps {
		if st.Queue = b.e.stepQueue(ctx, b.v.ID, b.s, st.ID); st.Queue != nil {
			st.Status = string(protocol.Queued)
		}
	}
	h, err := b.e.Store.Head(ctx, protocol.RunHead(b.v.ID))
	if err != nil {
		return err
	}
	b.v.Foreign = b.e.Foreign(ctx, h, b.s)
	return nil
}

// part reads events, until nothing that is shown can change.
func (b *viewer) part(ctx context.Context, part span) error {
	for x, err := range upTo(b.e.Store.After(ctx, b.v.ID, part.first-1), part.last) {
		if err == nil {
			err = b.event(ctx, x)
		}
		if err != nil || b.settled() {
			return err
		}
	}
	return nil
}

// mostForks is how many forks of a run a view names.
const mostForks = 100

// kin names the runs that share events with this one.
func (b *viewer) kin(ctx context.Context) error {
	base, shared, err := b.e.Store.Base(ctx, b.v.ID)
	if err != nil {
		return err
	}
	if base != "" {
		b.v.Info.ForkOf = &api.ForkPoint{Run: base, Seq: shared}
	}
	forks, err := b.e.Store.Forks(ctx, b.v.ID)
	if err != nil {
		return err
	}
	for _, f := range forks[:min(len(forks), mostForks)] {
		b.v.Forks = append(b.v.Forks, api.ForkPoint{Run: f.Run, Seq: f.Seq})
	}
	return nil
}

// viewer makes a View.
type viewer struct {
	e    *Engine
	read Reader
	s    *rules.State
	v    *api.Run

	brief bool            // without what records and texts hold
	most  int             // Window.Bytes
	cut   protocol.Seq    // the step_started of the first step that is shown, where older ones would be too much
	only  map[string]bool // the steps wanted; nil is all
	steps map[string]*shown
	// unsettled are the wanted steps that later events may change, with the record of one that
	// has failed: it may be tried again until another step goes on from it.
	unsettled map[string]string
	named     map[string][]protocol.RunID // of sub-workflows, by step; its own one first
	last      string                      // step that was completed last
	updated   int64                       // when the newest event was, in unix µs

	plain    Reader // read without counting
	gathered int64  // bytes of texts that were read
	counted  bool   // so are those of all steps
}

// shown is a step with what its record will say.
type shown struct {
	*api.Step
	prompt    protocol.Text
	record    protocol.Link
	concluded protocol.StepStatus // as the event says that names the record; "" in old journals
}

// settled reports whether no later event can change the steps that are wanted.
func (b *viewer) settled() bool {
	return b.only != nil && len(b.v.Steps) == len(b.only) && len(b.unsettled) == 0
}

func (b *viewer) event(ctx context.Context, x protocol.Entry) error {
	step := x.StepName()
	st := b.steps[step]
	if st == nil && x.Type != protocol.EvStepStarted {
		return nil
	}
	d, err := dataOf(&x, protocol.EvStepStarted, protocol.EvCompacted, protocol.EvCorrection, protocol.EvUsage, protocol.EvAttemptFailed, protocol.EvStepCompleted,
		protocol.EvReused, protocol.EvNotReused, protocol.EvNotStored)
	if err != nil {
		return err
	}
	switch d := d.(type) {
	case nil:
		if x.Type == protocol.EvToolCall {
			st.ToolCalls++
		}
	case protocol.StepStarted:
		if err := b.started(x, d); err != nil {
			return err
		}
	case protocol.Compacted:
		return b.compacted(x, d, st.Step)
	case protocol.Reused, protocol.NotReused, protocol.NotStored:
		return b.reuse(d, st.Step)
	case protocol.Correction:
		reasons, err := textOf(b.read, d.Reasons)
		st.Corrections = append(st.Corrections, reasons)
		return err
	case protocol.Usage:
		st.Usage.Add(d)
		if d.Kind == protocol.UsageTurn && d.Child == nil {
			st.CutOff = d.Stop == protocol.StopLength
		}
		st.Attempts[len(st.Attempts)-1].Usage.Add(d)
	case protocol.AttemptFailed:
		a := &st.Attempts[len(st.Attempts)-1]
		a.Error = &d.Error
		if d.RetryAt > 0 {
			a.RetryAt = new(stamp(d.RetryAt))
		}
	case protocol.StepCompleted:
		b.last = step
		st.record, st.concluded, st.MS, st.Workspace, st.Ended = d.Record, d.Status, st.MS+d.MS, d.Workspace, x.Seq
		if d.Status == protocol.StepOK || d.Status == protocol.StepSkipped {
			delete(b.unsettled, step)
		} else {
			b.unsettled[step] = d.Record.String()
		}
	}
	if b.steps[step] == nil {
		return nil
	}
	child, err := b.e.childNamed(ctx, b.v.ID, d)
	if err == nil && child != "" && !slices.Contains(b.named[step], child) {
		b.named[step] = append(b.named[step], child)
	}
	return err
}

func (b *viewer) started(x protocol.Entry, d protocol.StepStarted) (err error) {
	if b.only != nil {
		b.goesOn(d.Parents)
	}
	step := x.StepName()
	if b.only != nil && !b.only[step] {
		return nil
	}
	st := b.steps[step]
	if st == nil {
		st = &shown{Step: &api.Step{ID: step, Role: d.Role, Visit: d.Visit, Status: "running", Edge: d.Edge, Via: d.Via,
			Parents: []string{}, Output: protocol.JSON("{}"), Resumes: text(d.Resumes), Began: x.Seq}}
		for _, p := range d.Parents {
			st.Parents = append(st.Parents, p.String())
		}
		if d.Item != nil {
			st.Item = &d.Item.Index
		}
		st.prompt = d.EdgePrompt
		b.steps[st.ID] = st
		b.v.Steps = append(b.v.Steps, st.Step)
	}
	b.unsettled[step] = ""
	st.Ended = 0
	st.Tools, st.Inject = d.Tools, d.Inject
	if n := len(st.Attempts); n == 0 || st.Attempts[n-1].Attempt != d.Attempt {
		st.Attempts = append(st.Attempts, api.Attempt{Attempt: d.Attempt, Started: stamp(x.TS)})
	}
	return nil
}

// goesOn settles failed steps that another one goes on from.
func (b *viewer) goesOn(parents []protocol.Link) {
	maps.DeleteFunc(b.unsettled, func(_, record string) bool {
		return record != "" && slices.ContainsFunc(parents, func(p protocol.Link) bool { return p.String() == record })
	})
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

// finish adds what the state and the records say.
func (b *viewer) finish(ctx context.Context) error {
	v, s := b.v, b.s
	o, err := b.e.lib.open(s.Start, b.read)
	if err != nil {
		return err
	}
	v.Workflow, v.Definition = o.Program.Workflow.Name, o.Start.Workflow.String()
	v.Status, v.Reason, v.Suspended, v.Code, v.Result = s.Status(), s.Reason(), s.SuspendedBy(), s.Code(), text(s.Result())
	if v.CleanupFailed = s.CleanupFailed(); s.Closes() {
		v.Closing = s.Closing.Status
	}
	v.Usage, v.Timing = s.Totals.Reported, timingOf(s.Times())
	v.Spent, v.Scripted = api.SpentOf(v.Status, s.Info.Started, b.updated, s.Totals.Active), s.Totals.Scripted
	v.Reuse = reuses(v.Steps, s.Totals)
	if cost, _ := b.e.Cost(s.Totals); cost != nil {
		v.CostUSD = new(float64(*cost) / 1e12)
	}
	if err := b.info(); err != nil {
		return err
	}
	if v.Status == protocol.Done {
		v.Leftovers = s.Lacking()
	}
	for x := range s.Visits() {
		b.open(x)
	}
	size := 0
	for i, st := range slices.Backward(v.Steps) {
		if role, ok := o.Program.Workflow.RoleNamed(st.Role); ok {
			st.Action = role.Action
		}
		if err := b.texts(b.steps[st.ID]); err != nil {
			return err
		}
		more := len(st.EdgePrompt) + len(st.Text) + len(st.Output)
		if err := b.room(int64(more)); err != nil {
			return err
		}
		size += more
		if b.most > 0 && size > b.most && i+1 < len(v.Steps) {
			v.Steps = v.Steps[i+1:]
			b.cut = v.Steps[0].Began
			break
		}
	}
	if err := b.children(ctx); err != nil {
		return err
	}
	if err := b.waiting(); err != nil || !s.Result().Defined() {
		return err
	}
	v.Outputs, err = outputsOf(b.read, s.Result())
	return err
}

func (b *viewer) waiting() error {
	for _, w := range b.s.Waiting() {
		x := WaitingOf(w)
		var err error
		if x.Question, err = textOf(b.read, w.Question); err != nil {
			return err
		}
		form, err := textOf(b.read, w.Form)
		if err != nil {
			return err
		}
		x.Form = protocol.JSON(form)
		b.v.Waiting = append(b.v.Waiting, x)
	}
	return nil
}

// WaitingOf is a visit that waits as it is shown, without what has to be read of it: a question above the
// length of an event, and a form.
func WaitingOf(w rules.WaitingVisit) api.Waiting {
	x := api.Waiting{Step: w.Step.String(), Kind: w.Kind, Question: w.Question.S, Choices: w.Choices, Shown: w.Shown,
		OnTimeout: w.OnTimeout, Assignees: w.Assignees, Escalated: w.Escalated}
	if w.Due > 0 {
		x.Due = new(stamp(w.Due))
	}
	for _, at := range w.Remind {
		x.Remind = append(x.Remind, stamp(at))
	}
	return x
}

func (b *viewer) info() error {
	i := b.s.Info
	b.v.Info = api.RunInfo{Title: i.Title, Type: i.Type, Scope: i.Scope, Tags: i.Tags, CreatedBy: i.CreatedBy, ClaimedBy: i.ClaimedBy,
		TargetUser: i.TargetUser, RequestID: i.RequestID, Workspace: i.Workspace, File: i.File, Parent: i.Parent, ForkedFrom: text(i.Forked), Trigger: i.Trigger, CausedBy: i.CausedBy}
	b.v.Info.Inputs = b.s.Opened().Raw
	if b.e.elsewhere(b.s) {
		b.v.Info.Machine = i.Machine
	}
	var err error
	b.v.Info.Description, err = textOf(b.read, i.Description)
	return err
}

// open says where a visit stands that has not ended.
func (b *viewer) open(x rules.Visit) {
	st := b.steps[x.Step.String()]
	if st == nil || x.Mode == rules.Ended {
		return
	}
	st.Status = b.s.Shown(x.Mode, x.Begun.Via)
	if x.Held != nil && st.Status == "running" {
		st.Held = x.Held.String()
	}
	st.record = protocol.Link{} // else of a failed visit that is tried again
	if x.Mode == rules.Parked && x.Error != "" {
		st.Error = &protocol.ErrorInfo{Code: "suspended", Phase: string(st.Action), Message: x.Error}
	}
}

// texts reads the edge prompt of a step, and what its record holds.
func (b *viewer) texts(st *shown) (err error) {
	if !b.brief {
		if st.EdgePrompt, err = textOf(b.read, st.prompt); err != nil {
			return err
		}
	}
	if !st.record.Defined() {
		return nil
	}
	st.CID = text(st.record)
	if b.brief && st.concluded != "" { // else its record was written by an old wf: it says so alone
		st.Status = string(st.concluded)
		return nil
	}
	p, err := loadPast(&b.e.lib, b.read, st.record)
	if err != nil {
		return err
	}
	st.Status, st.Text, st.Error, st.Artifacts = string(p.Status), p.Text, p.Error, text(p.Artifacts)
	if p.Data != nil {
		st.Output = p.Data
	}
	return nil
}

// text is a CID as it is shown; nil for none.
func text(l protocol.Link) *string {
	if !l.Defined() {
		return nil
	}
	return new(l.String())
}

// stamp is a time in µs as it is shown, RFC 3339 in UTC.
func stamp(us int64) string {
	e := protocol.Event{TS: us}
	return e.Time().Format("2006-01-02T15:04:05.000000Z07:00")
}

// timingOf is what the times of a run amount to.
func timingOf(sum rules.Times) api.Timing {
	t := api.Timing{TotalMS: sum.Total / 1000, TTFEMS: sum.TTFE / 1000, ToolsMS: sum.Tools / 1000, ToolCalls: sum.Calls}
	t.ThinkingMS = t.TotalMS - t.TTFEMS - t.ToolsMS
	if t.TotalMS > 0 {
		t.TTFEPct = (t.TTFEMS*100 + t.TotalMS/2) / t.TotalMS
		t.ToolsPct = min((t.ToolsMS*100+t.TotalMS/2)/t.TotalMS, 100-t.TTFEPct)
		t.ThinkingPct = 100 - t.TTFEPct - t.ToolsPct
	}
	return t
}
