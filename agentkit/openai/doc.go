// Package openai is a model behind any server that speaks OpenAI's chat completions:
// api.openai.com, llama-server, vLLM, Ollama, DeepSeek, Gemini's endpoint.
//
// It implements llms.Model over net/http, and takes care of what gets lost on the way elsewhere:
// tool calls that arrive interleaved, arguments as the raw JSON of the model, cached tokens, the
// status and Retry-After of a refusal, errors inside a stream.
//
// # A stream that does not end is an error
//
// Only data: [DONE] ends a stream. A connection that closes before it, and an error event, are
// failures of class server_error, whatever was received.
//
// # Not here
//
// Retries and fallbacks (the agent loop makes and journals them), and the meaning of params:
// those of the role are sent under their own names.
package openai
