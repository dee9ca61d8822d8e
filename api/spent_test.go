package api

import (
	"encoding/json"
	"testing"

	"wf/protocol"
)

// A run of 104 seconds that was at work for 8.1 took 104 by the clock, and ended with its newest event.
func TestF310TheTimeOfARunIsThatOfTheClockToo(t *testing.T) {
	const began, last = 1_777_636_800_000_000, 1_777_636_904_000_000
	ended := `,"ended":"2026-05-01T12:01:44.000000Z"`
	for status, ended := range map[protocol.RunStatus]string{protocol.Done: ended, protocol.Failed: ended, protocol.Cancelled: ended, protocol.Running: "", protocol.Waiting: "", protocol.Suspended: ""} {
		got, err := json.Marshal(SpentOf(status, began, last, 8_100_000))
		if want := `{"active_ms":8100,"wall_ms":104000` + ended + "}"; err != nil || string(got) != want {
			t.Errorf("%s: %s, %v; not %s", status, got, err, want)
		}
	}
	if got := SpentOf(protocol.Done, last, began, 0); got.WallMS != 0 {
		t.Errorf("events out of order took %d ms", got.WallMS)
	}
}
