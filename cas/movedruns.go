package cas

import (
	"cmp"
	"context"
	"maps"
	"slices"
)

// MovedRuns gives the heads of runs that moved, from look to look, to one goroutine: by Next, or by Due.
type MovedRuns struct {
	Store Lists

	moved func(ctx context.Context) (names []string, known bool, err error)
	known bool            // what moved since is all that the caller has not been given
	due   map[string]Head // by name
}

// headsAlone is how many heads are read one by one.
const headsAlone = 32

// Next are the heads of the runs that came or moved since the call before; of a run that went the head has a name alone. Where that is not known, as at
// the first call and behind an error, all is true, and they are those of all runs that there are.
func (m *MovedRuns) Next(ctx context.Context) (heads []Head, all bool, err error) {
	if m.moved == nil {
		m.moved = m.Store.Moved()
	}
	names, known, err := m.moved(ctx) // first: what moves from here on is named by the next call
	if err != nil {
		return nil, false, err
	}
	all = !known || !m.known
	m.known = false
	runs := map[string]bool{}
	for _, name := range names {
		if isRun(name) {
			runs[name] = true
		}
	}
	if all || len(runs) > headsAlone {
		newest, err := m.Store.Newest(ctx)
		if err != nil {
			return nil, false, err
		}
		for _, h := range newest {
			if all || runs[h.Name] {
				heads = append(heads, h)
				delete(runs, h.Name)
			}
		}
		if all {
			clear(runs)
		}
		for name := range runs {
			heads = append(heads, Head{Name: name})
		}
	} else {
		for name := range runs {
			h, err := m.Store.Head(ctx, name)
			if err != nil {
				return nil, false, err
			}
			h.Name = name
			heads = append(heads, h)
		}
	}
	m.known = true
	return heads, all, nil
}

// Due are the heads of the runs that came or moved and are not Done since, by name.
func (m *MovedRuns) Due(ctx context.Context) ([]Head, error) {
	heads, all, err := m.Next(ctx)
	if err != nil {
		return nil, err
	}
	if all {
		m.due = make(map[string]Head, len(heads))
	}
	for _, h := range heads {
		if h.Link.Defined() {
			m.due[h.Name] = h
		} else {
			delete(m.due, h.Name)
		}
	}
	return slices.SortedFunc(maps.Values(m.due), func(a, b Head) int { return cmp.Compare(a.Name, b.Name) }), nil
}

// Done says that a head that was due is dealt with.
func (m *MovedRuns) Done(h Head) { delete(m.due, h.Name) }

// Forget has the next call give all heads.
func (m *MovedRuns) Forget() { m.known = false }
