package engine

import (
	"wf/api"
	"wf/engine/rules"
)

// timingOf is what the times of a run amount to.
func timingOf(sum rules.Times) api.Timing {
	t := api.Timing{TotalMS: sum.Total / 1000, TTFEMS: sum.TTFE / 1000, ToolsMS: sum.Tools / 1000, ToolCalls: sum.Calls}
	t.ThinkingMS = t.TotalMS - t.TTFEMS - t.ToolsMS
	if t.TotalMS > 0 {
		t.TTFEPct = (t.TTFEMS*100 + t.TotalMS/2) / t.TotalMS
		t.ToolsPct = min((t.ToolsMS*100+t.TotalMS/2)/t.TotalMS, 100-t.TTFEPct)
		t.ThinkingPct = 100 - t.TTFEPct - t.ToolsPct
	}
	return t
}
