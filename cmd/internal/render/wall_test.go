package render

import (
	"testing"
	"time"

	"wf/api"
	"wf/protocol"
)

// By the clock a run took until it ended, or has taken until now; the zone in which a time is written is the same to it.
func TestF310AWallClockStandsBesideTheTimeAtWork(t *testing.T) {
	now := time.Date(2026, 5, 1, 13, 0, 0, 0, time.UTC)
	const began, last = "2026-05-01T12:00:00.000000Z", "2026-05-01T14:01:44.000000+02:00"
	for status, want := range map[protocol.RunStatus]time.Duration{
		protocol.Done: 104 * time.Second, protocol.Failed: 104 * time.Second, protocol.Cancelled: 104 * time.Second,
		protocol.Running: time.Hour, protocol.Waiting: time.Hour, protocol.Suspended: time.Hour,
	} {
		if wall := Wall(status, began, last, now); wall != want {
			t.Errorf("%s: %s by the clock, not %s", status, wall, want)
		}
	}
	if wall := Wall(protocol.Running, began, began, now.Add(-2*time.Hour)); wall != 0 {
		t.Errorf("by a clock that is behind it took %s", wall)
	}
	v := &api.Run{Status: protocol.Done, Started: began, Updated: last, Spent: api.Spent{ActiveMS: 8100}}
	if got := Took(v); got != "1m44s, 8.1s at work" {
		t.Errorf("it took %s", got)
	}
}
