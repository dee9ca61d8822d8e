package rulestest

import (
	"strings"

	"pgregory.net/rapid"
)

// Breaks is the always role of Closing that is made to fail.
const Breaks = "breaks"

// Closing gives some of the workflows that Flow draws always roles: they see how the run ends, what the roles before them
// did, and one of them may be Breaks.
func Closing(t *rapid.T, flow string) string {
	if rapid.IntRange(0, 2).Draw(t, "always") == 0 {
		return flow
	}
	roles := "  tidy: {set: {again: false, items: [], n: 0, saw: \"${{ run.verdict.status }} ${{ steps.r1?.output?.n ?? 'none' }}\"}}\n" +
		"  " + Breaks + ": {set: {again: false, items: [], n: 0}}\n" +
		"  report: {set: {again: false, items: [], n: 0, saw: \"${{ run.verdict.message }} ${{ steps.tidy?.output?.n ?? 'none' }}\"}}\n"
	names := rapid.SampledFrom([]string{"tidy", "tidy, report", "tidy, " + Breaks + ", report"}).Draw(t, "always roles")
	var used strings.Builder
	for line := range strings.Lines(roles) {
		if name, _, _ := strings.Cut(strings.TrimSpace(line), ":"); strings.Contains(names, name) {
			used.WriteString(line)
		}
	}
	return strings.Replace(flow, "\nedges:\n", "\n"+used.String()+"always: ["+names+"]\nedges:\n", 1)
}
