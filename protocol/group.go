package protocol

// Concurrency is the group of a workflow or a role: at most Max of its members act at a time. It is the
// same for both, but that a role always gives its slot back when it is parked, and never cancels a run.
type Concurrency struct {
	Group  string `cbor:"group" json:"group"`                         // template, of inputs alone
	Max    int    `cbor:"max,omitempty" json:"max,omitempty"`         // slots; 0 is 1
	OnBusy string `cbor:"on_busy,omitempty" json:"on_busy,omitempty"` // "" is BusyQueue
	// ReleaseOnSuspend gives the slot back when the run is suspended; of a workflow.
	ReleaseOnSuspend bool `cbor:"release_on_suspend,omitempty" json:"release_on_suspend,omitempty"`
}

// Slots is how many members act at a time.
func (c *Concurrency) Slots() int { return max(1, c.Max) }

// What happens where a group is busy.
const (
	BusyQueue     = "queue"      // wait for a slot, in the order of asking
	BusyCancelOld = "cancel_old" // have older runs of the workflow cancelled, and wait until they have ended
	BusyRefuse    = "refuse"     // an error: ErrGroupBusy
)

// A Group is what holds the slots of a concurrency group of a store and what waits for one: the
// block that the head GroupHead names. It changes in the commit of the events that tell of it.
type Group struct {
	Kind  string  `cbor:"kind"`
	V     int     `cbor:"v"`
	Name  string  `cbor:"name"`
	Last  int64   `cbor:"last"`  // the newest ticket
	Slots []Slot  `cbor:"slots"` // taken, by ticket
	Queue []Claim `cbor:"queue"` // by ticket
}

// Slot is a slot that is taken. It belongs to a root run, and is shared by what entered within it.
type Slot struct {
	Ticket int64 `cbor:"ticket"`
	Root   RunID `cbor:"root"`
	Uses   []Use `cbor:"uses"` // never empty
}

// Use is a run in a group, or an attempt of a step of it.
type Use struct {
	Run  RunID  `cbor:"run"`
	Step string `cbor:"step,omitempty"` // "" is the run
}

// String names it for people: RUN or RUN:step.
func (u Use) String() string {
	if u.Step == "" {
		return string(u.Run)
	}
	return string(u.Run) + ":" + u.Step
}

// Claim is a use that waits for a slot.
type Claim struct {
	Ticket int64 `cbor:"ticket"`
	Root   RunID `cbor:"root"`
	Use
}

// GroupHeads is how the names of the heads of groups begin.
const GroupHeads = "group/"

// GroupHead is the name of the head of a group.
func GroupHead(name string) string { return GroupHeads + hashed(name) }

// MaxGroupName bounds the name of a group, in bytes.
const MaxGroupName = 200

// QueuedFor says that the run waits for a slot of its group.
type QueuedFor struct {
	Group  string `cbor:"group" json:"group"`
	Ticket int64  `cbor:"ticket" json:"ticket"` // lower ones come first
	// Behind are the runs that hold the slots, and then the one that waits directly before this one, if any does.
	Behind []RunID `cbor:"behind,omitempty" json:"behind,omitempty"`
	// Replaces is set where older runs of the workflow are cancelled for this one.
	Replaces bool `cbor:"replaces,omitempty" json:"replaces,omitempty"`
}

// AdmittedTo says that the run holds a slot of its group.
type AdmittedTo struct {
	Group  string `cbor:"group" json:"group"`
	Ticket int64  `cbor:"ticket" json:"ticket"`
}

// GroupWaiting says that an attempt waits for a slot of the group of its role.
type GroupWaiting struct {
	Group  string   `cbor:"group" json:"group"`
	Ticket int64    `cbor:"ticket" json:"ticket"`
	Behind []string `cbor:"behind,omitempty" json:"behind,omitempty"` // what holds the slots: RUN or RUN:step
}

// GroupEntered says that an attempt holds a slot of the group of its role, until it ends.
type GroupEntered struct {
	Group  string `cbor:"group" json:"group"`
	Ticket int64  `cbor:"ticket" json:"ticket"`
}

// GroupLeft says that an attempt which has not ended gave its slot back: it waits for something else.
type GroupLeft struct {
	Group string `cbor:"group" json:"group"`
}
