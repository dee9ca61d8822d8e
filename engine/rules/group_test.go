package rules

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"wf/protocol"
)

// shelf is a store of one group: it moves only from what the writer last saw.
type shelf struct {
	g       protocol.Group
	version int
}

func (s *shelf) commit(seen int, g Group) bool {
	if seen != s.version {
		return false
	}
	s.g, s.version = g.Group, s.version+1
	return true
}

// member is a process with a run, and what it last read of the group.
type member struct {
	entry  Entry
	seen   Group
	at     int
	fresh  bool // it has read since its last commit
	wants  bool
	inside bool
	driven bool
	final  bool
}

// O-03b: whatever processes do, and in whatever order, a group has never more holders than slots, gives them in the
// order of asking to those that a process waits with, and loses none.
func TestO03bAModelOfManyProcesses(t *testing.T) {
	seed := rand.Uint64()
	for n := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, n))
		if err := simulate(r); err != nil {
			t.Fatalf("seed %d, %d: %v", seed, n, err)
		}
	}
}

func simulate(r *rand.Rand) error {
	slots, store := 1+r.IntN(3), &shelf{g: protocol.Group{Name: "g"}}
	members := make([]*member, 2+r.IntN(8))
	byRun := map[protocol.RunID]*member{}
	for i := range members {
		run := protocol.RunID(fmt.Sprint("R", i))
		u := protocol.Use{Run: run}
		members[i] = &member{entry: Entry{Use: u, Root: run, Within: []protocol.Use{u}, Max: slots}, driven: true, wants: true}
		byRun[run] = members[i]
	}
	check := func() error {
		inside := 0
		for _, m := range members {
			if m.inside {
				inside++
			}
			if held := (&Group{store.g}).Has(m.entry.Use); m.inside && !m.final && !held {
				return fmt.Errorf("%s acts and holds no slot: %+v", m.entry.Run, store.g)
			}
		}
		if inside > slots || len(store.g.Slots) > slots {
			return fmt.Errorf("%d act on %d slots: %+v", inside, slots, store.g)
		}
		if !slices.IsSortedFunc(store.g.Queue, func(a, b protocol.Claim) int { return int(a.Ticket - b.Ticket) }) {
			return fmt.Errorf("the queue has no order: %+v", store.g.Queue)
		}
		return nil
	}
	act := func(m *member, killed bool) error {
		if !m.fresh {
			m.seen, m.at, m.fresh = Group{store.g}, store.version, true
			return nil // and others go on before it decides
		}
		m.fresh = false
		g := m.seen
		switch {
		case m.inside: // ends, or dies
			if killed {
				m.driven = false
				return nil
			}
			g.Sweep(func(u protocol.Use) bool { return u == m.entry.Use })
			if store.commit(m.at, g) {
				m.inside, m.final = false, true
			}
		case killed:
			m.driven = false
		default:
			var before []protocol.Claim
			room := g.Room(m.entry, func(c protocol.Claim) bool { return !byRun[c.Run].driven })
			if room {
				before = g.Group.Queue
				g.Enter(m.entry)
			} else {
				g.Queue(m.entry)
			}
			if store.commit(m.at, g) && room {
				m.inside = true
				for _, c := range before {
					if c.Run == m.entry.Run {
						break
					}
					if byRun[c.Run].driven {
						return fmt.Errorf("%s passes %s, which waits before it", m.entry.Run, c.Run)
					}
				}
			}
		}
		return nil
	}
	for range 40 * len(members) {
		m := members[r.IntN(len(members))]
		switch {
		case m.final:
		case !m.driven: // driven again, or cancelled
			m.driven, m.fresh = r.IntN(2) == 0, false
			if !m.driven && r.IntN(4) == 0 {
				m.final, m.inside = true, false
			}
		default:
			if err := act(m, r.IntN(12) == 0); err != nil {
				return err
			}
		}
		if r.IntN(8) == 0 { // what has ended without a word is swept out
			g := Group{store.g}
			if g.Sweep(func(u protocol.Use) bool { return byRun[u.Run].final }) {
				store.commit(store.version, g)
			}
		}
		if err := check(); err != nil {
			return err
		}
	}
	for range 2000 * len(members) { // all go on to their end, and nothing is left
		open := slices.IndexFunc(members, func(m *member) bool { return !m.final })
		if open < 0 {
			g := Group{store.g}
			g.Sweep(func(u protocol.Use) bool { return byRun[u.Run].final })
			if len(g.Slots)+len(g.Group.Queue) > 0 {
				return fmt.Errorf("left behind: %+v", g)
			}
			return nil
		}
		g := Group{store.g}
		if g.Sweep(func(u protocol.Use) bool { return byRun[u.Run].final }) {
			store.commit(store.version, g)
		}
		m := members[r.IntN(len(members))]
		if m.driven = true; m.final {
			continue
		}
		if err := act(m, false); err != nil {
			return err
		}
		if err := check(); err != nil {
			return err
		}
	}
	return fmt.Errorf("not all end: %+v", store.g)
}

