package rulestest

import (
	"slices"

	"pgregory.net/rapid"

	"wf/protocol"
)

// Asking draws the times, in µs, and the people of a question: such as lint accepts.
func Asking(t *rapid.T) *protocol.Asking {
	people := func(what string) []string {
		out := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"anna", "ben", "carla", "dora"}), 0, 3, rapid.ID).Draw(t, what)
		slices.Sort(out)
		return out
	}
	a := &protocol.Asking{Timeout: rapid.Int64Range(0, 12).Draw(t, "timeout"), Assignees: people("assignees")}
	last := int64(12)
	if a.Timeout > 0 {
		last = a.Timeout - 1
		for range rapid.IntRange(0, protocol.EscalateMax).Draw(t, "levels") {
			a.Escalate = append(a.Escalate, people("escalate"))
		}
	}
	if last > 0 {
		a.Remind = rapid.SliceOfNDistinct(rapid.Int64Range(1, last), 0, int(min(last, 4)), rapid.ID).Draw(t, "remind")
		slices.Sort(a.Remind)
	}
	return a
}
