package rules

import "wf/protocol"

// Arrival is a token that has come to an end of the graph, and stays there.
type Arrival struct {
	Edge int    // index in the definition
	At   string // END, FAIL or SUSPEND
	Via  protocol.Via
}

// Arrivals are the tokens at the ends of the graph, in the order of their firings. Steps tell
// every other move of a run; these are its last ones, for which no step begins.
func (s *State) Arrivals() []Arrival {
	var out []Arrival
	for _, f := range s.firings() {
		if f.err != nil {
			continue
		}
		for _, t := range f.targets {
			switch t.node {
			case protocol.NodeEnd, protocol.NodeFail, protocol.NodeSuspend:
				out = append(out, Arrival{f.edge, t.node, t.via})
			}
		}
	}
	return out
}
