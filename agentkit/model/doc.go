// Package model holds the words between the agent loop and the models it calls.
//
// The seam is langchaingo's llms.Model, so any langchaingo model plugs in. What that
// interface has no field for travels beside it: to the model in a Request on the context,
// back in GenerationInfo under the keys of this package, and failures as *Error.
//
//	loop ──ctx(Request), []llms.MessageContent, options──► llms.Model
//	loop ◄──Content, ToolCalls, GenerationInfo{Key…}────── llms.Model
//
// A model that knows none of this works too: its usage is then null, and its errors are
// classified from their text.
//
// # Not here
//
// Retries. A model makes one request and tells how it ended; the loop decides.
package model
