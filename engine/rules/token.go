package rules

import (
	"maps"

	"wf/protocol"
)

// records are the StepRecords of a completed activation, in item order; the Start for START.
func (a *act) records() []protocol.Link {
	switch {
	case a.N == startNode:
		return a.Links
	case a.offer != nil && a.offer.records != nil:
		return a.offer.records
	}
	out := make([]protocol.Link, 0, len(a.visits))
	for _, v := range a.visits {
		out = append(out, v.Record)
	}
	return out
}

// complete turns an activation into a token, once all its visits have ended.
func (s *State) complete(a *act) {
	failed := false
	for _, v := range a.visits {
		failed = failed || v.Status == protocol.StepFailed
	}
	s.offers(a, a.token(failed, s.equalItems()))
	s.tidy()
}

// token is what a hands on; equal is the rule for equal items.
func (a *act) token(failed bool, equal equalItems) *offer {
	o := &offer{failed: failed, latest: a.latest, convs: a.convs}
	if a.N == startNode {
		return o
	}
	o.records = a.records()
	o.latest = maps.Clone(a.latest)
	o.latest[a.Role] = &ref{N: a.N, Records: o.records, Batch: a.batch(), Kept: a.kept()}
	o.convs = maps.Clone(a.convs)
	o.convs[a.Role] = a.convs[a.Role].with(a, equal)
	return o
}
