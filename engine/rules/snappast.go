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
	allRefs  []snapRef
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

// offer is what the token of an activation adds to its history; −1 for the one of START.
func (p *snapPast) offer(a *act) (ref, convs int) {
	if a.n == startNode {
		return -1, -1
	}
	return p.ref(a.offer.latest[a.role]), p.conv(a.offer.convs[a.role])
}

func (p *snapPast) ref(r *ref) int {
	i, ok := p.refs[r]
	if !ok {
		i = len(p.allRefs)
		p.refs[r] = i
		p.allRefs = append(p.allRefs, snapRef{r.n, r.records, r.batch})
	}
	return i
}

func (p *snapPast) conv(c *conversations) int {
	i, ok := p.convs[c]
	if !ok {
		i = len(p.allConvs)
		p.convs[c] = i
		p.allConvs = append(p.allConvs, snapConvsOf(c))
	}
	return i
}

func snapConvsOf(c *conversations) snapConvs {
	x := snapConvs{Plain: snapConvoOf(c.plain), Items: map[string][]*snapConvo{}}
	for value, list := range c.items {
		for _, i := range list {
			x.Items[value.String()] = append(x.Items[value.String()], snapConvoOf(i))
		}
	}
	return x
}

func snapConvoOf(c *convo) *snapConvo {
	if c == nil {
		return nil
	}
	return &snapConvo{c.n, c.record, c.visit, c.size}
}

// restoredPast is what the histories of a snapshot name.
type restoredPast struct {
	refs  []*ref
	convs []*conversations
}

func pastOf(in *Snapshot) (p restoredPast, err error) {
	for _, r := range in.Refs {
		p.refs = append(p.refs, &ref{r.N, r.Records, r.Batch})
	}
	for _, c := range in.Convs {
		x := &conversations{plain: c.Plain.convo(), items: map[protocol.Link][]*convo{}}
		for value, list := range c.Items {
			l, err := protocol.ParseLink(value)
			if err != nil {
				return p, err
			}
			for _, i := range list {
				x.items[l] = append(x.items[l], i.convo())
			}
		}
		p.convs = append(p.convs, x)
	}
	return p, nil
}

func (c *snapConvo) convo() *convo {
	if c == nil {
		return nil
	}
	return &convo{c.N, c.Record, c.Visit, c.Size}
}

// into gives an activation its history.
func (p restoredPast) into(a *act, h snapHistory) error {
	a.latest, a.convs = map[string]*ref{}, map[string]*conversations{}
	for role, i := range h.Latest {
		if i < 0 || i >= len(p.refs) {
			return lacksPast(a)
		}
		a.latest[role] = p.refs[i]
	}
	for role, i := range h.Convs {
		if i < 0 || i >= len(p.convs) {
			return lacksPast(a)
		}
		a.convs[role] = p.convs[i]
	}
	return nil
}

// token gives a token what it hands on.
func (p restoredPast) token(a *act, o *offer, x *snapOffer) error {
	o.latest, o.convs = a.latest, a.convs
	if a.n == startNode {
		return nil
	}
	if x.Ref < 0 || x.Ref >= len(p.refs) || x.Convs < 0 || x.Convs >= len(p.convs) {
		return lacksPast(a)
	}
	o.latest, o.convs = maps.Clone(a.latest), maps.Clone(a.convs)
	o.latest[a.role], o.convs[a.role] = p.refs[x.Ref], p.convs[x.Convs]
	o.records = o.latest[a.role].records
	return nil
}

func lacksPast(a *act) error {
	return fmt.Errorf("snapshot: activation %d names what is not there", a.n)
}
