package rules_test

import (
	"testing"
	"time"

	"wf/engine/rules"
	"wf/protocol"
)

func TestTheDelayOfARetryGrowsToItsBound(t *testing.T) {
	r := &protocol.Retry{Attempts: 6, Delay: (10 * time.Second).Microseconds(), Factor: "3", MaxDelay: (80 * time.Second).Microseconds()}
	for attempt, want := range map[int]time.Duration{1: 10 * time.Second, 2: 30 * time.Second, 3: 80 * time.Second, 5: 80 * time.Second} {
		for chance, spread := range map[float64]time.Duration{0: want * 8 / 10, 0.5: want, 1: want * 12 / 10} {
			due, ok := rules.RetryAt(r, "timeout", attempt, 7, chance)
			if got := time.Duration(due-7) * time.Microsecond; !ok || got.Round(time.Millisecond) != spread {
				t.Errorf("after attempt %d by chance %v: %v, want %v", attempt, chance, got, spread)
			}
		}
	}
	if _, ok := rules.RetryAt(r, "timeout", 6, 0, 0); ok {
		t.Error("a seventh of six attempts")
	}
}
