package notify

import (
	"cmp"
	"container/heap"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"wf/cas"
	"wf/protocol"
)

// A State is what the journal of a sink adds up to: how far each run was looked at, and what is still to be
// delivered. It is folded from the events alone, and knows neither clock nor chance.
type State struct {
	Seq    protocol.Seq  // of the newest event
	Head   protocol.Link // its CID
	Origin string        // see protocol.SinkOpened

	read  func(protocol.Link) ([]byte, error) // payloads
	at    int64                               // of the newest event, unix µs
	lived int64                               // µs of all times between events

	cursors   map[protocol.RunID]protocol.Seq
	lanes     map[protocol.RunID]*lane
	order     lanes // those of which no delivery is under way
	open      int
	byID      map[string]*Delivery // open ones and dead ones
	dead      []*Delivery          // the oldest first
	done      []Delivery           // that were delivered last, the oldest first
	delivered int64
}

// A Delivery is a notification at one sink.
type Delivery struct {
	protocol.DeliveryDue
	At       int64  `cbor:"at"`       // when it was due, or revived: unix µs
	Born     int64  `cbor:"born"`     // how long its sink had lived then, µs
	Attempts int    `cbor:"attempts"` // that did not work
	Next     int64  `cbor:"next"`     // unix µs; 0 is at once
	Error    string `cbor:"error"`    // of the last attempt
	Dead     bool   `cbor:"dead"`
	Done     int64  `cbor:"done"` // when it was delivered: unix µs; 0 is not yet
}

// A lane is the open deliveries of one run, in the order of its events: only the first may be under way.
type lane struct {
	queue []*Delivery
	place int // in the heap; −1 while its first delivery is under way
}

// NewState is that of a sink without events; long texts are read by read.
func NewState(read func(protocol.Link) ([]byte, error)) *State {
	return &State{read: read, cursors: map[protocol.RunID]protocol.Seq{}, lanes: map[protocol.RunID]*lane{}, byID: map[string]*Delivery{}}
}

// maxDead is how many dead deliveries are kept to be shown and retried; older ones are forgotten.
const maxDead = 10_000

// maxDone is how many deliveries that went well are kept to be shown.
const maxDone = 200

