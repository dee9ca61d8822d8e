package render

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"wf/api"
	"wf/cmd/internal/plain"
	"wf/protocol"
)

// Visible is a text that came from elsewhere: it must not move the cursor, change the colours, turn what
// stands beside it, or hide. A screen sees to that too; here it has the width that it is shown with.
func Visible(s string) string { return plain.Visible(s) }

// OneLine is the first line of a text, cut to n runes.
func OneLine(s string, n int) string {
	s, _, more := strings.Cut(strings.TrimSpace(Visible(s)), "\n")
	s = strings.ReplaceAll(s, "\t", " ")
	r := []rune(s)
	switch {
	case len(r) > n && n > 0:
		return string(r[:n-1]) + "…"
	case more:
		return s + " …"
	}
	return s
}

// IndentLines sets all lines but the first of a text in.
func IndentLines(s, indent string) string {
	return strings.ReplaceAll(strings.TrimRight(Visible(s), "\n"), "\n", "\n"+indent)
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// Because is a reason behind a colon, "" for none.
func Because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// both are two texts on one line, or the one that there is.
func both(a, b string) string {
	if a != "" && b != "" {
		return a + "; " + b
	}
	return a + b
}

// ShortCID is what screens show of a CID.
func ShortCID(cid string) string {
	l, err := protocol.ParseLink(cid)
	if err != nil {
		return cid
	}
	return l.Short()
}

// ShortOf is ShortCID of a CID that may be missing.
func ShortOf(cid *string) string {
	if cid == nil {
		return ""
	}
	return ShortCID(*cid)
}

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
	if d.Held > 0 && d.Stop != protocol.StopOverflow {
		text += fmt.Sprintf("  about %d more, by an estimate", d.Held)
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

// Wall is how long a run took by the clock from its first event to its end, or until now.
func Wall(status protocol.RunStatus, started, updated api.Time, now time.Time) time.Duration {
	from, err := time.Parse(time.RFC3339, started)
	if err != nil {
		return 0
	}
	if status.Final() {
		if now, err = time.Parse(time.RFC3339, updated); err != nil {
			return 0
		}
	}
	return max(0, now.Sub(from))
}

// Took is how long a run took by the clock, and how long something was at work.
func Took(v *api.Run) string {
	return Span(Wall(v.Status, v.Started, v.Updated, time.Now())) + ", " + Span(time.Duration(v.ActiveMS)*time.Millisecond) + " at work"
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

// grouped is a number with commas between thousands.
func grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// priced is an amount of dollars, to the cent or to a hundredth of one where it is less.
func priced(usd float64) string {
	if usd > 0 && usd < 0.01 {
		return fmt.Sprintf("$%.4f", usd)
	}
	return fmt.Sprintf("$%.2f", usd)
}
