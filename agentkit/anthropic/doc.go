// Package anthropic is a model behind Anthropic's messages API, or a server that speaks it.
//
// It implements llms.Model over net/http, and takes care of what gets lost on the way elsewhere:
// parallel calls and all their results in one message, arguments as the raw JSON of the model,
// signed and redacted thinking, cache marks, the status and Retry-After of a refusal, errors
// inside a stream.
//
// # Thinking
//
// Thinking blocks come back as one opaque JSON object, {"anthropic": […]}, which holds every
// block that is neither text nor a call of ours, byte for byte, and where it stood among them.
// Given back in Request.Opaque it is sent verbatim.
//
// # Cache marks
//
// At most four: the end of the system prompt (or of the tools where there is none), the end of
// U_k, the newest message after it, and the mark of the request before where more than
// MarkReach blocks lie between. They are no content: the bytes around them never change.
//
// # A stream that does not end is an error
//
// Only message_stop ends a stream. A connection that closes before it, and an error event, are
// failures, whatever was received.
//
// # Not here
//
// Retries and fallbacks: the agent loop makes and journals them.
package anthropic
