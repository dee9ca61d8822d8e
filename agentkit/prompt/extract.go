package prompt

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"wf/protocol"
)

// Shares of an extract, in runes.
const (
	askedMax    = 240
	answeredMax = 480
	argsMax     = 160
)

// extractPast tells a conversation by the beginnings of its messages: the first, which holds
// the task or an earlier summary, at length, then as many of the newest as fit.
func extractPast(messages []protocol.Message, runes int) string {
	task := ""
	var entries []string
	for i := range messages {
		m := &messages[i]
		switch {
		case i == 0:
			task = Head(strings.TrimSpace(strings.TrimPrefix(m.Content, pastHeading)), runes/2)
		case m.Role == protocol.RoleUser:
			entries = append(entries, "Asked:\n\n"+quote(Head(m.Content, askedMax)))
		default:
			entries = append(entries, "Answered:\n\n"+quote(Head(m.Content, answeredMax)))
		}
	}
	return Join(task, newest(entries, runes-utf8.RuneCountInString(task)))
}

// extractWork tells calls and results by their beginnings.
func extractWork(tail []protocol.Message, runes int) string {
	var entries []string
	for i := range tail {
		m := &tail[i]
		switch m.Role {
		case protocol.RoleAssistant:
			most := answeredMax
			if i == 0 && len(m.ToolCalls) == 0 {
				most = runes / 2 // an earlier summary
			}
			var lines []string
			if strings.TrimSpace(m.Content) != "" {
				lines = append(lines, Head(strings.TrimSpace(m.Content), most))
			}
			for _, c := range m.ToolCalls {
				lines = append(lines, "Called "+c.Name+" "+Head(c.Arguments, argsMax))
			}
			entries = append(entries, strings.Join(lines, "\n"))
		case protocol.RoleTool:
			entries = append(entries, "It gave:\n\n"+quote(Head(m.Content, askedMax)))
		case protocol.RoleUser:
			if m.Content != goOn {
				entries = append(entries, "Told:\n\n"+quote(Head(m.Content, askedMax)))
			}
		}
	}
	return "What was done on this task so far:\n\n" + newest(entries, runes)
}

// newest joins the newest entries that fit, and says how many older ones do not.
func newest(entries []string, runes int) string {
	from := len(entries)
	for from > 0 {
		if runes -= utf8.RuneCountInString(entries[from-1]); runes < 0 {
			break
		}
		from--
	}
	parts := entries[from:]
	if from > 0 {
		parts = append([]string{fmt.Sprintf("…[%d older messages are left out]", from)}, parts...)
	}
	return Join(parts...)
}

// Head is the first runes of a text, with a mark where there were more.
func Head(s string, runes int) string {
	n := 0
	for at := range s {
		if n == runes {
			return strings.TrimRight(s[:at], " \n") + "…"
		}
		n++
	}
	return s
}

// quote sets a text off from the words around it.
func quote(s string) string {
	return "> " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n> ")
}
