package rules

import (
	"fmt"
	"maps"

	"wf/protocol"
)

// snapshotVersion changes whenever the meaning of a snapshot does; another one is ignored.
const snapshotVersion = 12

// The stored form of a State: what Fold would compute, without the caches. It is derived,
// kept under the head it belongs to, and may be lost at any time.
type (
	Snapshot struct {
		V int `cbor:"v"`
		storedState
		Acts      []snapAct           `cbor:"acts"`
		Ways      []protocol.WayTaken `cbor:"ways"`
		Histories []snapHistory       `cbor:"histories"`
		Refs      []*ref              `cbor:"refs"`  // activations that histories name
		Convs     []snapConvs         `cbor:"convs"` // and conversations
	}
	snapAct struct {
		storedAct
		Visits  []*storedVisit `cbor:"visits"`
		History int            `cbor:"history"` // in Histories: activations of one branch share it
		Offer   *snapOffer     `cbor:"offer"`
	}
	snapOffer struct {
		Failed  bool        `cbor:"failed"`
		Closed  bool        `cbor:"closed"`
		Granted []int       `cbor:"granted"`
		Ref     int         `cbor:"ref"`   // of the activation, in Refs; −1 for START
		Convs   int         `cbor:"convs"` // in Convs
		Taken   []snapTaken `cbor:"taken"`
	}
	snapTaken struct {
		Part    int      `cbor:"part"`
		Targets []string `cbor:"targets"`
	}
	snapHistory struct {
		Latest map[string]int `cbor:"latest"` // in Refs
		Convs  map[string]int `cbor:"convs"`  // in Convs
	}
	snapConvs struct {
		Plain *convo              `cbor:"plain"`
		Items map[string][]*convo `cbor:"items"`
	}
)

// Snapshot is the stored form of s, the live region only. It shares memory with s: it is to be
// encoded before s moves.
func (s *State) Snapshot() *Snapshot {
	s.prune()
	return s.snapshot()
}

// Readable reports whether the snapshot is of the form that this binary reads.
func (in *Snapshot) Readable() bool { return in.V == snapshotVersion }

// snapshot is the stored form of all that s holds.
func (s *State) snapshot() *Snapshot {
	past := snapPast{refs: map[*ref]int{}, convs: map[*conversations]int{}}
	out := &Snapshot{V: snapshotVersion, storedState: s.storedState, Ways: s.Ways()}
	for _, a := range s.acts {
		x := snapAct{storedAct: a.storedAct, History: len(out.Histories)}
		out.Histories = append(out.Histories, past.of(a))
		for _, v := range a.visits {
			var stored *storedVisit
			if v != nil {
				stored = &v.storedVisit
			}
			x.Visits = append(x.Visits, stored)
		}
		if a.offer != nil {
			x.Offer = past.offer(a)
		}
		out.Acts = append(out.Acts, x)
	}
	out.Refs, out.Convs = past.allRefs, past.allConvs
	return out
}

// Restore is the state that a snapshot was made of. An error means only that the journal has to be folded
// instead.
func (in *Snapshot) Restore(from Records) (*State, error) {
	if !in.Readable() {
		return nil, fmt.Errorf("snapshot version %d, want %d", in.V, snapshotVersion)
	}
	o, err := from.Open(in.Start)
	if err != nil {
		return nil, err
	}
	s := New(from)
	nums, fates := s.Nums, s.Fates
	s.storedState, s.prog, s.begun = in.storedState, o.Program, o
	s.Nums, s.Fates = nums, fates
	maps.Copy(s.Nums, in.Nums)
	maps.Copy(s.Fates, in.Fates)
	for _, w := range in.Ways {
		s.ways[w.Way] = w.Times
	}
	past, err := pastOf(in)
	if err != nil {
		return nil, err
	}
	for _, x := range in.Acts {
		a := &act{storedAct: x.storedAct}
		if a.Entries == nil {
			a.Entries = map[string]int{}
		}
		if x.History < 0 || x.History >= len(in.Histories) {
			return nil, fmt.Errorf("snapshot: activation %d has no history", x.N)
		}
		if err := past.into(a, in.Histories[x.History]); err != nil {
			return nil, err
		}
		for _, v := range x.Visits {
			if v == nil {
				a.visits = append(a.visits, nil)
			} else {
				a.visits = append(a.visits, &visit{*v, a, 0})
			}
		}
		if x.Offer != nil {
			if a.offer, err = past.offer(a, x.Offer); err != nil {
				return nil, err
			}
		}
		s.acts = append(s.acts, a)
	}
	s.reindex()
	return s, nil
}
