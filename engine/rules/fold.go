package rules

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"

	"wf/engine/lang"
	"wf/protocol"
)

// Fold reads a journal from its first event. The definition is the one that run_started and
// forked pin. An empty journal is an error wrapping protocol.ErrUnknownRun, one that the rules cannot
// have written one wrapping protocol.ErrCorrupt; others are those of events and of from.
func Fold(from Records, events iter.Seq2[protocol.Entry, error]) (*State, error) {
	s := New(from)
	if err := s.FoldMore(events); err != nil {
		return nil, err
	}
	if s.Seq == 0 {
		return nil, fmt.Errorf("an empty journal: %w", protocol.ErrUnknownRun)
	}
	return s, nil
}

// FoldMore goes on with the events that follow s.Seq; its errors are those of Fold.
func (s *State) FoldMore(events iter.Seq2[protocol.Entry, error]) error {
	for e, err := range events {
		if err != nil {
			return err
		}
		if e.Seq != s.Seq+1 {
			return fmt.Errorf("event %d follows event %d: %w", e.Seq, s.Seq, protocol.ErrCorrupt)
		}
		d, err := s.decode(e.Event)
		if err != nil {
			return fmt.Errorf("event %d (%s): %w", e.Seq, e.Type, err)
		}
		if err := s.Apply(e.StepName(), e.Seq, e.TS, e.Type, d); err != nil {
			return fmt.Errorf("event %d (%s): %w", e.Seq, e.Type, err)
		}
	}
	return nil
}

// moves are the event types that move a State; the others are not decoded when folding.
var moves = map[protocol.EventType]bool{protocol.EvRunStarted: true, protocol.EvStepStarted: true, protocol.EvStepCompleted: true,
	protocol.EvAttemptFailed: true, protocol.EvWaiting: true, protocol.EvAnswered: true, protocol.EvApproval: true, protocol.EvMessage: true, protocol.EvReminded: true, protocol.EvEscalated: true, protocol.EvUsage: true, protocol.EvHeld: true, protocol.EvReleased: true, protocol.EvSuspended: true,
	protocol.EvQueued: true, protocol.EvAdmitted: true, protocol.EvGroupWaiting: true, protocol.EvGroupEntered: true,
	protocol.EvCompacted: true, protocol.EvCompactionAsked: true, protocol.EvCancelled: true, protocol.EvLimitChanged: true, protocol.EvForked: true, protocol.EvDone: true,
	protocol.EvClosing: true, protocol.EvClosingSkipped: true, protocol.EvCancelAsked: true, protocol.EvFilesTracked: true,
	protocol.EvFilesLaid: true, protocol.EvOwnCopy: true, protocol.EvReused: true, protocol.EvNotReused: true}

func (s *State) decode(e protocol.Event) (protocol.Data, error) {
	if !moves[e.Type] {
		return nil, nil
	}
	return s.from.Data(e)
}

// New is the state before the first event.
func New(from Records) *State {
	s := &State{from: from, ways: map[protocol.Way]int{}, vals: map[protocol.Link]*lang.Step{}, lists: map[*ref]*lang.Step{}, filed: map[*ref]*lang.Step{}}
	s.Nums, s.Fates, s.NextN = map[string]int{}, map[string]protocol.StepStatus{}, startNode
	s.reindex()
	return s
}

// Apply moves the state by one event that follows s.Seq; d is what its Records decode it to, with long
// texts as links. After an error the state is of no use.
func (s *State) Apply(step string, seq protocol.Seq, ts int64, typ protocol.EventType, d protocol.Data) error {
	if s.Seq == 0 && typ != protocol.EvRunStarted {
		return fmt.Errorf("a journal must begin with run_started: %w", protocol.ErrCorrupt)
	}
	s.count(ts, typ, d)
	if typ != protocol.EvStepStarted {
		s.clock(step, ts, typ, d)
	}
	if err := s.move(step, seq, ts, typ, d); err != nil {
		return err
	}
	if typ == protocol.EvStepStarted {
		s.clock(step, ts, typ, d)
	}
	s.Seq, s.TS = seq, max(ts, s.TS)
	s.Active = !s.Stopped && (s.working() || s.Closing != nil && s.agenda.always.pending())
	return nil
}

