// Package agentkit performs the visits of LLM roles.
//
// A role that is entered again goes on with its conversation. What it is sent is built from
// the records alone, by BuildMessages, so that every request of a conversation begins with the
// whole of the one before, byte for byte, on any machine, for ever: providers then read it
// from their prefix cache.
//
//	records ─BuildMessages─► P_k ─► model ─► text │ tool calls ─► tools ─► model … ─► Conclusion
//	                                  └──────── every reply and result an event, durable ───┘
//
// # Words
//
// P_k is the first request of visit k; U_k and A_k are what the moderator said and what the
// role concluded. A turn is one reply of the model. A correction is a turn that tells the
// model why its answer does not fit the role's schema.
//
// # A crash
//
// Whatever the model said and the tools gave is in the journal before the next thing happens.
// Perform rebuilds the conversation from Turn.Transcript and goes on after the last durable
// event; no completed tool call is repeated.
//
// # Not here
//
// Records are written by the engine; this package cannot reach the store. Compactions are
// rendered, but not made.
package agentkit
