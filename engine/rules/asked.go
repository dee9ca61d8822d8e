package rules

import "wf/protocol"

// Asked are the visits that the rules ask for at a point where d began: those of its role, of a
// fan-out the one of its item. skipped says that since a visit concluded as it began nothing has come but such visits and starts.
func (s *State) Asked(d protocol.StepStarted, skipped bool) (out []Decision, err error) {
	add := func(fan *fanOut) error {
		i := 0
		if d.Item != nil {
			i = d.Item.Index
		}
		if len(fan.values) == 0 {
			out = append(out, fan.base)
			return nil
		}
		if i >= len(fan.values) {
			return nil
		}
		x, err := s.item(fan, i)
		out = append(out, x)
		return err
	}
	if s.Closing != nil {
		if d.Via == protocol.ViaAlways && !s.Closing.Skipped {
			return s.nextAlways(), nil
		}
		return nil, nil
	}
	if a := s.sameFiring(d); a != nil && a.Of > 0 {
		fan, err := s.fanOf(a)
		if err != nil {
			return nil, err
		}
		return out, add(fan)
	}
	fs := s.firings()
	_, _, failed := s.toFail(fs)
	if failed && skipped && s.begun.Start.Semantics <= semanticsBehindFail {
		failed = false
	}
	if failed || s.Stopped {
		return nil, nil
	}
	for _, f := range fs {
		for _, t := range f.targets {
			if f.err != nil || t.done || t.node != d.Role {
				continue
			}
			if s.prog.Workflow.Edges[f.edge].ForEach == "" || t.via == protocol.ViaLimit {
				x, err := s.decision(f, t, 0)
				if err == nil {
					out = append(out, x)
				}
				continue
			}
			if fan, err := s.fanOut(f.edge, f.up, links(f.sources), t, 0); err == nil {
				if err := add(fan); err != nil {
					return nil, err
				}
			}
		}
	}
	return out, nil
}