func (s *State) move(step string, seq protocol.Seq, ts int64, typ protocol.EventType, d protocol.Data) error {
	switch typ {
	case protocol.EvResumed:
		return s.resume()
	case protocol.EvAnswered, protocol.EvTimerFired:
		v, _, err := s.visitNamed(step)
		if err != nil {
			return err
		}
		if v.Mode == Waits {
			s.to(v, Ready, 0)
		}
		if a, ok := d.(protocol.Answered); ok {
			return s.taken(step, a.Messages)
		}
		return nil
	}
	if err := s.inClosing(step, d); err != nil {
		return err
	}
	switch d := d.(type) {
	case protocol.RunStarted:
		return s.begin(d, ts)
	case protocol.StepStarted:
		return s.stepStarted(step, seq, d)
	case protocol.StepCompleted:
		return s.stepCompleted(step, d)
	case protocol.OwnCopy:
		_, a, err := s.visitNamed(step)
		if err != nil {
			return err
		}
		if !a.Base.Defined() {
			a.Base = d.Base
		}
	case protocol.AttemptFailed:
		v, _, err := s.visitNamed(step)
		if err != nil {
			return err
		}
		s.Totals.Attempts++
		v.LastErr, v.LastCode, v.Anew, v.Keeps, v.Reused = d.Error.Message, "", true, d.Keeps, false
		if v.of.Via == protocol.ViaAlways && s.Closing != nil {
			s.Closing.Last = d.Error
		}
		if d.RetryAt > 0 {
			s.to(v, Retries, d.RetryAt)
		} else {
			s.to(v, Parked, 0)
		}
	case protocol.QueuedFor:
		s.leads(seq)
		s.Queue = &d
	case protocol.AdmittedTo:
		s.leads(seq)
		s.Queue = nil
	case protocol.FilesTracked:
		s.leads(seq)
		s.Tracked = &d
	case protocol.FilesLaid:
		s.leads(seq)
		s.Info.Place = s.Info.StartedIn()
		s.Info.Workspace, s.Info.Machine = d.Workspace, d.Machine
	case protocol.GroupWaiting:
		if _, _, err := s.visitNamed(step); err != nil {
			return err
		}
		if s.InLine == nil {
			s.InLine = map[string]protocol.GroupWaiting{}
		}
		s.InLine[step] = d
	case protocol.GroupEntered:
		delete(s.InLine, step)
	case protocol.CompactionAsked:
		s.Compact = true
	case protocol.Approval:
		if d.For == protocol.ForRun && d.Shown != "" && s.Allowed[d.Shown] == "" {
			if s.Allowed == nil {
				s.Allowed = map[string]string{}
			}
			s.Allowed[d.Shown] = d.By
		}
	case protocol.MessageIn:
		s.Inbox = append(s.Inbox, d)
	case protocol.WaitingFor:
		v, a, err := s.visitNamed(step)
		if err != nil {
			return err
		}
		s.list(v, false)
		v.Waiting, v.Question, v.Choices, v.Form, v.Shown = d.Kind, d.Question, d.Choices, d.Form, d.Shown
		v.asked(d, ts)
		if role, ok := s.prog.Workflow.RoleNamed(a.Role); ok && role.Action == protocol.ActWorkflow {
			v.Escalated = d.Escalated
		}
		s.list(v, true)
		s.to(v, Waits, d.Due)
	case protocol.Reminded:
		return s.awaits(step, func(v *visit) { v.Reminded = max(v.Reminded, min(d.N, len(v.Remind))) })
	case protocol.Escalated:
		return s.awaits(step, func(v *visit) {
			v.Escalated, v.Assignees, v.Due, v.Remind, v.Reminded = d.N, d.Assignees, d.Due, d.Remind, 0
		})
	case protocol.Usage:
		s.Totals.add(d)
		s.measured(step, d)
		s.learnt(d)
	case protocol.Reused:
		return s.reused(step, &d)
	case protocol.NotReused:
		return s.reused(step, nil)
	case protocol.Held:
		return s.heldBack(step, &d)
	case protocol.Released:
		return s.heldBack(step, nil)
	case protocol.Compacted:
		return s.compacted(step, d)
	case protocol.SuspendedBy:
		if step != "" { // one visit cannot go on; the others may
			v, _, err := s.visitNamed(step)
			if err != nil {
				return err
			}
			v.LastErr, v.LastCode = s.words(d.Detail), d.Code
			s.to(v, Parked, 0)
			return nil
		}
		s.Queue = nil
		s.stop = stop{Stopped: true, Status: protocol.Suspended, Reason: d.Reason, Detail: s.words(d.Detail), Code: d.Code}
	case protocol.CancelledBy:
		s.Queue = nil
		s.stop = stop{Stopped: true, Status: protocol.Cancelled, Detail: d.Reason}
	case protocol.Closing:
		return s.closes(d)
	case protocol.CancelAsked:
		s.Closing.Asked = true
	case protocol.ClosingSkipped:
		s.skip(d)
	case protocol.LimitChanged:
		s.Limits = Raised(s.Limits, d)
	case protocol.Forked:
		return s.forked(d)
	case protocol.Finished:
		s.stop, s.End = stop{Stopped: true, Status: d.Status}, d.Result
	}
	return nil
}

