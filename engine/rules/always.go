package rules

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"wf/engine/lang"
	"wf/protocol"
)

// A run whose definition has always roles does not end when its verdict stands: it closes.
//
//	verdict ──► closing ──► cleanup#1 ──► report#1 ──► done, failed or cancelled
//	               └──────── closing_skipped ────────────┘
//
// From then on nothing of the graph moves. The roles are visited in declared order, each once, whether the one before it
// succeeded or not. Their records go on from what the graph had concluded, and nothing of the graph goes on from them. A fork
// goes on with the graph, and closes by itself.

// closing is where the always roles of a run are.
type closing struct {
	protocol.Closing
	Active   int64                    `cbor:"active"`   // Totals.Active when it began
	Begun    int                      `cbor:"begun"`    // roles
	Newest   int                      `cbor:"newest"`   // activation of the last of them, 0 is none
	Attempts int                      `cbor:"attempts"` // of all roles
	Last     protocol.ErrorInfo       `cbor:"last"`     // of the newest attempt that failed
	Failed   []protocol.CleanupFailed `cbor:"failed,omitempty"`
	Skipped  bool                     `cbor:"skipped,omitempty"`
	Asked    bool                     `cbor:"asked,omitempty"` // it was cancelled since
}

// Closes reports whether the run is between its verdict and its last event.
func (s *State) Closes() bool { return s.Closing != nil && (!s.Stopped || !s.stop.Status.Final()) }

// CleanupFailed are the always roles that failed or were skipped, in order.
func (s *State) CleanupFailed() []protocol.CleanupFailed {
	if s.Closing == nil {
		return nil
	}
	return s.Closing.Failed
}

// Last is the event that ends a run that closes.
func (s *State) Last() (protocol.Data, error) {
	c := s.Closing.Closing
	var err error
	c.Message.S, err = s.text(c.Message)
	return c.Last(), err
}

// Closed is how a run closes that comes to a verdict, without the Result.
func (s *State) Closed(v *Verdict) (c protocol.Closing, err error) {
	c = protocol.Closing{Status: v.Status, Message: protocol.NewText(v.Detail)}
	if f, _, ok := s.toFail(s.firings()); ok && v.Status == protocol.Failed {
		c.Code, err = s.failureCode(f.sources)
	}
	return c, err
}

// failureCode is the code of the first step behind a token that failed, "" where none did.
func (s *State) failureCode(sources []*act) (string, error) {
	for _, l := range links(sources) {
		if l == s.Start {
			continue
		}
		r, err := s.from.Step(l)
		if err != nil {
			return "", err
		}
		if r.Status != protocol.StepFailed || !r.Error.Defined() {
			continue
		}
		raw, err := s.from.Payload(r.Error)
		if err != nil {
			return "", err
		}
		info, err := lang.DecodeObject(raw)
		code, _ := info["code"].(string)
		return code, err
	}
	return "", nil
}

func (s *State) closes(d protocol.Closing) error {
	if s.Closing != nil || s.Stopped && s.stop.Status.Final() {
		return fmt.Errorf("a run closes once: %w", protocol.ErrCorrupt)
	}
	if len(s.prog.Workflow.Always) == 0 {
		return fmt.Errorf("a run without always roles closes: %w", protocol.ErrCorrupt)
	}
	s.laps(func(l *lap) { l.end(l.Last) })
	s.stop, s.Queue = stop{}, nil
	s.Closing = &closing{Closing: d, Active: s.Totals.Active}
	return nil
}

// inClosing refuses an event of a journal that a run cannot have written that closes, or that has always roles and ended
// without closing. d is what the event holds.
func (s *State) inClosing(step string, d protocol.Data) error {
	corrupt := func(format string, args ...any) error {
		return fmt.Errorf(format+": %w", append(args, protocol.ErrCorrupt)...)
	}
	c := s.Closing
	switch d := d.(type) {
	case protocol.StepStarted:
		if c != nil && (d.Via != protocol.ViaAlways || c.Skipped) {
			return corrupt("%s begins in a run that closes as %s", step, c.Status)
		}
	case protocol.StepCompleted:
		if c == nil {
			return nil
		}
		if _, a, err := s.visitNamed(step); err != nil || a.Via != protocol.ViaAlways || c.Skipped {
			return cmp.Or(err, corrupt("%s ends in a run that closes as %s", step, c.Status))
		}
	case protocol.Finished, protocol.CancelledBy:
		if c == nil {
			_, early := d.(protocol.CancelledBy)
			if len(s.prog.Workflow.Always) > 0 && (!early || s.Totals.Steps > 0) {
				return corrupt("a run with always roles ends without closing")
			}
			return nil
		}
		open := slices.ContainsFunc(s.agenda.always.visits[:], func(of []*visit) bool { return len(of) > 0 })
		if !c.Skipped && (open || c.Begun < len(s.prog.Workflow.Always)) {
			return corrupt("a run that closes ends before its always roles")
		}
		if last, err := s.Last(); err != nil || last != d {
			return cmp.Or(err, corrupt("a run that closes as %s ends as something else", c.Status))
		}
	case protocol.CancelAsked:
		if c == nil || c.Skipped || c.Asked || c.Status == protocol.Cancelled {
			return corrupt("a run that does not close by itself is cancelled as if it did, or twice")
		}
	case protocol.ClosingSkipped:
		if c == nil || c.Skipped {
			return corrupt("always roles are skipped in a run that does not close, or twice")
		}
	}
	return nil
}

