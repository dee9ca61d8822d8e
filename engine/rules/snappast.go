package rules

import (
	"fmt"
	"maps"
	"slices"

	"wf/protocol"
)

// snapPast gathers what the histories of a snapshot share, each once: behind a fan-out every
// activation has its thousands of records among its ancestors.
type snapPast struct {
	refs     map[*ref]int
	convs    map[*conversations]int
	allRefs  []*ref
	allConvs []snapConvs
}

// of is the history of an activation.
func (p *snapPast) of(a *act) snapHistory {
	h := snapHistory{map[string]int{}, map[string]int{}}
	for _, role := range slices.Sorted(maps.Keys(a.latest)) {
		h.Latest[role] = p.ref(a.latest[role])
	}
	for _, role := range slices.Sorted(maps.Keys(a.convs)) {
		h.Convs[role] = p.conv(a.convs[role])
	}
	return h
}

// offer is the token of an activation, with what it adds to the history; −1 for the one of START.
func (p *snapPast) offer(a *act) *snapOffer {
	o := a.offer
	x := &snapOffer{Failed: o.failed, Closed: o.closed, Granted: slices.Sorted(maps.Keys(o.granted)), Ref: -1, Convs: -1}
	for _, part := range slices.Sorted(maps.Keys(o.taken)) {
		x.Taken = append(x.Taken, snapTaken{part, slices.Sorted(maps.Keys(o.taken[part]))})
	}
	if a.N != startNode {
		x.Ref, x.Convs = p.ref(o.latest[a.Role]), p.conv(o.convs[a.Role])
	}
	return x
}

func (p *snapPast) ref(r *ref) int {
	i, ok := p.refs[r]
	if !ok {
		i = len(p.allRefs)
		p.refs[r] = i
		p.allRefs = append(p.allRefs, r)
	}
	return i
}

func (p *snapPast) conv(c *conversations) int {
	i, ok := p.convs[c]
	if !ok {
		i = len(p.allConvs)
		p.convs[c] = i
		x := snapConvs{c.plain, map[string][]*convo{}}
		for value, list := range c.items {
			x.Items[value.String()] = list
		}
		p.allConvs = append(p.allConvs, x)
	}
	return i
}

// restoredPast is what the histories of a snapshot name.
type restoredPast struct {
	refs  []*ref
	convs []*conversations
}

func pastOf(in *Snapshot) (p restoredPast, err error) {
	p.refs = in.Refs
	for _, c := range in.Convs {
		x := &conversations{plain: c.Plain, items: map[protocol.Link][]*convo{}}
		for value, list := range c.Items {
			l, err := protocol.ParseLink(value)
			if err != nil {
				return p, err
			}
			x.items[l] = list
		}
		p.convs = append(p.convs, x)
	}
	return p, nil
}

// into gives an activation its history.
func (p restoredPast) into(a *act, h snapHistory) (err error) {
	a.latest, a.convs = map[string]*ref{}, map[string]*conversations{}
	for role, i := range h.Latest {
		if a.latest[role], err = pick(a, p.refs, i); err != nil {
			return err
		}
	}
	for role, i := range h.Convs {
		if a.convs[role], err = pick(a, p.convs, i); err != nil {
			return err
		}
	}
	return nil
}

// offer is the token of an activation that has its history.
func (p restoredPast) offer(a *act, x *snapOffer) (*offer, error) {
	o := &offer{failed: x.Failed, closed: x.Closed, latest: a.latest, convs: a.convs}
	for _, part := range x.Granted {
		o.grant(part)
	}
	for _, t := range x.Taken {
		for _, name := range t.Targets {
			o.take(t.Part, name)
		}
	}
	if a.N == startNode {
		return o, nil
	}
	last, err := pick(a, p.refs, x.Ref)
	if err != nil {
		return nil, err
	}
	o.latest, o.convs = maps.Clone(a.latest), maps.Clone(a.convs)
	o.latest[a.Role], o.records = last, last.Records
	o.convs[a.Role], err = pick(a, p.convs, x.Convs)
	return o, err
}

// pick is what an activation names by its place in a list.
func pick[T any](a *act, list []*T, i int) (*T, error) {
	if i < 0 || i >= len(list) || list[i] == nil {
		return nil, fmt.Errorf("snapshot: activation %d names what is not there", a.N)
	}
	return list[i], nil
}
