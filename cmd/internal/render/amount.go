package render

import (
	"fmt"
	"time"

	"wf/protocol"
)

// tokens is what one model call used.
func tokens(d protocol.Usage) string {
	text := d.Model
	if d.Kind != protocol.UsageTurn {
		text += " for " + d.Kind
	}
	if d.Input != nil {
		text += fmt.Sprintf("  in %d", *d.Input)
	}
	if d.Cached != nil {
		text += fmt.Sprintf(" (cached %d)", *d.Cached)
	}
	if d.Output != nil {
		text += fmt.Sprintf("  out %d", *d.Output)
	}
	switch d.Stop {
	case protocol.StopLength:
		text += "  cut off"
	case protocol.StopRefused:
		text += "  refused"
	case protocol.StopGivenUp:
		text += "  given up before it answered"
	case protocol.StopOverflow:
		text += fmt.Sprintf("  refused: it holds %d tokens, the model reads %d", d.Held, d.Window)
	}
	if d.Child != nil {
		text += "  in run " + string(d.Child.Run)
	}
	return text
}

// amount is a value of a limit with its unit.
func amount(limit string, n int64) string {
	switch limit {
	case "cost_usd":
		return fmt.Sprintf("$%.4f", float64(n)/1e6)
	case "duration":
		return Span(time.Duration(n) * time.Microsecond)
	}
	return fmt.Sprint(n)
}

// Span is a duration for people: 12ms, 4.1s, 3m05s, 2h10m.
func Span(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// clock is a time of today, or a date, in the user's zone.
func clock(us int64) string {
	t := time.UnixMicro(us).Local()
	if time.Until(t).Abs() < 20*time.Hour {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04")
}

// used is what model calls used; what no provider told is a dash.
func used(u protocol.UsageSum) string {
	return fmt.Sprintf("in %s (cached %s) out %s", Count(u.Input), Count(u.Cached), Count(u.Output))
}

// Count is a number that is known, or a dash.
func Count(n *int64) string {
	if n == nil {
		return "–"
	}
	return fmt.Sprint(*n)
}
