package engine

import (
	"slices"
	"sync"

	"wf/protocol"
)

// A stay is an attempt that acts in a workspace, and may change files of it. A nil one acts nowhere, and meets no other.
type stay struct {
	in  *stays
	dir string
	is  actor

	met   map[actor]bool // the first maxMet
	count int            // of those it has met
}

// maxMet bounds what an attempt remembers of others: one beside a fan-out of 10,000 items would name all of them.
const maxMet = 100

// An actor is an attempt, by what it belongs to.
type actor struct {
	run  protocol.RunID
	step string
}

// stays are those of this process.
type stays struct {
	mu sync.Mutex
	at map[string]map[*stay]bool // by workspace

	entered map[string]int // how many there were, by workspace
}

// acting tells how many attempts act in a workspace, and how many have begun to.
func (all *stays) acting(dir string) (now, entered int) {
	all.mu.Lock()
	defer all.mu.Unlock()
	return len(all.at[dir]), all.entered[dir]
}

// acts has an attempt act in its workspace until it leaves; nil for one that changes nothing there, or has a copy for itself.
func (e *Engine) acts(x *assignment) *stay {
	turn := &x.turn
	if x.own != nil || turn.Workspace == "" || !e.mayWrite(&turn.Role, "") {
		return nil
	}
	return e.stays.enter(turn.Workspace, actor{turn.Run, turn.Step.String()})
}

func (all *stays) enter(dir string, is actor) *stay {
	s := &stay{in: all, dir: dir, is: is}
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.at == nil {
		all.at, all.entered = map[string]map[*stay]bool{}, map[string]int{}
	}
	all.entered[dir]++
	if all.at[dir] == nil {
		all.at[dir] = map[*stay]bool{}
	}
	for other := range all.at[dir] {
		s.meets(other.is)
		other.meets(is)
	}
	all.at[dir][s] = true
	return s
}

func (s *stay) meets(other actor) {
	switch {
	case s.met[other]: // again, at a further attempt
		return
	case s.met == nil:
		s.met = map[actor]bool{}
	}
	if s.count++; len(s.met) < maxMet {
		s.met[other] = true
	}
}

// overlaps are the attempts that have acted beside this one so far, as steps, or RUN:STEP of other runs: the
// first maxMet of them, and how many there are.
func (s *stay) overlaps() (steps []string, count int) {
	if s == nil {
		return nil, 0
	}
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	for other := range s.met {
		name := other.step
		if other.run != s.is.run {
			name = string(other.run) + ":" + other.step
		}
		steps = append(steps, name)
	}
	slices.Sort(steps)
	return steps, s.count
}

// metOthers reports whether another attempt has acted beside this one so far.
func (s *stay) metOthers() bool {
	_, n := s.overlaps()
	return n > 0
}

// leave is called when the attempt acts no more.
func (s *stay) leave() {
	if s == nil {
		return
	}
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	delete(s.in.at[s.dir], s)
	if len(s.in.at[s.dir]) == 0 {
		delete(s.in.at, s.dir)
	}
}