func (s *State) begin(d protocol.RunStarted, ts int64) error {
	o, err := s.from.Open(d.Start)
	if err != nil {
		return err
	}
	s.Info = Info{RunStarted: d, Started: ts}
	s.Start, s.prog, s.begun, s.Limits = d.Start, o.Program, o, o.Program.Workflow.Limits
	s.Limits.Steps = cmp.Or(s.Limits.Steps, protocol.DefaultSteps)
	first := &act{latest: map[string]*ref{}, convs: map[string]*conversations{},
		storedAct: storedAct{N: startNode, Role: protocol.NodeStart, Edge: noEdge, Links: []protocol.Link{d.Start}, Of: -1,
			Edges: make([]int, len(o.Program.Workflow.Edges)), Entries: map[string]int{}}}
	first.offer = first.token(false, s.equalItems())
	s.acts = nil
	s.reindex()
	s.enter(first)
	s.NextN = startNode + 1
	return nil
}

// leads notes an event of a group that comes before anything has happened.
func (s *State) leads(seq protocol.Seq) {
	if s.Fresh() {
		s.Lead = seq
	}
}

// Fresh reports whether nothing has happened in the run but that it began and waited for its turn.
func (s *State) Fresh() bool { return s.Seq == max(1, s.Lead) }

// taken takes the oldest n messages out of the inbox.
func (s *State) taken(step string, n int) error {
	if n < 0 || n > len(s.Inbox) {
		return fmt.Errorf("%s reads %d messages, %d waited: %w", step, n, len(s.Inbox), protocol.ErrCorrupt)
	}
	s.Inbox = s.Inbox[n:]
	return nil
}

// stepStarted begins a visit, or another attempt of one.
func (s *State) stepStarted(step string, seq protocol.Seq, d protocol.StepStarted) error {
	id, err := protocol.ParseStepID(step)
	if err != nil {
		return err
	}
	a := s.sameFiring(d)
	if a == nil {
		if a, err = s.activate(id, d); err != nil {
			return err
		}
	}
	i := max(0, id.Index)
	if a.batch() && d.Item == nil {
		i = 0 // the one record of an empty fan-out
	}
	if i >= a.size() {
		return fmt.Errorf("%s of a fan-out of %d: %w", id, a.Of, protocol.ErrCorrupt)
	}
	for len(a.visits) <= i {
		a.visits = append(a.visits, nil)
	}
	v := a.visits[i]
	if v == nil {
		v = &visit{storedVisit{Index: id.Index, Number: d.Visit, Item: d.Item, Resumes: d.Resumes, Prompt: d.EdgePrompt, First: seq}, a, seq}
		a.visits[i] = v
		s.dispatched(v)
		s.Totals.Steps++
	} else {
		v.Again = true
		s.to(v, Runs, 0)
	}
	if d.Attempt > v.Attempt {
		if !v.Keeps {
			v.Size, v.Escalated = 0, 0
		}
		if a.Via == protocol.ViaAlways && s.Closing != nil {
			s.Closing.Attempts++
		}
	}
	v.Tools, v.Inject, v.Preparing, v.last = d.Tools, d.Inject, d.Preparing, seq
	if err := s.taken(step, d.Messages); err != nil {
		return err
	}
	v.Told = v.Told || d.Messages > 0
	if d.Compact {
		s.Compact, v.Compact = false, true
	}
	v.Attempt, v.Anew, v.LastErr, v.LastCode = d.Attempt, false, "", ""
	return nil
}

// sameFiring finds the activation that d is a further item or attempt of.
func (s *State) sameFiring(d protocol.StepStarted) *act {
	for _, a := range slices.Backward(s.agenda.open) {
		if a.Role == d.Role && a.Edge == d.Edge && a.Via == d.Via && sameLinks(a.Links, d.Parents) {
			return a
		}
	}
	return nil
}

// sameLinks is slices.Equal, quick for what is the same in memory.
func sameLinks(a, b []protocol.Link) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b))
}

