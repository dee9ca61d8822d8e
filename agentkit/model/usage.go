package model

import (
	"fmt"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"wf/protocol"
)

// Keys of llms.ContentChoice.GenerationInfo. Token counts are int64.
const (
	KeyInput      = "wf.input"          // all prompt tokens, cached and written ones included
	KeyCached     = "wf.cached"         // of these: read from the prefix cache
	KeyWrite5m    = "wf.cache_write_5m" // of these: written to a cache of 5 minutes
	KeyWrite1h    = "wf.cache_write_1h" // … of an hour
	KeyOutput     = "wf.output"
	KeyReasoning  = "wf.reasoning"
	KeyTTFE       = "wf.ttfe_ms" // int64: to the first event of the stream
	KeyThinkingMS = "wf.thinking_ms"
	KeyOpaque     = "wf.opaque" // string: a JSON object for Request.Opaque
)

// foreign are the keys under which langchaingo's own models report, by ours. Counts that such
// a model invents for itself (CachedTokens of its ollama package) are not taken over.
var foreign = map[string][]string{
	KeyInput:     {"PromptTokens", "InputTokens", "input_tokens"},
	KeyCached:    {"PromptCachedTokens"},
	KeyOutput:    {"CompletionTokens", "OutputTokens", "output_tokens"},
	KeyReasoning: {"ReasoningTokens", "CompletionReasoningTokens"},
}

// UsageOf reads the usage that a model reported; what it did not tell is nil. langchaingo
// repeats the usage in every choice, so the first one counts.
func UsageOf(r *llms.ContentResponse) protocol.Usage {
	var u protocol.Usage
	if r == nil || len(r.Choices) == 0 || r.Choices[0] == nil {
		return u
	}
	info := r.Choices[0].GenerationInfo
	u.Input, u.Cached = count(info, KeyInput), count(info, KeyCached)
	u.CacheWrite5m, u.CacheWrite1h = count(info, KeyWrite5m), count(info, KeyWrite1h)
	u.Output, u.Reasoning = count(info, KeyOutput), count(info, KeyReasoning)
	if n := count(info, KeyTTFE); n != nil {
		u.TTFE = *n
	}
	if n := count(info, KeyThinkingMS); n != nil {
		u.ThinkingMS = *n
	}
	return u
}

// stops are why a reply is not whole, by the words of the wires and of langchaingo's models.
var stops = map[string]string{
	"length": protocol.StopLength, "max_tokens": protocol.StopLength,
	"model_context_window_exceeded": stopFull,
	"MAX_TOKENS":                    protocol.StopLength, "FinishReasonMaxTokens": protocol.StopLength,
	"content_filter": protocol.StopRefused, "refusal": protocol.StopRefused,
	"SAFETY": protocol.StopRefused, "FinishReasonSafety": protocol.StopRefused,
	"sensitive": protocol.StopRefused, "guardrail_intervened": protocol.StopRefused,
	"PROHIBITED_CONTENT": protocol.StopRefused, "BLOCKLIST": protocol.StopRefused, "SPII": protocol.StopRefused, "RECITATION": protocol.StopRefused,
	"error": stopBroken, "abort": stopBroken, "insufficient_system_resource": stopBroken, "network_error": stopBroken,
	"malformed_function_call": stopBroken, "MALFORMED_FUNCTION_CALL": stopBroken, "function_call_filter: MALFORMED_FUNCTION_CALL": stopBroken,
	"pause_turn": stopPaused,
}

const (
	stopBroken = "broken" // the server gave up
	stopPaused = "paused" // the server wants to be asked to go on
	stopFull   = "full"   // prompt and answer together hold as much as the model reads
)

// StopOf says why a reply is not whole: protocol.StopLength, or "" where it is. A reply that is
// none is an error: one that was kept back of class invalid, one that the server gave up of
// class server_error, one that filled the window of its model as a request that holds too much.
func StopOf(name string, r *llms.ContentResponse) (string, error) {
	for _, c := range r.Choices {
		switch stop := stops[c.StopReason]; stop {
		case protocol.StopRefused:
			why := ""
			if said := []rune(strings.TrimSpace(c.Content)); len(said) > 0 {
				why = ": " + string(said[:min(len(said), 500)])
			}
			return stop, &Error{Class: Invalid, Message: fmt.Sprintf("model %s: it refuses to answer (%s)%s", name, c.StopReason, why)}
		case stopPaused:
			return "", &Error{Class: Invalid, Message: fmt.Sprintf("model %s: its turn pauses in the middle of a tool of its server (%s), which wf does not go on with: offer it no such tools", name, c.StopReason)}
		case stopFull:
			return protocol.StopOverflow, &Error{Class: Invalid, Overflow: filled(UsageOf(r)), Message: fmt.Sprintf(
				"model %s: its window was full before its answer had ended (%s)", name, c.StopReason)}
		case stopBroken:
			return "", &Error{Class: ServerError, Message: fmt.Sprintf("model %s: the server gave the reply up (%s)", name, c.StopReason)}
		case protocol.StopLength:
			return stop, nil
		}
	}
	if said := ReplyOf(r); strings.TrimSpace(said.Text) == "" && len(said.Calls) == 0 && !ends[said.Stop] {
		return "", &Error{Class: ServerError, Message: fmt.Sprintf("model %s: the answer is empty, and its stop reason is unknown to wf (%s)", name, said.Stop)}
	}
	return "", nil
}

// ends are why a reply is whole.
var ends = map[string]bool{
	"": true, "stop": true, "end_turn": true, "stop_sequence": true, "tool_use": true, "tool_calls": true, "function_call": true, "STOP": true, "FinishReasonStop": true,
}

// filled is what a model reads, by an answer that filled it.
func filled(u protocol.Usage) *Overflow {
	o := &Overflow{}
	if u.Input != nil {
		if o.Held = *u.Input; u.Output != nil {
			o.Window = o.Held + *u.Output
		}
	}
	return o
}

func count(info map[string]any, key string) *int64 {
	for _, k := range append([]string{key}, foreign[key]...) {
		var n int64
		switch v := info[k].(type) {
		case int64:
			n = v
		case int:
			n = int64(v)
		case int32:
			n = int64(v)
		case float64:
			n = int64(v)
		default:
			continue
		}
		if n == 0 && k != key {
			continue // langchaingo writes 0 for what it was not told
		}
		if !Told(&n) {
			return nil
		}
		return &n
	}
	return nil
}
