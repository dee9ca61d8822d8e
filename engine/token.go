package engine

import (
	"maps"

	"wf/protocol"
)

// records are the StepRecords of a completed activation, in item order; the Start for START.
func (a *act) records() []protocol.Link {
	if a.n == startNode {
		return a.links
	}
	out := make([]protocol.Link, 0, len(a.visits))
	for _, v := range a.visits {
		out = append(out, v.record)
	}
	return out
}

// complete turns an activation whose visits have all ended into a token.
func (s *State) complete(a *act) {
	failed := false
	for _, v := range a.visits {
		failed = failed || v.status == protocol.StepFailed
	}
	a.offer = a.token(failed)
	s.tidy()
}

// token is what a hands on.
func (a *act) token(failed bool) *offer {
	o := &offer{failed: failed, latest: a.latest, convs: a.convs}
	if a.n == startNode {
		return o
	}
	o.latest = maps.Clone(a.latest)
	o.latest[a.role] = ref{n: a.n, records: a.records(), batch: a.batch()}
	o.convs = maps.Clone(a.convs)
	o.convs[a.role] = a.convs[a.role].with(a)
	return o
}

// with adds where the visits of a leave their conversations.
func (c *conversations) with(a *act) *conversations {
	out := &conversations{}
	if c != nil {
		out.plain, out.items = c.plain, maps.Clone(c.items)
	}
	for _, v := range a.visits {
		next := v.end(a.n)
		if next == nil {
			continue
		}
		if v.item == nil {
			out.plain = next
			continue
		}
		if out.items == nil {
			out.items = map[protocol.Link]*convo{}
		}
		out.items[v.item.Value] = next
	}
	return out
}
