package render

import (
	"fmt"

	"wf/api"
)

// TellTrust shows a person what is to be trusted.
func (p *Printer) TellTrust(all []api.TrustQuestion) {
	for _, q := range all {
		p.Progress("%s %s (%s): %s", q.CID, Visible(q.Name), Visible(q.File), q.Does)
		if q.Change != "" {
			p.Progress("%s", Visible(q.Change))
		}
		for _, act := range q.Acts {
			p.Progress("    %s", IndentLines(Visible(act), "      "))
		}
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
