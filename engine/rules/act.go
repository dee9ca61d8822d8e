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
	storedAct
	visits []*visit                  // by item index; nil while an item was not dispatched
	begun  int                       // visits that were dispatched
	left   int                       // visits that have not ended, those not dispatched included
	latest map[string]*ref           // nearest ancestor of each role
	convs  map[string]*conversations // of the ancestors

	offer *offer  // once complete
	fan   *fanOut // of an open fan-out, evaluated once; never stored
	next  int     // no item below it is left to be dispatched; never stored
}

// storedAct is what a snapshot holds of an activation as it is.
type storedAct struct {
	N       int             `cbor:"n"`
	Take    int             `cbor:"take"` // activations of one firing (to: [a, b]) share it
	Role    string          `cbor:"role"`
	Num     int             `cbor:"num"`  // coder#num
	Edge    int             `cbor:"edge"` // noEdge for START, and for what ended under the definition before a fork
	Via     protocol.Via    `cbor:"via"`
	Parents []int           `cbor:"parents"`                 // activations, in declared order
	Links   []protocol.Link `cbor:"links"`                   // StepRecords of the parents, or Start
	Of      int             `cbor:"of"`                      // number of items in a fan-out, −1 outside of one
	Edges   []int           `cbor:"edges"`                   // firings of each edge among self and ancestors
	Entries map[string]int  `cbor:"entries"`                 // activations of each role among self and ancestors
	Base    protocol.Link   `cbor:"base,omitempty,omitzero"` // of the own copies of its visits: the workspace as it was at the fan-out
}

// visit is one entry of a role.
type visit struct {
	storedVisit
	of   *act
	last protocol.Seq // of the newest step_started, as Visit.Last
}

// storedVisit is what a snapshot holds of a visit: all but the activation.
type storedVisit struct {
	Index    int               `cbor:"index"`  // of StepID
	Number   int               `cbor:"number"` // StepRecord.Visit
	Item     *protocol.Item    `cbor:"item"`
	Resumes  protocol.Link     `cbor:"resumes"`
	Tools    protocol.Link     `cbor:"tools"`
	Inject   protocol.Link     `cbor:"inject"`
	Prompt   protocol.Text     `cbor:"prompt"`
	Attempt  int               `cbor:"attempt"`
	Mode     Mode              `cbor:"mode"`
	Waiting  protocol.WaitKind `cbor:"waiting"` // while waits
	Due      int64             `cbor:"due"`     // of a wait or a retry, unix µs; 0 is never
	Question protocol.Text     `cbor:"question"`
	Choices  []protocol.Choice `cbor:"choices"`
	Form     protocol.Text     `cbor:"form"`
	Shown    string            `cbor:"shown,omitempty"` // digest of the tool call under approval
	storedAsking
	First    protocol.Seq        `cbor:"first"` // of the first step_started
	Record   protocol.Link       `cbor:"record"`
	Status   protocol.StepStatus `cbor:"status"`
	Kept     protocol.Link       `cbor:"kept,omitempty,omitzero"` // the files that its sub-workflow keeps
	LastErr  string              `cbor:"lastErr"`
	LastCode string              `cbor:"lastCode"`        // of the Error that parked it
	Again    bool                `cbor:"again"`           // it was started before: there is a transcript
	Anew     bool                `cbor:"anew"`            // the next step_started is a further attempt
	Keeps    bool                `cbor:"keeps,omitempty"` // which goes on where the one before ended

	Size      int64 `cbor:"size"`                // tokens of its first request, 0 while that is not known, or unsized
	Compacted bool  `cbor:"compacted"`           // Resumes is a Compaction that it made itself
	Compact   bool  `cbor:"compact,omitempty"`   // a person asked that it begin with one
	Preparing bool  `cbor:"preparing,omitempty"` // as its newest step_started says
	Reused    bool  `cbor:"reused,omitempty"`    // it takes an earlier result
	Told      bool  `cbor:"told,omitempty"`      // messages from outside were put into its prompt
	Lap       *lap  `cbor:"lap,omitempty"`       // null for roles without a time limit

	Held *protocol.Held `cbor:"held,omitempty"` // while it runs: kept back by the limits of a provider
}

func (v *visit) id() protocol.StepID {
	return protocol.StepID{Role: v.of.Role, N: v.of.Num, Index: v.Index}
}

// ref names a completed activation that may have left the live region.
type ref struct {
	N       int             `cbor:"n"`
	Records []protocol.Link `cbor:"records"` // by item; one outside of a fan-out
	Batch   bool            `cbor:"batch"`
	Kept    []protocol.Link `cbor:"kept,omitempty"` // the files that sub-workflows keep, by item; nil for none
}

// grant lets a token pass a bound that parked it.
func (o *offer) grant(part int) {
	if o.granted == nil {
		o.granted = map[int]bool{}
	}
	o.granted[part] = true
}

// take notes that a target of a part was dispatched.
func (o *offer) take(part int, target string) {
	if o.taken == nil {
		o.taken = map[int]map[string]bool{}
	}
	if o.taken[part] == nil {
		o.taken[part] = map[string]bool{}
	}
	o.taken[part][target] = true
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
func (a *act) batch() bool { return a.Of >= 0 }

// size is how many visits a has once all are dispatched.
func (a *act) size() int { return max(1, a.Of) }

// open reports whether a visit of a has not ended, or was not dispatched yet.
func (a *act) open() bool { return a.left > 0 }

// named is the visit of a with that item index; nil where it was not dispatched.
func (a *act) named(id protocol.StepID) *visit {
	i := max(0, id.Index)
	if i >= len(a.visits) || a.visits[i] == nil || a.visits[i].id() != id {
		return nil
	}
	return a.visits[i]
}

// act finds an activation of the live region by its number.
func (s *State) act(n int) *act {
	i, ok := slices.BinarySearchFunc(s.acts, n, func(a *act, n int) int { return a.N - n })
	if !ok {
		return nil
	}
	return s.acts[i]
}
