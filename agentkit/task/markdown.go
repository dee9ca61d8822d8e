package task

import (
	"fmt"
	"strings"
	"time"

	"wf/protocol"
)

// Markdown is a task as a page. cost is in pico-dollars, nil where a price is not known.
func (t *Task) Markdown(cost *int64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Task: %s\n\n## Metadata\n\n", t.Goal)
	meta := func(name, value string) { fmt.Fprintf(&b, "- **%s:** %s\n", name, value) }
	meta("ID", "`"+t.ID+"`")
	meta("Status", t.standing())
	meta("Created", clock(t.Created))
	if t.Completed > 0 {
		meta("Completed", clock(t.Completed))
		meta("Duration", Duration(seconds(t.Completed)-seconds(t.Created)))
	}
	meta("Cost", Dollars(cost))
	meta("Tokens", t.Tokens().String())

	section := func(name, body string) {
		if strings.TrimSpace(body) == "" {
			body = "(none)"
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", name, strings.Trim(body, "\n"))
	}
	section("Goal", t.Goal)
	section("Original Message", t.Original)
	if t.Completed == 0 && t.Question != "" {
		section("Question", t.Question)
	}
	section("Final State", t.State)
	section("Final Response", t.FinalResponse)
	section("Summary", t.Summary)
	return b.String()
}

func (t *Task) standing() string {
	if t.Failed {
		return "failed"
	}
	return string(t.Status)
}

// Sign is how a task stands, as one character.
func (t *Task) Sign() string {
	switch {
	case t.Failed:
		return "✗"
	case t.Status == protocol.TaskWaiting:
		return "⏸"
	case t.Status == protocol.TaskCompleted:
		return "✓"
	}
	return "▶"
}

// seconds is a time in whole seconds, as pages show it.
func seconds(us int64) int64 { return time.UnixMicro(us).Unix() }

func clock(us int64) string { return time.UnixMicro(us).UTC().Format(time.RFC3339) }

// Duration is a number of seconds in words: 5 minutes 42 seconds.
func Duration(seconds int64) string {
	var parts []string
	for _, unit := range []struct {
		name string
		size int64
	}{{"day", 86400}, {"hour", 3600}, {"minute", 60}, {"second", 1}} {
		n := seconds / unit.size
		seconds -= n * unit.size
		switch {
		case n == 1:
			parts = append(parts, "1 "+unit.name)
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d %ss", n, unit.name))
		}
	}
	if len(parts) == 0 {
		return "0 seconds"
	}
	return strings.Join(parts, " ")
}

// Dollars is a cost in cents, in hundredths of a cent where it is less than one.
func Dollars(pico *int64) string {
	switch {
	case pico == nil:
		return "unknown"
	case *pico > 0 && *pico < 1e10:
		return fmt.Sprintf("$%.4f", float64(*pico)/1e12)
	}
	return fmt.Sprintf("$%.2f", float64(*pico)/1e12)
}

// String is the sum as pages show it: 5.7K in (3 new + 0 cached + 5.7K write) / 287 out.
func (t Tokens) String() string {
	if !t.Told {
		return "unknown"
	}
	return fmt.Sprintf("%s in (%s new + %s cached + %s write) / %s out",
		Count(t.In()), Count(t.New), Count(t.Cached), Count(t.Written), Count(t.Output))
}

// Short is the sum in a few characters: 5.7K/287.
func (t Tokens) Short() string {
	if !t.Told {
		return "?"
	}
	return Count(t.In()) + "/" + Count(t.Output)
}

// Count is a number of tokens for people: 287, 5.7K, 1.2M.
func Count(n int64) string {
	switch {
	case n >= 999_950:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	case n >= 1_000:
		return fmt.Sprintf("%.1fK", float64(n)/1e3)
	}
	return fmt.Sprint(n)
}
