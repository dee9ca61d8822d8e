package model

import "wf/protocol"

// A Sourced model tells what its answers follow from besides what it is sent, so that they can be reused. What a model that is
// none says is asked for each time.
type Sourced interface {
	// Sources are that, for the requests of a visit.
	Sources(r Request) []Source
}

// A Source is one of the things that answers follow from. Name tells people what it is, and never has a value of a secret.
type Source struct{ Name, Value string }

// VisitName names the visit of a request: role#visit, and role#visit[i] for an item.
func (r Request) VisitName() string {
	id := protocol.StepID{Role: r.Role, N: r.Visit, Index: -1}
	if r.Item != nil {
		id.Index = *r.Item
	}
	return id.String()
}
