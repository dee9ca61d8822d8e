package modeltest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// anthropicRequest is what the server looks at.
type anthropicRequest struct {
	Model     string
	MaxTokens int `json:"max_tokens"`
	Tools     []json.RawMessage
	System    contents
	Messages  []struct {
		Role    string
		Content contents
	}

	Thinking struct {
		Budget json.RawMessage `json:"budget_tokens"`
	}
}

// contents are blocks; a text is the short form of one.
type contents []json.RawMessage

func (c *contents) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		*c = contents{json.RawMessage(compact(map[string]any{"type": "text", "text": text}))}
		return nil
	}
	return json.Unmarshal(b, (*[]json.RawMessage)(c))
}

// anthropicBlock is any content block, or a tool.
type anthropicBlock struct {
	Type      string
	Text      string
	Signature string
	ID        string
	Name      string
	ToolUseID string `json:"tool_use_id"`
	Input     json.RawMessage
	Mark      *struct{ TTL string } `json:"cache_control"`
}

var (
	anthropicName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
	anthropicID   = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	fixedSampling = regexp.MustCompile(`^claude-(opus-(4-[7-9]|[5-9])|sonnet-[5-9]|fable-)`) // models that take no sampling
)

// anthropicProblem is why Anthropic would refuse a request, "" for nothing.
func anthropicProblem(body []byte) string {
	var req anthropicRequest
	var has map[string]json.RawMessage
	if err := json.Unmarshal(body, &req); err != nil {
		return err.Error()
	}
	if err := json.Unmarshal(body, &has); err != nil {
		return err.Error()
	}
	switch last := len(req.Messages) - 1; {
	case req.MaxTokens < 1:
		return "max_tokens: Field required"
	case last < 0:
		return "messages: at least one message is required"
	case req.Messages[0].Role != "user":
		return "messages: first message must use the \"user\" role"
	case req.Messages[last].Role == "assistant":
		return "This model does not support assistant message prefill. The conversation must end with a user message."
	}
	if fixedSampling.MatchString(req.Model) {
		for _, param := range []string{"temperature", "top_p", "top_k"} {
			if has[param] != nil {
				return fmt.Sprintf("`%s` is not supported by %s", param, req.Model)
			}
		}
		if req.Thinking.Budget != nil {
			return fmt.Sprintf("thinking.budget_tokens is not supported by %s", req.Model)
		}
	}
	if why := req.toolProblem(); why != "" {
		return why
	}
	if why := req.markProblem(); why != "" {
		return why
	}
	return req.messageProblem()
}

func (r *anthropicRequest) toolProblem() string {
	var names []string
	for i, raw := range r.Tools {
		var tool anthropicBlock
		if err := json.Unmarshal(raw, &tool); err != nil {
			return err.Error()
		}
		if !anthropicName.MatchString(tool.Name) {
			return fmt.Sprintf("tools.%d.name: String should match pattern '%s'", i, anthropicName)
		}
		if slices.Contains(names, tool.Name) {
			return "tools: Tool names must be unique."
		}
		names = append(names, tool.Name)
	}
	return ""
}

// markProblem looks at the marks of the cache: four at most, those that last an hour first, none on a thought.
func (r *anthropicRequest) markProblem() string {
	marks, short := 0, false
	each := func(raw json.RawMessage) string {
		var b anthropicBlock
		if json.Unmarshal(raw, &b) != nil || b.Mark == nil {
			return ""
		}
		marks++
		switch long := b.Mark.TTL == "1h"; {
		case strings.HasSuffix(b.Type, "thinking"):
			return b.Type + ".cache_control: Extra inputs are not permitted"
		case b.Type == "text" && b.Text == "":
			return "cache_control cannot be set for empty text blocks"
		case long && short:
			return "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block"
		default:
			short = short || !long
		}
		return ""
	}
	all := append(slices.Clone(r.Tools), r.System...)
	for _, m := range r.Messages {
		all = append(all, m.Content...)
	}
	for _, raw := range all {
		if why := each(raw); why != "" {
			return why
		}
	}
	if marks > 4 {
		return fmt.Sprintf("A maximum of 4 blocks with cache_control may be provided. Found %d.", marks)
	}
	return ""
}

// messageProblem looks at the blocks, and whether each call has its result, first in the next message.
func (r *anthropicRequest) messageProblem() string {
	var open, ids []string
	for i, m := range r.Messages {
		var calls []string
		other := false // a block that is no result
		if len(m.Content) == 0 {
			return fmt.Sprintf("messages.%d: all messages must have non-empty content", i)
		}
		for j, raw := range m.Content {
			var b anthropicBlock
			if err := json.Unmarshal(raw, &b); err != nil {
				return err.Error()
			}
			at := fmt.Sprintf("messages.%d.content.%d", i, j)
			switch b.Type {
			case "text":
				if strings.TrimSpace(b.Text) == "" {
					return at + ": text content blocks must contain non-whitespace text"
				}
			case "thinking":
				if b.Signature == "" {
					return at + ".thinking.signature: Field required"
				}
			case "tool_use":
				switch {
				case !anthropicID.MatchString(b.ID):
					return fmt.Sprintf("%s.tool_use.id: String should match pattern '%s'", at, anthropicID)
				case slices.Contains(ids, b.ID):
					return at + ": `tool_use` ids must be unique"
				case !anthropicName.MatchString(b.Name):
					return fmt.Sprintf("%s.tool_use.name: String should match pattern '%s'", at, anthropicName)
				case len(b.Input) == 0 || b.Input[0] != '{':
					return at + ".tool_use.input: Input should be a valid dictionary"
				}
				calls, ids = append(calls, b.ID), append(ids, b.ID)
			case "tool_result":
				k := slices.Index(open, b.ToolUseID)
				if k < 0 {
					return fmt.Sprintf("%s: unexpected `tool_use_id` found in `tool_result` blocks: %s", at, b.ToolUseID)
				}
				if other {
					return at + ": `tool_result` blocks must come first"
				}
				open = slices.Delete(open, k, k+1)
			}
			other = other || b.Type != "tool_result"
		}
		if len(open) > 0 {
			return fmt.Sprintf("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s", i, strings.Join(open, ", "))
		}
		open = calls
	}
	return ""
}
