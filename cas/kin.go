package cas

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	bolt "go.etcd.io/bbolt"

	"wf/protocol"
)

// Which run a fork shares its first events with follows from the chains: its own part begins with the newest forked, and its base is the
// run whose own part holds the event before that. What is found is proved by equal CIDs; names that an archive claims count for nothing.
// So that it is found without a look at each run, derived values name where own parts begin, and what forks wait for:
//
//	kin/own/DIGEST/RUN      the own part of RUN begins with this event
//	kin/due/DIGEST/SEQ/RUN  the base of RUN is not known: it is the run whose own part holds this event
const (
	kinPrefix = "kin/"
	kinOwn    = kinPrefix + "own/"
	kinDue    = kinPrefix + "due/"
)

// Kinship is that a fork shares the events of a run up to Shared.
type Kinship struct {
	Fork, Base protocol.RunID
	Shared     protocol.Seq
}

// kin is where the own part of a run begins, and of a fork the event before that with the beginning of the part that has it.
type kin struct{ own, at, base EventRef }

func kinOf(chain []chainEvent) (k kin) {
	for i, c := range chain {
		e := EventRef{c.seq, c.name.link()}
		if i == 0 {
			k.own = e
		} else if c.node.event != nil && c.node.event.typ == protocol.EvForked {
			k = kin{own: e, at: EventRef{chain[i-1].seq, chain[i-1].name.link()}, base: k.own}
		}
	}
	return k
}

func (k kin) fork() bool { return k.at.CID.Defined() }

func ownKeys(l protocol.Link) string { return kinOwn + hex.EncodeToString([]byte(sumOf(l))) + "/" }

// derivedOwn is the derived value by which a run is found whose own part begins with an event.
func derivedOwn(run protocol.RunID, own EventRef) Derived {
	return Derived{ownKeys(own.CID) + string(run), own.CID, []byte{}}
}

// derivedDue is that by which a fork waits for its base.
func derivedDue(run protocol.RunID, at EventRef) Derived {
	return Derived{fmt.Sprintf("%s%x/%d/%s", kinDue, sumOf(at.CID), at.Seq, run), at.CID, []byte{}}
}

// dueIn reads the key of derivedDue.
func dueIn(key string) (sum string, seq protocol.Seq, run protocol.RunID, ok bool) {
	at := strings.Split(strings.TrimPrefix(key, kinDue), "/")
	if len(at) != 3 {
		return "", 0, "", false
	}
	raw, err := hex.DecodeString(at[0])
	n, bad := strconv.ParseInt(at[1], 10, 64)
	return string(raw), protocol.Seq(n), protocol.RunID(at[2]), err == nil && bad == nil
}

// find gives the base of a fork among the runs of a store; "" where it is not there.
func (k kin) find(ctx context.Context, s Keeper, run protocol.RunID) (protocol.RunID, error) {
	if !k.fork() {
		return "", nil
	}
	prefix := ownKeys(k.base.CID)
	keys, err := s.DerivedKeys(ctx, prefix)
	if err != nil {
		return "", err
	}
	for _, key := range keys { // several only where a run came again under another name
		base := protocol.RunID(key[len(prefix):])
		if base == run {
			continue
		}
		h, err := s.Head(ctx, protocol.RunHead(base))
		held := false
		if err == nil {
			held, err = holds(ctx, s, h, Head{Link: k.at.CID, Seq: k.at.Seq})
		}
		switch {
		case held:
			return base, nil
		case err == nil, errors.Is(err, protocol.ErrCorrupt), errors.Is(err, protocol.ErrHeadMoved), errors.Is(err, protocol.ErrUnknownRun), errors.Is(err, protocol.ErrRunDeleted):
		default:
			return "", err
		}
	}
	return "", nil
}

// begins makes the move of a new run: from its base on, where a store has that; else the derived values say what it waits for.
func (k kin) begins(ctx context.Context, s Keeper, m *Move, chain []chainEvent) (derived []Derived, err error) {
	run := protocol.RunOf(m.Name)
	if m.Base == "" {
		if m.Base, err = k.find(ctx, s, run); err != nil {
			return nil, err
		}
		if m.Base != "" {
			m.Events = refsOf(chain[k.at.Seq:])
		} else if k.fork() {
			derived = append(derived, derivedDue(run, k.at))
		}
	}
	return append(derived, derivedOwn(run, k.own)), nil
}

func refsOf(chain []chainEvent) []EventRef {
	out := make([]EventRef, len(chain))
	for i, c := range chain {
		out[i] = EventRef{c.seq, c.name.link()}
	}
	return out
}

// arrival is a run that came to a store, or went on there, with its own part.
type arrival struct {
	run   protocol.RunID
	first protocol.Seq
	own   []chainEvent
}

// arrived is the arrival of a run with a whole chain, which it does not keep.
func arrived(run protocol.RunID, chain []chainEvent, k kin) arrival {
	return arrival{run, k.own.Seq, slices.Clone(chain[k.own.Seq-1:])}
}

// has reports whether the own part of the run holds an event.
func (a arrival) has(sum string, seq protocol.Seq) bool {
	i := int(seq - a.first)
	return i >= 0 && i < len(a.own) && string(a.own[i].name.sum[:]) == sum
}

// relate gives the forks that waited for runs which have come now their base.
func relate(ctx context.Context, s Keeper, came []arrival) error {
	if len(came) == 0 {
		return nil
	}
	due, err := s.DerivedKeys(ctx, kinDue)
	if err != nil {
		return err
	}
	var found []Kinship
	var done []Derived
	for _, key := range due {
		sum, seq, fork, ok := dueIn(key)
		if i := slices.IndexFunc(came, func(a arrival) bool { return ok && a.run != fork && a.has(sum, seq) }); i >= 0 {
			found = append(found, Kinship{fork, came[i].run, seq})
			done = append(done, Derived{Key: key})
		}
	}
	if len(found) == 0 {
		return nil
	}
	if err := s.SetBases(ctx, found); err != nil {
		return err
	}
	return s.Commit(ctx, Batch{Derived: done}) // behind a kill before this they are found again
}

// SetBases notes what forks share with runs. A fork that has a base keeps it, and one that is gone, or whose base is, is passed over. It is for the caller
// to have compared their events.
func (s *Store) SetBases(ctx context.Context, all []Kinship) error {
	return s.update(ctx, func(tx *bolt.Tx) error {
		refs, bases := tx.Bucket(bucketRefs), sub(tx, indexBases)
		for _, x := range all {
			fork, base := protocol.RunHead(x.Fork), protocol.RunHead(x.Base)
			if refs.Get([]byte(fork)) == nil || refs.Get([]byte(base)) == nil || bases.Get([]byte(fork)) != nil {
				continue
			}
			if err := setBase(tx, fork, baseValue(base, x.Shared)); err != nil {
				return err
			}
		}
		return nil
	})
}

// goneKin are the keys that belong to runs which are gone: a deletion leaves them, and they lead nowhere.
func goneKin(ctx context.Context, s Lists) (keys []string, err error) {
	all, err := s.DerivedKeys(ctx, kinPrefix) // before the heads: a run that begins has both at once
	if err != nil {
		return nil, err
	}
	heads, err := s.Heads(ctx, protocol.RunHead(""))
	if err != nil {
		return nil, err
	}
	there := make(map[string]bool, len(heads))
	for _, h := range heads {
		there[string(protocol.RunOf(h.Name))] = true
	}
	return slices.DeleteFunc(all, func(key string) bool { return there[key[strings.LastIndexByte(key, '/')+1:]] }), nil
}
