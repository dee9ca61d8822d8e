package anthropic

import (
	"encoding/json"
	"fmt"

	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/internal/wire"
	"wf/agentkit/model"
)

// extra is what a request has besides its body.
type extra struct {
	betas []string // go into a header
	ttl   string   // of the marks
	most  int      // tokens of the answer

	budget bool // it thinks by a budget
}

// body is the request, in a fixed order: the same call gives the same bytes.
func (m *Model) body(messages []llms.MessageContent, opts *llms.CallOptions, r model.Request) (body []byte, sent extra, err error) {
	params, err := wire.ParamsOf(opts, r, "model", "messages", "system", "tools", "stream")
	if err != nil {
		return nil, sent, err
	}
	if len(r.Params) == 0 {
		wire.Add(params, "top_k", opts.TopK)
		if len(opts.StopWords) > 0 {
			params["stop_sequences"] = opts.StopWords
		}
	}
	if _, err := params.TakeEngine(); err != nil {
		return nil, sent, err
	}
	if _, err := params.Take("betas", &sent.betas); err != nil {
		return nil, sent, err
	}
	sent.ttl = m.ttl
	if _, err := params.Take("cache_ttl", &sent.ttl); err != nil {
		return nil, sent, err
	}
	if ttl := sent.ttl; ttl != "" && ttl != "5m" && ttl != "1h" {
		return nil, sent, fmt.Errorf("params: cache_ttl is %q (want 5m or 1h)", sent.ttl)
	}
	choice, err := params.TakeToolChoice(opts)
	if err != nil {
		return nil, sent, err
	}
	if err := sent.room(params); err != nil {
		return nil, sent, err
	}

	c, err := convert(messages, r, m.self(), !sent.budget)
	if err != nil {
		return nil, sent, err
	}
	tools, err := offered(opts.Tools)
	if err != nil {
		return nil, sent, err
	}
	c.mark(tools, sent.ttl)

	var o wire.Object
	o.Add("model", m.id)
	o.Add("max_tokens", sent.most)
	if len(tools) > 0 {
		o.Add("tools", tools)
	}
	if t := toolChoice(choice); t != nil && len(tools) > 0 {
		o.Add("tool_choice", t)
	}
	if len(c.system) > 0 {
		o.Add("system", c.system)
	}
	o.Add("messages", c.turns)
	params.AddTo(&o)
	o.Add("stream", true)
	body, err = o.Bytes()
	return body, sent, err
}

// room takes max_tokens from the params, or its default: room to answer beside a thought with a budget.
func (e *extra) room(params wire.Params) error {
	thinking, ok := params["thinking"]
	var shape struct {
		Type   string `json:"type"`
		Budget int    `json:"budget_tokens"`
	}
	if _, err := params.Take("thinking", &shape); err != nil {
		return err
	}
	if ok {
		params["thinking"] = thinking // it is sent as it is
	}
	e.budget, e.most = shape.Type == "enabled", DefaultMaxTokens
	if given, err := params.Take("max_tokens", &e.most); given || err != nil {
		return err
	}
	e.most += shape.Budget
	return nil
}

// offeredTool is a tool of the wire.
type offeredTool struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Schema      any    `json:"input_schema"`
	Mark        *mark  `json:"cache_control,omitempty"`
}

func offered(tools []llms.Tool) ([]offeredTool, error) {
	var out []offeredTool
	for _, t := range tools {
		if t.Function == nil {
			return nil, fmt.Errorf("a tool of type %q cannot be offered", t.Type)
		}
		schema := t.Function.Parameters
		if schema == nil {
			schema = json.RawMessage(`{"type":"object"}`)
		}
		out = append(out, offeredTool{Name: t.Function.Name, Description: t.Function.Description, Schema: schema})
	}
	return out, nil
}

// toolChoice is the choice in the words of this wire, nil for none.
func toolChoice(c wire.ToolChoice) any {
	switch c.Mode {
	case "":
		return nil
	case "tool", "function":
		if c.Mode == "function" || len(c.Raw) == 0 {
			return map[string]string{"type": "tool", "name": c.Name}
		}
	case "auto", "any", "none":
		if len(c.Raw) == 0 {
			return map[string]string{"type": c.Mode}
		}
	}
	return c.Raw // perhaps with disable_parallel_tool_use
}
