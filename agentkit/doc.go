// Package agentkit performs the visits of LLM roles.
//
// A role that is entered again goes on with its conversation. What it is sent follows from the
// records alone, in package prompt. Here is what acts: models are called, tools run, people asked,
// and each of it is an event before anything follows from it.
//
//	records ─prompt─► P_k ─► model ─► text │ tool calls ─► tools ─► model … ─► Conclusion
//	                            └──────────── every reply and result an event ────────┘
//
// # Words
//
// P_k is the first request of visit k. A turn is one reply of the model. A correction is a turn
// that tells the model why its answer does not fit the role's schema. A call aside is one beside
// the turns: for a goal, a summary, a reflection.
//
// # A crash
//
// A tool that acts runs when all before it is on disk, and nothing follows before its result is.
// The rest is written while the next request is under way: what a crash takes of it is asked
// for, or read, once more, by the same requests. Perform rebuilds the conversation from
// Turn.Transcript and goes on after the last durable event; no tool call that acted is
// repeated.
//
// # Compaction
//
// Past a watermark, by the model's own count of the newest request, older parts give way to a
// summary. It is asked for on the live prefix and journaled in one commit with what it replaces;
// the journal alone says that it happened, so a visit that goes on reads what it read before.
//
// # Tasks
//
// A visit with the context task does not go on with a conversation: it reads summaries of
// earlier tasks, its own message and its own run. Its recorded tool list holds the tools by
// which it steers itself, and alone tells that it is a task. Goal and state stand at the end of
// the newest message and stay there, so requests only grow here too.
//
// # Not here
//
// What a request says is rendered by package prompt. Records are written by the engine; this
// package cannot reach the store. Of a compaction it makes a draft.
package agentkit