// skip counts what has not ended as failed.
func (s *State) skip(d protocol.ClosingSkipped) {
	c := s.Closing
	c.Skipped = true
	why := d.Reason
	if why == "" && d.By != "" {
		why = "skipped by " + d.By
	}
	lists := &s.agenda.always
	for _, list := range lists.visits {
		for _, v := range list {
			c.Failed = append(c.Failed, protocol.CleanupFailed{Role: v.of.Role, Step: v.id().String(), Code: d.Code, Message: why})
		}
	}
	for _, role := range s.prog.Workflow.Always[min(c.Begun, len(s.prog.Workflow.Always)):] {
		c.Failed = append(c.Failed, protocol.CleanupFailed{Role: role, Code: d.Code, Message: why})
	}
}

// cleaned notes that the visit of an always role has ended.
func (s *State) cleaned(v *visit) {
	if s.Closing == nil || s.Closing.Skipped || v.Status != protocol.StepFailed {
		return
	}
	s.Closing.Failed = append(s.Closing.Failed, protocol.CleanupFailed{Role: v.of.Role, Step: v.id().String(),
		Code: cmp.Or(s.Closing.Last.Code, "failed"), Message: s.Closing.Last.Message})
}

// close plans what a run does that closes.
func (s *State) close(p *Plan, most int) {
	if !s.Closing.Skipped {
		s.openVisits(p, most)
		if len(p.Again)+len(p.Running) > 0 {
			return
		}
		if p.Start = s.nextAlways(); len(p.Start) > 0 {
			return
		}
	}
	p.End = &Verdict{Status: s.Closing.Status}
}

// nextAlways is the visit of the next always role, of which none is open; none where all have begun.
func (s *State) nextAlways() []Decision {
	c, roles := s.Closing, s.prog.Workflow.Always
	if c.Begun >= len(roles) {
		return nil
	}
	role := roles[c.Begun]
	return []Decision{{Step: protocol.StepID{Role: role, N: s.Nums[role] + 1, Index: -1}, Role: role, Parents: s.concluded(), Of: -1, Edge: noEdge,
		Via: protocol.ViaAlways, Visit: 1, EdgePrompt: s.verdictWords()}}
}

// verdictWords say to an always role how the run ends. Names of people are left out: records are the same on all machines.
func (s *State) verdictWords() string {
	c := s.Closing
	words := "The run ends as " + string(c.Status) + "."
	if why := s.words(c.Message); why != "" {
		words = "The run ends as " + string(c.Status) + ": " + why
	}
	return lang.CutPrompt(words)
}

// concluded are the records that the next always role goes on from: that of the one before it; of the first, those of the
// tokens, and what the visits that were stopped had gone on from.
func (s *State) concluded() []protocol.Link {
	if a := s.act(s.Closing.Newest); a != nil && a.Via == protocol.ViaAlways {
		return []protocol.Link{a.visits[0].Record}
	}
	var out []protocol.Link
	seen := map[protocol.Link]bool{}
	for _, t := range s.tips() {
		for _, l := range t.links {
			if !seen[l] {
				seen[l] = true
				out = append(out, l)
			}
		}
	}
	if len(out) > 1 { // of what stands on records the Start says nothing
		out = slices.DeleteFunc(out, func(l protocol.Link) bool { return l == s.Start })
	}
	return out
}

// tip is where the graph stands: a token, or an activation that has not ended.
type tip struct {
	links  []protocol.Link // its records, or what it goes on from
	latest map[string]*ref
}

// tips are in the order of their links: which branch was the first to come so far changes no record.
func (s *State) tips() []tip {
	var out []tip
	for _, a := range s.acts {
		switch {
		case a.Via == protocol.ViaAlways:
		case a.offer != nil && !a.offer.closed:
			out = append(out, tip{a.records(), a.offer.latest})
		case a.open():
			out = append(out, tip{a.Links, a.latest})
		}
	}
	slices.SortStableFunc(out, func(a, b tip) int { return slices.CompareFunc(a.links, b.links, byText) })
	return out
}

