package rules

import (
	"slices"

	"wf/protocol"
)

// startNode is the number of the activation that stands for START.
const startNode = 0

// noEdge is the edge of an activation that came by none of the definition in force.
const noEdge = -1

// act is an activation.
type act struct {
	n       int
	take    int // activations of one firing (to: [a, b]) share it
	role    string
	num     int // coder#num
	edge    int // noEdge for START, and for what ended under the definition before a fork
	via     protocol.Via
	parents []int                     // activations, in declared order
	links   []protocol.Link           // StepRecords of the parents, or Start
	of      int                       // number of items in a fan-out, −1 outside of one
	visits  []*visit                  // by item index; nil while an item was not dispatched
	begun   int                       // visits that were dispatched
	left    int                       // visits that have not ended, those not dispatched included
	edges   []int                     // firings of each edge among self and ancestors
	entries map[string]int            // activations of each role among self and ancestors
	latest  map[string]*ref           // nearest ancestor of each role
	convs   map[string]*conversations // of the ancestors

	offer *offer  // once complete
	fan   *fanOut // of an open fan-out, evaluated once; never stored
	next  int     // no item below it is left to be dispatched; never stored
}

// visit is one entry of a role.
type visit struct {
	id       protocol.StepID
	of       *act
	number   int // StepRecord.Visit
	item     *protocol.Item
	resumes  protocol.Link
	tools    protocol.Link
	inject   protocol.Link
	prompt   protocol.Text
	attempt  int
	mode     Mode
	waiting  protocol.WaitKind // while waits
	due      int64             // of a wait or a retry, unix µs; 0 is never
	question protocol.Text
	choices  []protocol.Choice
	form     protocol.Text
	shown    string       // digest of the tool call under approval
	first    protocol.Seq // of the first step_started
	record   protocol.Link
	status   protocol.StepStatus
	lastErr  string
	lastCode string // of the Error that parked it
	again    bool   // it was started before: there is a transcript
	anew     bool   // the next step_started is a further attempt

	size      int64 // tokens of its first request, 0 while that is not known, or unsized
	compacted bool  // resumes is a Compaction that it made itself
	compact   bool  // a person asked that it begin with one
	lap       *lap  // null for roles without a time limit
}

// ref names a completed activation that may have left the live region.
type ref struct {
	n       int
	records []protocol.Link // by item; one outside of a fan-out
	batch   bool
}

// grant lets a token pass a bound that parked it.
func (o *offer) grant(part int) {
	if o.granted == nil {
		o.granted = map[int]bool{}
	}
	o.granted[part] = true
}

// offer is the token of a completed activation until all its firings are dispatched.
type offer struct {
	failed  bool
	taken   map[int]map[string]bool // edge → targets dispatched already
	closed  bool                    // nothing is left of it
	granted map[int]bool            // edges and joins a person resumed it past the bound of
	records []protocol.Link         // of the activation, in item order
	route   *route                  // computed once, never stored
	latest  map[string]*ref         // what the token hands on: the activation included
	convs   map[string]*conversations
}

// batch reports whether a is a fan-out.
func (a *act) batch() bool { return a.of >= 0 }

// size is how many visits a has once all are dispatched.
func (a *act) size() int { return max(1, a.of) }

// open reports whether a visit of a has not ended, or was not dispatched yet.
func (a *act) open() bool { return a.left > 0 }

// named is the visit of a with that item index; nil where it was not dispatched.
func (a *act) named(id protocol.StepID) *visit {
	i := max(0, id.Index)
	if i >= len(a.visits) || a.visits[i] == nil || a.visits[i].id != id {
		return nil
	}
	return a.visits[i]
}

// act finds an activation of the live region by its number.
func (s *State) act(n int) *act {
	i, ok := slices.BinarySearchFunc(s.acts, n, func(a *act, n int) int { return a.n - n })
	if !ok {
		return nil
	}
	return s.acts[i]
}
