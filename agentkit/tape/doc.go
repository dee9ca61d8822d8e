// Package tape is a model that answers with recorded traffic, and the recorder that makes it.
//
//	wf run --record FILE ─► Recorder ─► real model        FILE: one call per line
//	model: tape/FILE     ─► Model, the answer recorded for exactly that request
//
// A call is found by the digest of its request: messages, tools and params, whichever model answered
// then. A request that was never recorded is a loud miss, with the first message that differs
// from the nearest recorded request. A Play (of wf eval) takes what was recorded in its place instead, and
// counts those requests.
//
// # The file
//
// JSON Lines, appended to, so that a recording that is cut off is good up to its last line.
// Failures are recorded too: a retry is replayed as a retry. Well-known shapes of keys are
// replaced in it.
//
// # Not here
//
// The pace of the original: an answer comes at once.
package tape
