package prompt

import (
	_ "embed"
	"strings"

	"wf/agentkit/task"
	"wf/protocol"
)

// Bounds of what calls beside the turns of a visit read, in runes.
const (
	goalFrom        = 8_000 // of the message that sets a task
	outlineMessages = 20    // of a conversation, the newest
	outlineRunes    = 600   // of each
)

// ForGoal asks for the goal of a task, by the message that sets it.
func ForGoal(original string) []protocol.Message {
	return []protocol.Message{
		{Role: protocol.RoleSystem, Content: task.GoalPrompt()},
		{Role: protocol.RoleUser, Content: Head(original, goalFrom)},
	}
}

// ForTaskSummary asks for the summary of a task when its first pending call completes it, on the live
// prefix.
func (w *Work) ForTaskSummary() []protocol.Message {
	messages := w.Request()
	for _, r := range w.Ended() {
		messages = append(messages, protocol.Message{Role: protocol.RoleTool, ToolCallID: r.Call, Content: r.Content.S, IsError: r.IsError})
	}
	return append(messages, protocol.Message{Role: protocol.RoleUser, Content: task.SummaryText(w.turn.Role.Task)})
}

// ForOutcomeSummary asks for the summary of a task that a workflow carried out, by the message that
// set it and the final response.
func ForOutcomeSummary(message, response string, spec *protocol.TaskSpec) []protocol.Message {
	return []protocol.Message{
		{Role: protocol.RoleUser, Content: "A task was set by this message:\n\n" + quote(Head(message, goalFrom)) +
			"\n\nIts final response is:\n\n" + quote(Head(response, 2*goalFrom)) + "\n\n" + task.SummaryText(spec)},
	}
}

//go:embed reflect.md
var reflectText string

// ForReflection begins a reflection: on what a model has read, with what its memory holds.
func ForReflection(read []protocol.Message, known string) []protocol.Message {
	return []protocol.Message{
		{Role: protocol.RoleSystem, Content: strings.TrimSpace(reflectText)},
		{Role: protocol.RoleUser, Content: Join("## The conversation", outline(read), "## What is remembered", known)},
	}
}

// outline tells the newest messages by their beginnings.
func outline(messages []protocol.Message) string {
	var parts []string
	for i := max(0, len(messages)-outlineMessages); i < len(messages); i++ {
		m := &messages[i]
		if m.Role == protocol.RoleSystem {
			continue
		}
		who := map[string]string{protocol.RoleUser: "Asked:", protocol.RoleAssistant: "Answered:", protocol.RoleTool: "A tool gave:"}[m.Role]
		text := strings.TrimSpace(m.Content)
		for _, c := range m.ToolCalls {
			text = strings.TrimSpace(text + "\ncalled " + c.Name + " " + Head(c.Arguments, argsMax))
		}
		if text != "" {
			parts = append(parts, who+"\n\n"+quote(Head(text, outlineRunes)))
		}
	}
	return Join(parts...)
}
