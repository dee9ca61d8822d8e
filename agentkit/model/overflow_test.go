package model_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/model"
)

// What servers say where a request holds more than their model reads.
func TestOverflowsAreReadFromWhatServersSay(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		want   *model.Overflow
	}{
		"OpenAI": {400, `{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130012 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`,
			&model.Overflow{Window: 128000, Held: 130012}},
		"OpenAI, the code alone": {400, `{"error":{"message":"Your input exceeds the limit.","code":"context_length_exceeded"}}`, &model.Overflow{}},
		"OpenAI, with the answer": {400, `{"error":{"message":"This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (7000 in the messages, 2000 in the completion).","code":null}}`,
			&model.Overflow{Window: 8192, Held: 7000}},
		"llama-server": {400, `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":5012,"n_ctx":4096}}`,
			&model.Overflow{Window: 4096, Held: 5012}},
		"llama-server, in words": {400, `{"error":{"code":400,"message":"request (5012 tokens) exceeds the available context size (4096 tokens), try increasing it","type":"invalid_request_error"}}`,
			&model.Overflow{Window: 4096, Held: 5012}},
		"vLLM": {400, `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens. Please reduce the length of the input messages.","type":"BadRequestError","param":null,"code":400}`,
			&model.Overflow{Window: 4096, Held: 5000}},
		"vLLM, the answer": {400, `{"error":{"message":"'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 4096 tokens and your request has 12 input tokens (4096 > 4096 - 12).","type":"BadRequestError","code":400}}`,
			&model.Overflow{Window: 4096, Held: 12}},
		"Anthropic": {400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"}}`,
			&model.Overflow{Window: 200000, Held: 208310}},
		"Anthropic, with the answer": {400, "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"input length and `max_tokens` exceed context limit: 190000 + 16000 > 200000, decrease input length or `max_tokens` and try again\"}}",
			&model.Overflow{Window: 200000, Held: 190000}},
		"Anthropic, in bytes":   {413, `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`, &model.Overflow{}},
		"Gemini":                {400, `[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]`, &model.Overflow{Window: 1048576, Held: 1200000}},
		"Mistral":               {400, `{"message":"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length","code":"3051"}`, &model.Overflow{Window: 32768, Held: 40000}},
		"OpenRouter":            {400, `{"error":{"message":"This endpoint's maximum context length is 131,072 tokens. However, you requested about 140,000 tokens.","code":400}}`, &model.Overflow{Window: 131072, Held: 140000}},
		"LM Studio":             {400, `{"error":"Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens."}`, &model.Overflow{Window: 4096}},
		"text alone":            {400, "prompt is too long", &model.Overflow{}},
		"a number that is none": {400, `{"error":{"message":"maximum context length is 99999999999999999999999 tokens"}}`, &model.Overflow{}},

		"numbers that cannot be": {400, `{"error":{"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_prompt_tokens":9007199254740992,"n_ctx":-1}}`, &model.Overflow{}},
		"a large number":         {400, `{"error":{"message":"maximum context length is 9223372036854775807 tokens"}}`, &model.Overflow{}},

		"another refusal":          {400, `{"error":{"message":"temperature is too large","code":"invalid_value"}}`, nil},
		"a server that is down":    {503, `{"error":{"message":"no slot: the context size is being changed"}}`, nil},
		"too many tokens a minute": {429, `{"error":{"message":"Request too large for gpt-4o: Limit 30000, Requested 31000. reduce the length of the messages"}}`, nil},
		"nothing":                  {400, ``, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.want, model.OverflowOf(c.status, []byte(c.body))); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestOverflowsOfForeignModels(t *testing.T) {
	for _, err := range []error{
		&llms.Error{Code: llms.ErrCodeTokenLimit, Message: "too much"},
		errors.New("API returned unexpected status code: 400: This model's maximum context length is 10 tokens."),
	} {
		if e := model.AsError("x", err); e.Overflow == nil || e.Class != model.Invalid {
			t.Errorf("%v is %+v", err, e)
		}
	}
	if e := model.AsError("x", errors.New("status code: 400: no such field")); e.Overflow != nil {
		t.Errorf("got %+v", e.Overflow)
	}
}