// activateAlways opens the activation of an always role.
func (s *State) activateAlways(id protocol.StepID, d protocol.StepStarted) (*act, error) {
	c, roles := s.Closing, s.prog.Workflow.Always
	if c == nil || c.Begun >= len(roles) || roles[c.Begun] != d.Role || d.Item != nil || d.Edge != noEdge {
		return nil, fmt.Errorf("%s is not the next always role: %w", id, protocol.ErrCorrupt)
	}
	a := &act{latest: map[string]*ref{}, convs: map[string]*conversations{}, left: 1,
		storedAct: storedAct{N: s.NextN, Take: s.NextN, Role: d.Role, Num: id.N, Edge: noEdge, Via: d.Via, Links: d.Parents, Of: -1,
			Edges: make([]int, len(s.prog.Workflow.Edges)), Entries: map[string]int{}}}
	if before := s.act(c.Newest); before != nil && before.Via == protocol.ViaAlways {
		maps.Copy(a.latest, before.latest)
		a.latest[before.Role] = &ref{N: before.N, Records: before.records()}
	} else {
		for _, t := range s.tips() {
			for role, r := range t.latest {
				if have := a.latest[role]; have == nil || s.isAncestor(have.N, r.N) {
					a.latest[role] = r
				}
			}
		}
	}
	s.enter(a)
	s.NextN++
	s.Nums[a.Role] = max(s.Nums[a.Role], id.N)
	delete(s.Fates, a.Role)
	c.Begun++
	c.Newest = a.N
	return a, nil
}

// reopenGraph has a fork go on with the graph. What always roles did is history.
func (s *State) reopenGraph() {
	if s.Closing == nil {
		return
	}
	s.Closing = nil
	graph := map[int]bool{}
	for _, a := range s.acts {
		if a.Via != protocol.ViaAlways {
			graph[a.N] = true
		}
	}
	s.keepOnly(graph)
	s.reindex()
}

// Verdict is what always roles see of the end of the run; nil before it closes. Its message has no NUL bytes and the length
// of a prompt at most, so that a command may have it in its environment: agents and people who cancel write it.
func (s *State) Verdict() (*protocol.Verdict, error) {
	c := s.Closing
	if c == nil {
		return nil, nil
	}
	v := &protocol.Verdict{Status: c.Status, Code: c.Code, Outputs: protocol.JSON("{}")}
	message, err := s.text(c.Message)
	if err != nil {
		return nil, err
	}
	v.Message = lang.CutPrompt(strings.ReplaceAll(message, "\x00", ""))
	if c.Outputs.Defined() {
		v.Outputs, err = s.from.Payload(c.Outputs)
	}
	return v, err
}

// verdictValue is the verdict as expressions see it.
func (s *State) verdictValue() (map[string]any, error) {
	v, err := s.Verdict()
	if v == nil || err != nil {
		return nil, err
	}
	outputs, err := lang.DecodeObject(v.Outputs)
	return map[string]any{"status": string(v.Status), "code": v.Code, "message": v.Message, "outputs": outputs}, err
}

// The names of the bounds of closing.
const (
	BoundAttempts = "attempts"
	BoundTime     = "time"
)

// closingSpent is what the always roles have taken of protocol.ClosingTime at now, the time before a further attempt included.
func (s *State) closingSpent(now int64) int64 {
	return s.active(now) - s.Closing.Active
}

// MayAwait reports whether a visit may be tried again at a time. That of an always role fails where its run has ended by then.
func (s *State) MayAwait(via protocol.Via, now, at int64) bool {
	return via != protocol.ViaAlways || s.Closing == nil || s.closingSpent(now)+at-now < protocol.ClosingTime
}

// closingBreach is the bound of the always roles that was reached at now; nil where none was.
func (s *State) closingBreach(now int64) *Breach {
	c, spent := s.Closing, s.closingSpent(now)
	lists := &s.agenda.always
	idle := !lists.moving()
	switch {
	case c.Skipped, idle && c.Begun >= len(s.prog.Workflow.Always):
		return nil
	case spent >= protocol.ClosingTime:
		return &Breach{Limit: BoundTime, Value: spent, Max: protocol.ClosingTime}
	case c.Attempts >= protocol.AlwaysMax && (idle || len(lists.visits[Retries]) > 0):
		return &Breach{Limit: BoundAttempts, Value: int64(c.Attempts), Max: protocol.AlwaysMax}
	}
	return nil
}
