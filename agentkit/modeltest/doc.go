// Package modeltest is a model server on loopback for tests, and the suite that every adapter
// passes against it.
//
// The server records the exact bytes of every request and answers, stalls, cuts or fails as it
// is set to. It speaks both wires: OpenAI's chat completions and Anthropic's messages, streamed;
// an Answer is in the words of neither.
//
//	Answer{Say: […]} ─► /v1/chat/completions   data: {"choices":…}    data: [DONE]
//	                └─► /v1/messages           event: content_block_delta …  message_stop
//
// # What it refuses
//
// What the providers refuse, by their documentation and the reports of their users: a tool call without its result in
// the next message, ids that are empty or there twice, empty text, arguments that are no object, names of other
// letters, more than four cache marks or marks in another order than their lifetimes, a reply at the end, sampling of
// models that take none. With Binds also thoughts that stand behind anything but what they were thought about. Such a
// request gets status 400, and is in Refused.
//
// # Its prefix caches
//
// They are exact, a quarter token to the byte. On OpenAI's wire, what a request shares with any
// earlier one. On Anthropic's, the longest prefix that an earlier request marked and that ends
// at most 20 blocks before a mark of this one.
package modeltest
