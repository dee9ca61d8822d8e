package query

import (
	"wf/cas"
	"wf/protocol"
)

// Report is what a verification found, as it is shown: with empty lists in the place of none.
func Report(r cas.Report) *protocol.Report {
	r.Findings, r.NotProven = append([]cas.Finding{}, r.Findings...), append([]string{}, r.NotProven...)
	return &r.Report
}