// Fold adds events to a state.
func (s *State) Fold(events iter.Seq2[protocol.Entry, error]) error {
	for e, err := range events {
		if err == nil {
			err = s.Apply(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Apply adds the next event.
func (s *State) Apply(e protocol.Entry) error {
	if e.Seq != s.Seq+1 || e.Prev != s.Head {
		return fmt.Errorf("event %d does not follow event %d: %w", e.Seq, s.Seq, protocol.ErrHeadMoved)
	}
	data, err := e.AnyData()
	if err != nil {
		return err
	}
	s.at, s.lived = e.TS, s.lived+between(s.at, e.TS)
	switch d := data.(type) {
	case protocol.SinkOpened:
		s.Origin = d.Origin
		err = s.move(d.Runs)
	case protocol.CursorMoved:
		err = s.move(d.Runs)
	case protocol.DeliveryDue:
		s.pass(d.Run, d.Seq)
		if s.byID[d.ID] == nil {
			s.push(&Delivery{DeliveryDue: d, At: e.TS, Born: s.lived})
		}
	case protocol.Delivered:
		if x := s.taken(d.ID); x != nil {
			delete(s.byID, d.ID)
			x.Dead, x.Next, x.Done = false, 0, e.TS
			if s.done = append(s.done, *x); len(s.done) > maxDone {
				s.done = slices.Delete(s.done, 0, 1)
			}
		}
		s.delivered++
	case protocol.DeliveryFailed:
		if x := s.byID[d.ID]; x != nil && !x.Dead {
			x.Attempts, x.Next, x.Error = x.Attempts+1, d.Next, d.Error
			s.wake(x.Run)
		}
	case protocol.DeliveryDead:
		s.bury(d)
	case protocol.DeliveryRevived:
		for _, id := range d.IDs {
			if x := s.byID[id]; x != nil {
				s.revive(x, e.TS)
			}
		}
	}
	s.Seq, s.Head = e.Seq, e.CID
	return err
}

func (s *State) move(t protocol.Text) error {
	text, err := t.Read(s.read)
	if err != nil {
		return err
	}
	var runs map[protocol.RunID]protocol.Seq
	if err := json.Unmarshal([]byte(text), &runs); err != nil {
		return fmt.Errorf("the runs of a cursor: %w: %w", protocol.ErrCorrupt, err)
	}
	for run, seq := range runs {
		s.pass(run, seq)
	}
	return nil
}

func (s *State) pass(run protocol.RunID, seq protocol.Seq) {
	if s.cursors[run] < seq {
		s.cursors[run] = seq
	}
}

// push adds an open delivery to the lane of its run.
func (s *State) push(x *Delivery) {
	s.byID[x.ID] = x
	s.open++
	l := s.lanes[x.Run]
	if l == nil {
		l = &lane{place: -1}
		s.lanes[x.Run] = l
	}
	at, _ := slices.BinarySearchFunc(l.queue, x.Seq, func(q *Delivery, seq protocol.Seq) int {
		if q.Seq > seq {
			return 1
		}
		return -1 // those about triggers have no event: they stay in the order in which they came
	})
	under := l.place < 0 && len(l.queue) > 0
	if under {
		at = max(at, 1) // what is under way stays in front
	}
	l.queue = slices.Insert(l.queue, at, x)
	if !under {
		s.wake(x.Run)
	}
}

// taken removes an open delivery, which need not be the first of its lane. A dead one is removed too.
func (s *State) taken(id string) *Delivery {
	x := s.byID[id]
	if x == nil {
		return nil
	}
	if x.Dead {
		s.dead = slices.DeleteFunc(s.dead, func(d *Delivery) bool { return d == x })
		return x
	}
	l := s.lanes[x.Run]
	first := l.queue[0] == x
	l.queue = slices.DeleteFunc(l.queue, func(d *Delivery) bool { return d == x })
	s.open--
	switch {
	case len(l.queue) == 0:
		if l.place >= 0 {
			heap.Remove(&s.order, l.place)
		}
		delete(s.lanes, x.Run)
	case first:
		s.wake(x.Run)
	}
	return x
}

// wake puts a lane where its first delivery belongs.
func (s *State) wake(run protocol.RunID) {
	l := s.lanes[run]
	if l.place < 0 {
		heap.Push(&s.order, l)
	} else {
		heap.Fix(&s.order, l.place)
	}
}

func (s *State) bury(d protocol.DeliveryDead) {
	x := s.taken(d.ID)
	if x == nil {
		return
	}
	if d.Gone {
		delete(s.byID, d.ID)
		return
	}
	x.Attempts, x.Error, x.Dead = x.Attempts+1, d.Error, true
	s.dead = append(s.dead, x)
	if len(s.dead) > maxDead {
		delete(s.byID, s.dead[0].ID)
		s.dead = slices.Delete(s.dead, 0, 1)
	}
}

// revive has a delivery attempted at once, with all its time before it.
func (s *State) revive(x *Delivery, now int64) {
	x.At, x.Born, x.Attempts, x.Next = now, s.lived, 0, 0
	if !x.Dead {
		if l := s.lanes[x.Run]; l.place >= 0 {
			s.wake(x.Run)
		}
		return
	}
	s.taken(x.ID)
	x.Dead = false
	s.push(x)
}

// Take gives the next delivery that is due, and holds its run back until Fold or Release. Where none is due, next is
// when one will be, unix µs; 0 is never.
func (s *State) Take(now int64) (x *Delivery, next int64) {
	if len(s.order) == 0 {
		return nil, 0
	}
	first := s.order[0].queue[0]
	if first.Next <= now {
		return heap.Pop(&s.order).(*lane).queue[0], 0
	}
	for _, l := range s.order {
		if due(l.queue[0].Next, now) {
			heap.Remove(&s.order, l.place)
			return l.queue[0], 0
		}
	}
	return nil, first.Next
}

// TakeOf is Take for the deliveries of one run.
func (s *State) TakeOf(run protocol.RunID, now int64) (x *Delivery, next int64) {
	l := s.lanes[run]
	switch {
	case l == nil || l.place < 0:
		return nil, 0
	case !due(l.queue[0].Next, now):
		return nil, l.queue[0].Next
	}
	heap.Remove(&s.order, l.place)
	return l.queue[0], 0
}

// Release lets a delivery that was taken be taken again: nothing is known of the attempt.
func (s *State) Release(x *Delivery) {
	if l := s.lanes[x.Run]; l != nil && l.place < 0 {
		s.wake(x.Run)
	}
}

// age is for how long a delivery has been open at now, µs.
func (s *State) age(x *Delivery, now int64) int64 { return s.lived + between(s.at, now) - x.Born }

// overtaken reports whether a later open delivery takes the place of one.
func (s *State) overtaken(x *Delivery) bool {
	l := s.lanes[x.Run]
	return l != nil && slices.ContainsFunc(l.queue, func(q *Delivery) bool { return q.Seq > x.Seq && q.Overtakes(x.DeliveryDue) })
}

// Cursor is the newest event of a run that was looked at.
func (s *State) Cursor(run protocol.RunID) protocol.Seq { return s.cursors[run] }

// Open lists the open deliveries, by run and event.
func (s *State) Open() []Delivery {
	var out []Delivery
	for _, l := range s.lanes {
		for _, x := range l.queue {
			out = append(out, *x)
		}
	}
	protocol.Sort(out, func(a, b Delivery) int {
		return cmp.Or(cmp.Compare(a.Run, b.Run), cmp.Compare(a.Seq, b.Seq))
	})
	return out
}

// Dead lists what is attempted no more, the oldest first.
func (s *State) Dead() []Delivery {
	out := make([]Delivery, len(s.dead))
	for i, x := range s.dead {
		out[i] = *x
	}
	return out
}

// Done lists what was delivered last, the oldest first.
func (s *State) Done() []Delivery { return slices.Clone(s.done) }

// waits counts the open deliveries of a run.
func (s *State) waits(run protocol.RunID) int {
	if l := s.lanes[run]; l != nil {
		return len(l.queue)
	}
	return 0
}

// IDOf is the id of a notification: the same for the same event of a run at the same sink, in whichever process and
// however often.
func IDOf(origin, sink string, run protocol.RunID, event protocol.Link) string {
	return idOf(origin, sink, string(run), event.String())
}

func idOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return "msg_" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:20]))
}

