package modeltest

import (
	"encoding/json"
	"fmt"
	"strings"
)

// OpenAI is the pieces of an answer as payloads of OpenAI's wire.
func (a Answer) OpenAI() []string {
	var events []string
	for _, p := range a.Say {
		switch {
		case p.Call != nil:
			events = append(events, CallDelta(p.Call.Index, p.Call.ID, p.Call.Name, p.Call.Args))
		case p.Finish != "":
			events = append(events, Finish(p.Finish))
		case p.Thinking != "":
			events = append(events, delta(map[string]any{"reasoning_content": p.Thinking}))
		case p.Text != "":
			events = append(events, delta(map[string]any{"content": p.Text}))
		}
	}
	return append(events, a.Events...)
}

// CallDelta is the event of a piece of a tool call.
func CallDelta(index int, id, name, args string) string {
	function := map[string]any{"arguments": args}
	if name != "" {
		function["name"] = name
	}
	call := map[string]any{"index": index, "function": function}
	if id != "" {
		call["id"], call["type"] = id, "function"
	}
	return delta(map[string]any{"tool_calls": []any{call}})
}

// Finish is the event that says why the model stopped.
func Finish(reason string) string {
	return fmt.Sprintf(`{"choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, reason)
}

func delta(d map[string]any) string {
	return compact(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": d}}})
}

func compact(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and numbers alone
	}
	return string(b)
}

// openaiStream is the whole stream but its terminator.
func openaiStream(a Answer, input, cached int) string {
	var b strings.Builder
	whole := !a.Cut && !a.Stall && !a.End && a.Failure == nil
	for _, e := range a.OpenAI() {
		fmt.Fprintf(&b, "data: %s\n\n", e)
		whole = whole && !strings.Contains(e, `"finish_reason":"`)
	}
	if whole {
		fmt.Fprintf(&b, "data: %s\n\n", Finish("stop"))
	}
	if a.Usage {
		fmt.Fprintf(&b, `data: {"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d}}}`+"\n\n",
			input, len(a.Say), cached)
	}
	if a.Failure != nil {
		fmt.Fprintf(&b, "data: %s\n\n", compact(map[string]any{"error": map[string]any{"code": a.Failure.Status, "message": a.Failure.Message}}))
	}
	return b.String()
}
