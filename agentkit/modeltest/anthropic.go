package modeltest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
)

// anthropicStream is the whole stream but its terminator.
func anthropicStream(a Answer, input, cached, written int) string {
	var b strings.Builder
	event := func(name string, v map[string]any) {
		v["type"] = name
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", name, compact(v))
	}
	count := map[string]any{"output_tokens": 1}
	if a.Usage {
		count["input_tokens"] = input - cached - written
		count["cache_read_input_tokens"], count["cache_creation_input_tokens"] = cached, written
		count["cache_creation"] = map[string]any{"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0}
	}
	event("message_start", map[string]any{"message": map[string]any{"id": "msg", "role": "assistant", "content": []any{}, "usage": count}})
	event("ping", map[string]any{})

	next, open := 0, "" // index of the next block, kind of the newest
	at := map[int]int{} // call → block
	var unclosed []int  // blocks
	start := func(kind string, block map[string]any) {
		block["type"] = kind
		event("content_block_start", map[string]any{"index": next, "content_block": block})
		unclosed = append(unclosed, next)
		open = kind
		next++
	}
	change := func(index int, kind string, d map[string]any) {
		d["type"] = kind
		event("content_block_delta", map[string]any{"index": index, "delta": d})
	}
	stop := "end_turn"
	for _, p := range a.Say {
		switch {
		case p.Call != nil:
			if _, ok := at[p.Call.Index]; !ok {
				at[p.Call.Index] = next
				start("tool_use", map[string]any{"id": p.Call.ID, "name": p.Call.Name, "input": map[string]any{}})
			}
			change(at[p.Call.Index], "input_json_delta", map[string]any{"partial_json": p.Call.Args})
		case p.Thinking != "":
			if open != "thinking" {
				start("thinking", map[string]any{"thinking": "", "signature": ""})
			}
			change(next-1, "thinking_delta", map[string]any{"thinking": p.Thinking})
		case p.Signature != "":
			change(next-1, "signature_delta", map[string]any{"signature": p.Signature})
		case p.Redacted != "":
			start("redacted_thinking", map[string]any{"data": p.Redacted})
		case p.Text != "":
			if open != "text" {
				start("text", map[string]any{"text": ""})
			}
			change(next-1, "text_delta", map[string]any{"text": p.Text})
		case p.Block != nil:
			event("content_block_start", map[string]any{"index": next, "content_block": p.Block})
			unclosed, open, next = append(unclosed, next), "", next+1
		case p.Finish != "":
			stop = map[string]string{"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "refusal": "refusal"}[p.Finish]
		}
	}
	for _, e := range a.Events {
		fmt.Fprintf(&b, "data: %s\n\n", e)
	}
	if a.Failure != nil {
		kind := map[int]string{429: "rate_limit_error", 529: "overloaded_error", 504: "timeout_error"}[a.Failure.Status]
		kind = cmp.Or(kind, "api_error")
		event("error", map[string]any{"error": map[string]any{"type": kind, "message": a.Failure.Message}})
		return b.String()
	}
	if a.Cut || a.Stall || a.End {
		return b.String()
	}
	for _, i := range unclosed {
		event("content_block_stop", map[string]any{"index": i})
	}
	last := map[string]any{"delta": map[string]any{"stop_reason": stop}}
	if a.Usage {
		last["usage"] = map[string]any{"output_tokens": len(a.Say)}
	}
	event("message_delta", last)
	return b.String()
}

// cachedBlock is a block as the prefix cache sees it: without its mark.
type cachedBlock struct {
	bytes  string
	marked bool
}

func (r *anthropicRequest) blocks() []cachedBlock {
	var out []cachedBlock
	add := func(where string, raw json.RawMessage) {
		var b struct {
			Mark json.RawMessage `json:"cache_control"`
		}
		if json.Unmarshal(raw, &b) != nil {
			return
		}
		text := string(raw)
		if len(b.Mark) > 0 {
			text = strings.Replace(text, `,"cache_control":`+string(b.Mark), "", 1)
		}
		out = append(out, cachedBlock{where + text, len(b.Mark) > 0})
	}
	for _, t := range r.Tools {
		add("tool", t)
	}
	for _, s := range r.System {
		add("system", s)
	}
	for _, m := range r.Messages {
		for _, b := range m.Content {
			add(m.Role, b)
		}
	}
	return out
}

// reach is how many blocks before a mark an entry is looked for.
const reach = 20

// anthropicCache counts a request's tokens and notes its entries in the cache.
func anthropicCache(entries map[string]bool, body []byte) (input, cached, written int) {
	var req anthropicRequest
	if json.Unmarshal(body, &req) != nil {
		return 0, 0, 0
	}
	var prefixes []string
	var all strings.Builder
	blocks := req.blocks()
	for _, b := range blocks {
		all.WriteString(b.bytes)
		prefixes = append(prefixes, all.String())
	}
	last := 0
	for i, b := range blocks {
		if !b.marked {
			continue
		}
		last = len(prefixes[i])
		for j := i; j >= max(0, i-reach); j-- {
			if entries[prefixes[j]] {
				cached = max(cached, len(prefixes[j]))
				break
			}
		}
	}
	for i, b := range blocks {
		if b.marked {
			entries[prefixes[i]] = true
		}
	}
	return (all.Len() + 3) / 4, cached / 4, max(0, last-cached) / 4
}
