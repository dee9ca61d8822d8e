package task

import (
	"fmt"
	"strings"

	"wf/protocol"
)

// SystemText tells an agent how a task works; the role's own prompt stands before it. Like
// OutputText and Block it is part of format 1 of the messages, and is never edited.
func SystemText() string { return text("system") }

// OutputText tells in which form the final response must be, "" for a role without a schema.
func OutputText(schema string) string {
	if schema == "" {
		return ""
	}
	return strings.Replace(text("output"), "{{schema}}", schema, 1)
}

// NudgeText asks an agent that stopped without a word on its task to go on.
func NudgeText() string { return text("nudge") }

// LastChanceText tells an agent that its turns are over.
func LastChanceText() string { return text("last_chance") }

// SummaryText asks for the summary of a completed task.
func SummaryText(spec *protocol.TaskSpec) string {
	return strings.Replace(text("summary"), "{{words}}", fmt.Sprint(Words(spec)), 1)
}