func TestO03bWhatSharesASlot(t *testing.T) {
	root, sub, step := protocol.Use{Run: "R"}, protocol.Use{Run: "S"}, protocol.Use{Run: "R", Step: "a#1"}
	entry := func(u protocol.Use, within ...protocol.Use) Entry {
		return Entry{Use: u, Root: "R", Within: within, Max: 1}
	}
	none := func(protocol.Claim) bool { return false }
	for _, c := range []struct {
		name  string
		holds Entry
		wants Entry
		want  bool
	}{
		{"a sub-workflow, of its root", entry(root, root), entry(sub, sub, step, root), true},
		{"a sub-workflow, of the step that it is of", entry(step, root), entry(sub, sub, step, root), true},
		{"a sub-workflow, of one beside it", entry(protocol.Use{Run: "T"}), entry(sub, sub, step, root), true},
		{"an attempt, of its run", entry(root, root), entry(step, root), true},
		{"an attempt, of one beside it", entry(protocol.Use{Run: "R", Step: "a#2"}, root), entry(step, root), false},
		{"an attempt in a sub-workflow, of the step around", entry(step, root), entry(protocol.Use{Run: "S", Step: "x#1"}, sub, step, root), true},
		{"another run", entry(root, root), Entry{Use: protocol.Use{Run: "X"}, Root: "X", Max: 1}, false},
	} {
		g := &Group{}
		g.Enter(c.holds)
		if got := g.Room(c.wants, none); got != c.want {
			t.Errorf("%s: %v", c.name, got)
			continue
		}
		if !c.want {
			continue
		}
		g.Enter(c.wants)
		g.Sweep(func(u protocol.Use) bool { return u == c.holds.Use })
		if len(g.Slots) != 1 || !g.Has(c.wants.Use) {
			t.Errorf("%s: the slot is gone with the first: %+v", c.name, g)
		}
		g.Sweep(func(u protocol.Use) bool { return u == c.wants.Use })
		if len(g.Slots) != 0 {
			t.Errorf("%s: the slot stays: %+v", c.name, g)
		}
	}
}

// An attempt that is performed again has its slot in a block of another CID: no process that saw it unused takes it away.
func TestO03bToEnterAgainMovesTheBlock(t *testing.T) {
	g := &Group{}
	x := Entry{Use: protocol.Use{Run: "R", Step: "a#1"}, Root: "R", Max: 1}
	first := g.Enter(x)
	if again := g.Enter(x); again == first || len(g.Slots) != 1 {
		t.Errorf("ticket %d after %d, %+v", again, first, g.Slots)
	}
	waits := Entry{Use: protocol.Use{Run: "S"}, Root: "S", Max: 1}
	ticket := g.Queue(waits)
	if again := g.Queue(waits); again != ticket || len(g.Group.Queue) != 1 {
		t.Errorf("ticket %d after %d, %+v", again, ticket, g.Group.Queue)
	}
	g.Sweep(func(u protocol.Use) bool { return u == x.Use })
	if entered := g.Enter(waits); entered != ticket || len(g.Group.Queue) != 0 {
		t.Errorf("it waited with ticket %d and enters with %d, %+v", ticket, entered, g.Group.Queue)
	}
}
