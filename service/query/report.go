package query

import (
	"wf/api"
	"wf/cas"
)

// Report is what a verification found, as it is shown: with empty lists in the place of none.
func Report(r cas.Report) *api.Report {
	out := &api.Report{Schema: r.Schema, OK: r.OK, Checked: api.Checked(r.Checked), Findings: []api.Finding{}, NotProven: append([]string{}, r.NotProven...)}
	for _, f := range r.Findings {
		out.Findings = append(out.Findings, api.Finding(f))
	}
	return out
}
