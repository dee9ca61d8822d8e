package rules

import (
	"maps"

	"wf/protocol"
)

// records are the StepRecords of a completed activation, in item order; the Start for START.
func (a *act) records() []protocol.Link {
	switch {
	case a.n == startNode:
		return a.links
	case a.offer != nil && a.offer.records != nil:
		return a.offer.records
	}
	out := make([]protocol.Link, 0, len(a.visits))
	for _, v := range a.visits {
		out = append(out, v.record)
	}
	return out
}

// complete turns an activation into a token, once all its visits have ended.
func (s *State) complete(a *act) {
	failed := false
	for _, v := range a.visits {
		failed = failed || v.status == protocol.StepFailed
	}
	s.offers(a, a.token(failed, s.equalItems()))
	s.tidy()
}

// token is what a hands on; equal is the rule for equal items.
func (a *act) token(failed bool, equal equalItems) *offer {
	o := &offer{failed: failed, latest: a.latest, convs: a.convs}
	if a.n == startNode {
		return o
	}
	o.records = a.records()
	o.latest = maps.Clone(a.latest)
	o.latest[a.role] = &ref{n: a.n, records: o.records, batch: a.batch()}
	o.convs = maps.Clone(a.convs)
	o.convs[a.role] = a.convs[a.role].with(a, equal)
	return o
}
