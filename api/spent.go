package api

import "wf/protocol"

// Spent is the time of a run: at work, and by the clock.
type Spent struct {
	ActiveMS int64 `json:"active_ms"`       // in which something was at work
	WallMS   int64 `json:"wall_ms"`         // from the first event to the newest, waits included
	Ended    *Time `json:"ended,omitempty"` // left out of a run that has not ended
}

// SpentOf is the time of a run, all in unix µs but for active, which is in µs.
func SpentOf(status protocol.RunStatus, started, updated, active int64) Spent {
	s := Spent{ActiveMS: active / 1000, WallMS: max(0, updated-started) / 1000}
	if status.Final() {
		s.Ended = new(string(protocol.AppendTime(nil, updated)))
	}
	return s
}
