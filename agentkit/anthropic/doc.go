// Package anthropic is a model behind Anthropic's messages API, or a server that speaks it.
//
// It implements llms.Model over net/http, and takes care of what gets lost on the way elsewhere:
// parallel calls and all their results in one message, arguments as the raw JSON of the model,
// signed and redacted thinking, cache marks, the status and Retry-After of a refusal, errors
// inside a stream.
//
// # Thinking
//
// A reply that is more than a text and calls behind it comes back with one opaque JSON object, {"reply": {…}}: every block that is
// neither, byte for byte, where it stood among texts and calls, the members of these that are not read here, and which model at
// which address said it. Given back in Request.Opaque it is sent to that one as it came, and as text and calls to any other. A
// thought is bound to what stands before it: behind another prefix (Request.Moved) it is left out, and so it is behind a block
// that cannot go back, such as a blank text, or a text in which something was hidden. Models that think by a budget bind nothing,
// and want their thoughts back in a loop of tools. The form of earlier versions, {"anthropic": […]}, is read.
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
