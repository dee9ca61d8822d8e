// Package hook takes events that other services send and sign: POST /v1/hooks/NAME.
//
//	address ─► body ≤ 1 MiB ─► signature ─► Hook.Take: Spool ─► a run
//
// # Words
//
//	hook   what is served under a name: how its events are signed, and what takes them
//	event  a request whose signature holds
//	key    what distinguishes an event, made of what was signed alone: the same key is the same event
//	spool  the events that were taken and whose runs have not begun, on disk
//	line   the events of one hook in a spool, in order
//
// # Promised
//
// The signature alone lets a request in: a token, a login or an Origin changes nothing. It is held against the bytes
// as they came, in constant time, before anything reads them. A hook that is not served is answered like a wrong
// signature: answers tell no names. 202 says that the event is on disk, and so its run, at the latest after the next start; 429 and 503 say
// that nothing is: the sender tries again. What was answered with 202 begins one run, whenever the process is killed.
//
// # Not promised
//
// That headers are what the sender wrote: only GitHub's body, Stripe's time and body, and the id, time and body of
// Standard Webhooks are signed.
package hook
