package render

import (
	"fmt"
	"strings"

	"wf/api"
	"wf/protocol"
)

// Queued says what a run or a step waits for, by the place that it has; "" for none.
func Queued(q *api.QueuePlace) string {
	if q == nil {
		return ""
	}
	text := waitsForGroup(q.Group, q.Behind)
	if q.Ahead > 0 {
		text += fmt.Sprintf(", %d ahead of it", q.Ahead)
	}
	return text
}

// mostBehind is how many of what holds a group are named.
const mostBehind = 3

// waitsForGroup names a group and what holds it.
func waitsForGroup(group string, behind []string) string {
	text := "waits for the group " + OneLine(group, 60)
	if n := len(behind); n > mostBehind {
		return text + ", held by " + strings.Join(behind[:mostBehind], ", ") + fmt.Sprintf(" and %d more", n-mostBehind)
	}
	if len(behind) > 0 {
		text += ", held by " + strings.Join(behind, ", ")
	}
	return text
}

// queuedBehind tells of a run that is queued.
func queuedBehind(d protocol.QueuedFor) string {
	text := "queued for the group " + OneLine(d.Group, 60)
	if len(d.Behind) > 0 {
		text += " behind run " + string(d.Behind[len(d.Behind)-1])
	}
	return text
}

// Keeps says why a run that holds a group does not go on by itself, and what would make it; "" of one that does, or has ended.
func Keeps(group string, v *api.Run) string {
	why := State{Status: v.Status, Idle: v.Idle, Lacks: v.Lacks}.Why()
	switch {
	case v.Status == protocol.Suspended:
		why = "is suspended"
	case v.Status == protocol.Waiting:
		why = "waits"
		for _, w := range v.Waiting {
			if w.Kind != protocol.WaitTimer && w.Question != "" {
				why = fmt.Sprintf("waits: %s asks %q", w.Step, question(w.Question, 60))
				break
			}
		}
	case why != "":
		why = "does not go on: " + why
	}
	if why == "" {
		return ""
	}
	next := Next(v)
	if cancel := wf("cancel", string(v.ID)); !strings.Contains(next, cancel) {
		next += " · " + cancel
	}
	return fmt.Sprintf("the group %s is held by run %s, which %s; next %s", OneLine(group, 60), v.ID, why, next)
}
