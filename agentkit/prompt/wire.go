package prompt

import (
	"github.com/tmc/langchaingo/llms"

	"wf/protocol"
)

// Contents is messages as langchaingo has them.
func Contents(messages []protocol.Message) []llms.MessageContent {
	names := map[string]string{} // call id → tool
	out := make([]llms.MessageContent, 0, len(messages))
	for _, m := range messages {
		var c llms.MessageContent
		switch m.Role {
		case protocol.RoleSystem:
			c.Role = llms.ChatMessageTypeSystem
		case protocol.RoleAssistant:
			c.Role = llms.ChatMessageTypeAI
		case protocol.RoleTool:
			c.Role = llms.ChatMessageTypeTool
			c.Parts = []llms.ContentPart{llms.ToolCallResponse{ToolCallID: m.ToolCallID, Name: names[m.ToolCallID], Content: m.Content}}
			out = append(out, c)
			continue
		default:
			c.Role = llms.ChatMessageTypeHuman
		}
		if m.Content != "" {
			c.Parts = append(c.Parts, llms.TextContent{Text: m.Content})
		}
		for _, call := range m.ToolCalls {
			names[call.ID] = call.Name
			c.Parts = append(c.Parts, llms.ToolCall{ID: call.ID, Type: "function",
				FunctionCall: &llms.FunctionCall{Name: call.Name, Arguments: call.Arguments}})
		}
		out = append(out, c)
	}
	return out
}
