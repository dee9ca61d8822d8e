package render

import (
	"fmt"
	"slices"
	"strings"

	"wf/api"
	"wf/protocol"
)

// mostListed is how many runs, and commands of one, people are shown.
const mostListed = 20

// TellAdoptable tells people what they are about to adopt.
func (p *Printer) TellAdoptable(list []api.Adoptable) {
	count := map[protocol.RunStatus]int{}
	for _, x := range list {
		count[x.Status]++
	}
	var counts []string
	for _, status := range []protocol.RunStatus{protocol.Running, protocol.Waiting, protocol.Suspended, protocol.Done, protocol.Failed, protocol.Cancelled} {
		if count[status] > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", count[status], status))
		}
	}
	p.Progress("%s from elsewhere: %s", protocol.Plural(len(list), "run"), strings.Join(counts, ", "))
	open := slices.DeleteFunc(slices.Clone(list), func(x api.Adoptable) bool { return x.Status.Final() || x.Parent != nil })
	for i, x := range open {
		if i == mostListed {
			p.Progress("  … and %d more that have not ended; -o json lists all", len(open)-i)
			break
		}
		older := ""
		if x.Why == protocol.ErrRolledBack.Code {
			older = ", older than what was seen of it: what came after is done again"
		}
		p.Progress("  %s  %s  %s%s; it may run", x.ID, Visible(x.Workflow), x.Status, older)
		for j, act := range x.Runs {
			if j == mostListed {
				p.Progress("      … and %d more; wf show %s", len(x.Runs)-j, x.ID)
				break
			}
			p.Progress("      %s", IndentLines(Visible(act), "        "))
		}
		if len(x.Runs) == 0 {
			p.Progress("      nothing outside of the sandbox")
		}
	}
}
