package render

import (
	"fmt"
	"slices"
	"strings"

	"wf/api"
	"wf/protocol"
)

// TellTrust shows a person what is to be trusted.
func (p *Printer) TellTrust(all []api.TrustQuestion) {
	for _, q := range all {
		p.Progress("%s %s (%s): %s", q.CID, Visible(q.Name), Visible(q.File), q.Does)
		if q.Change != "" {
			p.Progress("%s", Visible(q.Change))
		}
		if len(q.Acts) > 0 {
			p.TellActs("    ", q.Acts)
		}
	}
}

// TellActs shows a person what is run beyond the sandbox.
func (p *Printer) TellActs(indent string, acts []string) {
	for _, act := range acts {
		p.Progress("%s%s", indent, IndentLines(Visible(act), indent+"  "))
	}
	if len(acts) == 0 {
		p.Progress("%snothing outside of the sandbox", indent)
	}
}

// ShowTrust writes whether what the configs want is trusted.
func (p *Printer) ShowTrust(file string, trusted bool, powers []string) error {
	return p.Say(map[string]any{"schema": "wf.trust/v1", "file": file, "trusted": trusted, "powers": powers},
		"%s: %s\n", file, map[bool]string{true: "trusted", false: "not trusted"}[trusted])
}

// ShowTrusted writes what is trusted, and what waits for that.
func (p *Printer) ShowTrusted(all []api.Trusted) error {
	if p.AsJSON() {
		return p.Answer(map[string]any{"schema": "wf.trusted/v1", "items": all})
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(p.Out, "nothing here needs trust")
		return err
	}
	var lines [][]string
	for _, r := range all {
		state := map[bool]string{true: "trusted", false: "waits"}[r.Trusted]
		lines = append(lines, []string{state, r.Power, Visible(r.Name), r.CID, Visible(r.File)})
	}
	return Table(p.Out, lines)
}

// mostListed is how many runs, and commands of one, people are shown.
const mostListed = 20

// TellAdoptable tells people what they are about to adopt.
func (p *Printer) TellAdoptable(list []api.Adoptable) {
	count := map[protocol.RunStatus]int{}
	for _, x := range list {
		count[x.Status]++
	}
	var counts []string
	for _, status := range []protocol.RunStatus{protocol.Queued, protocol.Running, protocol.Waiting, protocol.Suspended, protocol.Done, protocol.Failed, protocol.Cancelled} {
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
		p.TellActs("      ", x.Runs[:min(len(x.Runs), mostListed)])
		if more := len(x.Runs) - mostListed; more > 0 {
			p.Progress("      … and %d more; wf show %s", more, x.ID)
		}
	}
}