// activate opens the activation that d begins and takes the tokens it consumes.
func (s *State) activate(id protocol.StepID, d protocol.StepStarted) (*act, error) {
	if d.Via == protocol.ViaAlways {
		return s.activateAlways(id, d)
	}
	if d.Edge < 0 || d.Edge >= len(s.prog.Workflow.Edges) {
		return nil, fmt.Errorf("%s names edge %d, the definition has %d: %w", id, d.Edge, len(s.prog.Workflow.Edges), protocol.ErrCorrupt)
	}
	e := &s.prog.Workflow.Edges[d.Edge]
	sources, err := s.sources(e, d.Parents)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", id, err)
	}
	f := firing{edge: d.Edge, sources: sources}
	up, err := s.ancestry(sources)
	if err != nil {
		return nil, err
	}
	a := &act{latest: up.latest, convs: up.convs,
		storedAct: storedAct{N: s.NextN, Take: s.NextN, Role: d.Role, Num: id.N, Edge: d.Edge, Via: d.Via, Links: d.Parents, Of: -1,
			Entries: maps.Clone(up.entries), Edges: slices.Clone(up.edges)}}
	if e.ForEach != "" && d.Via != protocol.ViaLimit {
		a.Of = d.Of
	}
	a.left = a.size()
	for _, p := range sources {
		a.Parents = append(a.Parents, p.N)
	}
	if twin := s.twin(a); twin != nil {
		a.Take = twin.Take
	}
	a.Entries[a.Role]++
	if a.Via != protocol.ViaLimit {
		a.Edges[a.Edge]++
	}
	if err := s.settle(f, d.Role); err != nil {
		return nil, fmt.Errorf("%s: %w", id, err)
	}
	s.enter(a)
	s.NextN++
	s.Nums[a.Role] = max(s.Nums[a.Role], id.N)
	s.entered(a)
	return a, nil
}

// twin is an activation of the same firing: to: [a, b].
func (s *State) twin(a *act) *act {
	for i := len(s.acts) - 1; i >= 0; i-- {
		b := s.acts[i]
		if b.Edge == a.Edge && slices.Equal(b.Parents, a.Parents) && sameLinks(b.Links, a.Links) {
			return b
		}
		if len(a.Parents) > 0 && b.N <= a.Parents[0] {
			return nil
		}
	}
	return nil
}

// sources finds the completed activations with these links as records, in the order of e.From.
func (s *State) sources(e *protocol.Edge, links []protocol.Link) ([]*act, error) {
	var out []*act
	rest := links
	for _, role := range e.From {
		var found *act
		for _, a := range slices.Backward(s.agenda.tokens) {
			if a.Role == role && hasPrefix(rest, a.records()) {
				found = a
				break
			}
		}
		if found == nil {
			return nil, fmt.Errorf("no open token of %s fits its parents: %w", role, protocol.ErrCorrupt)
		}
		out = append(out, found)
		rest = rest[len(found.records()):]
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("%d parents too many: %w", len(rest), protocol.ErrCorrupt)
	}
	return out, nil
}

func hasPrefix(l, prefix []protocol.Link) bool {
	return len(prefix) <= len(l) && sameLinks(l[:len(prefix)], prefix)
}

func (s *State) stepCompleted(step string, d protocol.StepCompleted) error {
	v, a, err := s.visitNamed(step)
	if err != nil {
		return err
	}
	again := v.Record.Defined() // it had failed, and was tried again
	v.Record, v.Status, v.Kept = d.Record, d.Status, d.Artifacts
	if v.Prompt.Link.Defined() {
		v.Prompt.S = "" // see wholePrompt
	}
	if v.Status == "" {
		r, err := s.from.Step(d.Record)
		if err != nil {
			return err
		}
		v.Status = r.Status
	}
	if !again {
		s.counted(v)
	}
	s.to(v, Ended, 0)
	if a.Num == s.Nums[a.Role] {
		s.Fates[a.Role] = v.Status
	}
	switch {
	case a.Via == protocol.ViaAlways:
		s.cleaned(v)
	case !a.open():
		s.complete(a)
	}
	return nil
}

// resume lets everything that was parked try again. A token that a bound has parked passes
// that bound once: a person said so. In a run that was cut off or interrupted no bound is lifted.
func (s *State) resume() error {
	stopped := s.stop.Reason
	s.stop = stop{}
	if s.Closing != nil { // nothing of the graph goes on
		return nil
	}
	if stopped == protocol.ByLimit || stopped == protocol.ByError {
		for _, f := range s.firings() {
			if f.parked() {
				for _, a := range f.sources {
					a.offer.grant(f.part)
				}
			}
		}
	}
	for _, v := range slices.Clone(s.due().visits[Parked]) {
		s.to(v, Ready, 0)
	}
	for _, a := range slices.Clone(s.agenda.tokens) {
		if !a.offer.failed || len(a.offer.taken) > 0 {
			continue
		}
		a.offer.route = nil
		if !s.routed(a).dead || a.Edge == noEdge { // that leads there no more, under another definition
			continue
		}
		s.offers(a, nil)
		for _, v := range a.visits {
			if v.Status == protocol.StepFailed {
				s.to(v, Ready, 0)
			}
		}
	}
	return nil
}
