package render

import (
	"fmt"
	"strings"

	"wf/api"
	"wf/protocol"
)

// reusedFromMax is how many runs are named of which results were taken.
const reusedFromMax = 3

// Reused says how much of a run was performed, where a step of it took an earlier result.
func Reused(v *api.Run) string {
	r := v.Reuse
	from := ""
	switch n := len(r.From); {
	case n == 0 || v.Total > len(v.Steps):
		from = " from earlier runs"
	case n == 1:
		from = " from run " + string(r.From[0])
	case n <= reusedFromMax:
		names := make([]string, n)
		for i, run := range r.From {
			names[i] = string(run)
		}
		from = " from the runs " + strings.Join(names, ", ")
	default:
		from = fmt.Sprintf(" from %d runs", n)
	}
	switch {
	case !v.Status.Final():
		return fmt.Sprintf("so far: %s reused%s, %d performed", protocol.Plural(r.Reused, "step"), from, r.Performed)
	case r.Performed > 0 && r.Reused == 1:
		return fmt.Sprintf("%s performed, 1 was reused%s", were(r.Performed), from)
	case r.Performed > 0:
		return fmt.Sprintf("%s performed, %d were reused%s", were(r.Performed), r.Reused, from)
	case r.Reused == 1:
		return "nothing was performed: the one step was reused" + from
	}
	return fmt.Sprintf("nothing was performed: all %d steps were reused%s", r.Reused, from)
}

// were is a number of steps as the beginning of a sentence about them.
func were(n int) string {
	if n == 1 {
		return "1 step was"
	}
	return protocol.Plural(n, "step") + " were"
}
