package task

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"wf/protocol"
)

// LimitWords cuts a text after so many words, with a mark where there were more. Line breaks
// between the words that stay are kept.
func LimitWords(s string, most int) string {
	words, in := 0, false
	for at, r := range s {
		switch {
		case unicode.IsSpace(r):
			in = false
		case !in:
			if words == most {
				return strings.TrimRightFunc(s[:at], unicode.IsSpace) + " …"
			}
			words, in = words+1, true
		}
	}
	return s
}

// GoalPrompt is the system message of the call that writes a goal; the message that set the
// task follows it.
func GoalPrompt() string { return text("goal") }

// Goal makes one line of at most protocol.TaskGoalMax runes from what a model wrote, or from the
// message itself where none did. "" is nothing that could be a goal.
func Goal(s string) string {
	for line := range strings.Lines(s) {
		if line = oneLine(line); line != "" {
			line = strings.TrimSpace(strings.TrimPrefix(line, "Goal:"))
			if t := strings.Trim(line, "\"'`*“”# "); t != "" {
				return cut(t, protocol.TaskGoalMax)
			}
		}
	}
	return ""
}

// GoalFromMessage is the goal where no model wrote one: the first runes of the message.
func GoalFromMessage(message string) string { return cut(oneLine(message), protocol.TaskGoalMax) }

// oneLine joins the words of a text, without what a terminal would act on.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

func cut(s string, runes int) string {
	if utf8.RuneCountInString(s) <= runes {
		return s
	}
	return string([]rune(s)[:runes])
}
