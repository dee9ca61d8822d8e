package rules

import (
	"math"
	"slices"
	"strconv"

	"wf/protocol"
)

// Defaults of a role's retry.
const (
	retryDelay    = 1_000_000  // µs
	retryMaxDelay = 60_000_000 // µs
	retryFactor   = 2
	retryJitter   = 0.2 // of the delay, to either side
)

// RetryAt says when a further attempt is due, in unix µs, after attempt, counted from 1, ended at now with
// a failure of class; ok is false when there is none. chance, from [0, 1), spreads the attempts of
// visits that failed together.
func RetryAt(r *protocol.Retry, class string, attempt int, now int64, chance float64) (due int64, ok bool) {
	if r == nil || attempt >= r.Attempts {
		return 0, false
	}
	if len(r.On) > 0 && !slices.Contains(r.On, "any") && !slices.Contains(r.On, class) {
		if class != "exit_75" || !slices.Contains(r.On, "exit_code") {
			return 0, false
		}
	}
	delay, most, factor := float64(r.Delay), float64(r.MaxDelay), float64(retryFactor)
	if r.Delay == 0 {
		delay = retryDelay
	}
	if r.MaxDelay == 0 {
		most = retryMaxDelay
	}
	if f, err := strconv.ParseFloat(r.Factor, 64); err == nil && f >= 1 {
		factor = f
	}
	delay = min(delay*math.Pow(factor, float64(attempt-1)), most)
	delay *= 1 + retryJitter*(2*chance-1)
	return now + max(1, int64(delay)), true
}