// A snapshot is the stored form of a state.
type snapshot struct {
	V         int                             `cbor:"v"`
	Seq       protocol.Seq                    `cbor:"seq"`
	At        int64                           `cbor:"at"`
	Lived     int64                           `cbor:"lived"`
	Origin    string                          `cbor:"origin"`
	Cursors   map[protocol.RunID]protocol.Seq `cbor:"cursors"`
	Open      []Delivery                      `cbor:"open"`
	Dead      []Delivery                      `cbor:"dead"`
	Done      []Delivery                      `cbor:"done"`
	Delivered int64                           `cbor:"delivered"`
}

const snapshotVersion = 3

// Snapshot is the stored form of the state.
func (s *State) Snapshot() ([]byte, error) {
	return cas.Marshal(snapshot{snapshotVersion, s.Seq, s.at, s.lived, s.Origin, s.cursors, s.Open(), s.Dead(), s.Done(), s.delivered})
}

// Restore reads a stored form; head is the event that it belongs to. An error means only that the journal has to be
// folded instead.
func Restore(data []byte, head protocol.Link, read func(protocol.Link) ([]byte, error)) (*State, error) {
	var in snapshot
	if err := cas.Decode(data, &in); err != nil {
		return nil, err
	}
	if in.V != snapshotVersion || in.Seq < 1 {
		return nil, fmt.Errorf("a state of version %d", in.V)
	}
	s := NewState(read)
	s.Seq, s.Head, s.at, s.lived, s.Origin, s.done, s.delivered = in.Seq, head, in.At, in.Lived, in.Origin, in.Done, in.Delivered
	maps.Copy(s.cursors, in.Cursors)
	for i := range in.Open {
		s.push(&in.Open[i])
	}
	for i := range in.Dead {
		s.byID[in.Dead[i].ID] = &in.Dead[i]
		s.dead = append(s.dead, &in.Dead[i])
	}
	return s, nil
}

// lanes is a heap: what is due first, and of what is due at once what was due first.
type lanes []*lane

func (h lanes) Len() int { return len(h) }
func (h lanes) Less(i, j int) bool {
	a, b := h[i].queue[0], h[j].queue[0]
	if a.Next != b.Next {
		return a.Next < b.Next
	}
	return a.At < b.At
}
func (h lanes) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}
func (h *lanes) Push(x any) {
	l := x.(*lane)
	l.place = len(*h)
	*h = append(*h, l)
}
func (h *lanes) Pop() any {
	l := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	l.place = -1
	return l
}
