package modeltest

import (
	"encoding/json"
	"fmt"
	"regexp"
)

// openaiRequest is what the server looks at.
type openaiRequest struct {
	Messages []struct {
		Role       string
		Content    json.RawMessage
		ToolCallID string `json:"tool_call_id"`
		ToolCalls  []struct {
			ID       string
			Function struct{ Name, Arguments string }
		} `json:"tool_calls"`
	}
	Tools      *[]struct{ Function struct{ Name string } }
	ToolChoice json.RawMessage `json:"tool_choice"`
	Stream     bool
	Options    json.RawMessage `json:"stream_options"`
	idLength   int
}

const openaiIDLength = 64 // of a call

var openaiName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// openaiProblem is why OpenAI, or one of the servers that read the arguments of earlier calls, would refuse a request,
// "" for nothing. Ids of calls have at most idLength bytes.
func openaiProblem(body []byte, idLength int) string {
	req := openaiRequest{idLength: idLength}
	if err := json.Unmarshal(body, &req); err != nil {
		return err.Error()
	}
	if len(req.Messages) == 0 {
		return "Invalid 'messages': empty array. Expected an array with minimum length 1"
	}
	if req.Options != nil && !req.Stream {
		return "The 'stream_options' parameter is only allowed when 'stream' is enabled."
	}
	if why := req.toolProblem(); why != "" {
		return why
	}
	return req.messageProblem()
}

func (r *openaiRequest) toolProblem() string {
	if r.Tools == nil {
		if r.ToolChoice != nil {
			return "'tool_choice' is only allowed when 'tools' are specified."
		}
		return ""
	}
	if len(*r.Tools) == 0 {
		return "Invalid 'tools': empty array. Expected an array with minimum length 1"
	}
	names := map[string]bool{}
	for i, t := range *r.Tools {
		if name := t.Function.Name; !openaiName.MatchString(name) || names[name] {
			return fmt.Sprintf("Invalid 'tools[%d].function.name': %q does not match '%s', or is there twice", i, name, openaiName)
		}
		names[t.Function.Name] = true
	}
	return ""
}

// messageProblem looks at the messages, and whether each call has its result before anything else is said.
func (r *openaiRequest) messageProblem() string {
	open, ids := map[string]bool{}, map[string]bool{}
	for i, m := range r.Messages {
		content := string(m.Content)
		none := content == "" || content == "null" || content == "[]"
		switch {
		case m.Role == "tool" && !open[m.ToolCallID]:
			return fmt.Sprintf("messages with role 'tool' must be a response to a preceding message with 'tool_calls': messages[%d], %q", i, m.ToolCallID)
		case m.Role == "tool":
			delete(open, m.ToolCallID)
			continue
		case len(open) > 0:
			return fmt.Sprintf("An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id': messages[%d], %d left", i, len(open))
		case m.Role == "user" && (none || content == `""`):
			return fmt.Sprintf("messages[%d]: empty content", i)
		case m.Role == "assistant" && none && len(m.ToolCalls) == 0:
			return fmt.Sprintf("Invalid value for 'content' of messages[%d]: expected a string, got null", i)
		}
		for j, c := range m.ToolCalls {
			var arguments map[string]json.RawMessage
			at := fmt.Sprintf("messages[%d].tool_calls[%d]", i, j)
			switch {
			case c.ID == "" || len(c.ID) > r.idLength || ids[c.ID]:
				return fmt.Sprintf("Invalid '%s.id': %q is empty, longer than %d or there twice", at, c.ID, r.idLength)
			case !openaiName.MatchString(c.Function.Name):
				return fmt.Sprintf("Invalid '%s.function.name': %q does not match '%s'", at, c.Function.Name, openaiName)
			case json.Unmarshal([]byte(c.Function.Arguments), &arguments) != nil || arguments == nil:
				return fmt.Sprintf("Invalid '%s.function.arguments': %q is no JSON object", at, c.Function.Arguments)
			}
			open[c.ID], ids[c.ID] = true, true
		}
	}
	if len(open) > 0 {
		return fmt.Sprintf("%d calls have no result", len(open))
	}
	return ""
}
