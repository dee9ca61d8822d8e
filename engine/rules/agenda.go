package rules

import (
	"cmp"
	"fmt"
	"slices"

	"wf/protocol"
)

// agenda is what of a run has not ended. It is kept as visits and tokens move, so that what a
// decision costs depends on what moved, and not on the length of the run or the width of a
// fan-out. All lists are in a fixed order; reindex makes them from the activations.
type agenda struct {
	steps  map[stepName]*act // activations of the live region
	open   []*act            // those with a visit that has not ended, ascending n
	tokens []*act            // those with a token that is not used up, ascending n
	graph  visitLists
	always visitLists // of always roles
}

// visitLists are visits that have not ended.
type visitLists struct {
	visits [Ended][]*visit // by mode, by activation and item; of retries by due time first
	timers []*visit        // those that wait of which something is due, by its time
	held   int             // of those that run: kept back by the limits of a provider
}

// of are the lists that a visit is in.
func (g *agenda) of(v *visit) *visitLists {
	if v.of.Via == protocol.ViaAlways {
		return &g.always
	}
	return &g.graph
}

// due are the lists by which the run moves: once it closes nothing of its graph does.
func (s *State) due() *visitLists {
	if s.Closing != nil {
		return &s.agenda.always
	}
	return &s.agenda.graph
}

// stepName is a step without its item.
type stepName struct {
	role string
	num  int
}

// moving reports whether a visit runs or is to be performed.
func (g *visitLists) moving() bool {
	return len(g.visits[Runs])+len(g.visits[Ready])+len(g.visits[Retries]) > 0
}

// pending reports whether a visit runs, held or not, or is tried again later: always roles have a time for all of that.
func (g *visitLists) pending() bool { return len(g.visits[Runs])+len(g.visits[Retries]) > 0 }

// byPlace is the order of dispatch.
func byPlace(a, b *visit) int {
	return cmp.Or(cmp.Compare(a.of.N, b.of.N), cmp.Compare(a.Index, b.Index))
}

// byDue is the order of time.
func byDue(a, b *visit) int { return cmp.Or(cmp.Compare(a.wake(), b.wake()), byPlace(a, b)) }

func orderOf(m Mode) func(a, b *visit) int {
	if m == Retries {
		return byDue
	}
	return byPlace
}

func byNumber(a, b *act) int { return cmp.Compare(a.N, b.N) }

// listed has x in a sorted list, once, or not in it.
func listed[T any](list []T, x T, in bool, order func(a, b T) int) []T {
	i, found := slices.BinarySearchFunc(list, x, order)
	switch {
	case found == in:
		return list
	case in:
		return slices.Insert(list, i, x)
	}
	return slices.Delete(list, i, i+1)
}

// dispatched notes a visit that begins.
func (s *State) dispatched(v *visit) {
	v.of.begun++
	v.Mode, v.Due = Runs, 0
	s.list(v, true)
}

// to moves a visit to another mode, or to another due time (unix µs, 0 is none).
func (s *State) to(v *visit, m Mode, due int64) {
	s.list(v, false)
	if v.Mode == Ended {
		v.of.left++
	}
	v.Mode, v.Due = m, due
	s.hold(v, nil)
	if len(s.InLine) > 0 {
		delete(s.InLine, v.id().String())
	}
	if m == Ended {
		v.of.left--
	}
	s.list(v, true)
	s.opened(v.of)
}

// heldBack notes that a visit that runs is held, or, with nil, that it goes on.
func (s *State) heldBack(step string, by *protocol.Held) error {
	v, _, err := s.visitNamed(step)
	if err == nil && v.Mode == Runs {
		s.hold(v, by)
	}
	return err
}

func (s *State) hold(v *visit, by *protocol.Held) {
	lists := s.agenda.of(v)
	if v.Held != nil {
		lists.held--
	}
	if v.Held = by; by != nil {
		lists.held++
	}
}

// Held reports whether of all that runs something is held, and what by, while the rest waits for a slot of a group: nil
// where something works, or nothing is held.
func (s *State) Held() *protocol.Held {
	if s.Stopped || s.due().held == 0 || s.working() {
		return nil
	}
	for _, v := range s.due().visits[Runs] {
		if v.Held != nil {
			return v.Held
		}
	}
	return nil
}

// working reports whether a visit runs that is neither held nor waits for a slot of a group. None is both: what waits for
// a slot is not performed.
func (s *State) working() bool {
	lists := s.due()
	if s.Closing != nil { // always roles are in no group
		return len(lists.visits[Runs]) > lists.held
	}
	return len(lists.visits[Runs]) > lists.held+len(s.InLine)
}

// list keeps the lists of the visits that have not ended.
func (s *State) list(v *visit, in bool) {
	if v.Mode == Ended {
		return
	}
	g := s.agenda.of(v)
	g.visits[v.Mode] = listed(g.visits[v.Mode], v, in, orderOf(v.Mode))
	if v.Mode == Waits && v.wake() > 0 {
		g.timers = listed(g.timers, v, in, byDue)
	}
}

// opened keeps the list of open activations.
func (s *State) opened(a *act) {
	s.agenda.open = listed(s.agenda.open, a, a.open(), byNumber)
}

// offers gives an activation a token, or takes it away (nil).
func (s *State) offers(a *act, o *offer) {
	a.offer = o
	s.agenda.tokens = listed(s.agenda.tokens, a, o != nil && !o.closed, byNumber)
}

// spend closes a token of which nothing is left.
func (s *State) spend(a *act) {
	a.offer.closed = true
	s.offers(a, a.offer)
}

// enter adds an activation to the live region; it is the newest.
func (s *State) enter(a *act) {
	s.acts = append(s.acts, a)
	s.agenda.steps[stepName{a.Role, a.Num}] = a
	s.opened(a)
	s.offers(a, a.offer)
}

// reindex makes the agenda anew, and the counts of the activations.
func (s *State) reindex() {
	s.agenda = agenda{steps: make(map[stepName]*act, len(s.acts))}
	for _, a := range s.acts {
		a.begun, a.left = 0, a.size()
		if a.N == startNode {
			a.left = 0
		}
		for _, v := range a.visits {
			if v == nil {
				continue
			}
			a.begun++
			if v.Mode == Ended {
				a.left--
			}
			if v.Held != nil {
				s.agenda.of(v).held++
			}
			s.list(v, true)
		}
		s.agenda.steps[stepName{a.Role, a.Num}] = a
		s.opened(a)
		s.offers(a, a.offer)
	}
}

// visitNamed finds a visit of the live region.
func (s *State) visitNamed(step string) (*visit, *act, error) {
	id, err := protocol.ParseStepID(step)
	if err != nil {
		return nil, nil, err
	}
	if a := s.agenda.steps[stepName{id.Role, id.N}]; a != nil {
		if v := a.named(id); v != nil {
			return v, a, nil
		}
	}
	return nil, nil, fmt.Errorf("no open step %s: %w", step, protocol.ErrNotFound)
}
