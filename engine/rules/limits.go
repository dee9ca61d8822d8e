package rules

import "wf/protocol"

// The names of the limits of a run.
const (
	LimitSteps    = "steps"
	LimitDuration = "duration"
	LimitTokens   = "tokens"
	LimitCost     = "cost_usd"
)

// picoPerMicro is how many pico-dollars a micro-dollar has.
const picoPerMicro = 1_000_000

// Breach is a limit of the run that was reached. Value and Max are steps, µs, tokens or micro-dollars.
type Breach struct {
	Limit      string
	Value, Max int64
	Estimated  int64 // of a Value in tokens: what no provider reported
}

// Breached reports the limit that forbids to go on at now (unix µs), nil where none does; of steps only
// when more of them wait. cost is what the model calls cost at least, in pico-dollars: what has no price
// is not counted, since a limit cannot hold what is not known. waited is for how long, in µs, all that runs waits for providers
// that are down: no time at work, and bounded by the same limit. Of a run that closes it is a bound of its always roles.
func (s *State) Breached(now, cost, waited int64, more bool) *Breach {
	if s.Closing != nil {
		return s.closingBreach(now)
	}
	t, l, active := &s.Totals, s.Limits, s.active(now)+waited
	switch {
	case l.Cost > 0 && cost >= l.Cost*picoPerMicro:
		return &Breach{Limit: LimitCost, Value: cost / picoPerMicro, Max: l.Cost}
	case l.Tokens > 0 && t.Input+t.Output+t.Estimated >= l.Tokens:
		return &Breach{Limit: LimitTokens, Value: t.Input + t.Output + t.Estimated, Max: l.Tokens, Estimated: t.Estimated}
	case l.Duration > 0 && active >= l.Duration:
		return &Breach{Limit: LimitDuration, Value: active, Max: l.Duration}
	case more && l.Steps > 0 && t.Steps >= l.Steps:
		return &Breach{Limit: LimitSteps, Value: int64(t.Steps), Max: int64(l.Steps)}
	}
	return nil
}

// Raised is limits after a change of one of them.
func Raised(limits protocol.Limits, d protocol.LimitChanged) protocol.Limits {
	switch d.Limit {
	case LimitSteps:
		limits.Steps = int(d.Max)
	case LimitDuration:
		limits.Duration = d.Max
	case LimitTokens:
		limits.Tokens = d.Max
	case LimitCost:
		limits.Cost = d.Max
	}
	return limits
}
