// Package hook takes events that other services send and sign: POST /v1/hooks/NAME.
//
//	address ─► body ≤ 1 MiB ─► signature ─► rate ─► Hook.Take: a run
//
// # Words
//
//	hook   what is served under a name: how its events are signed, and what takes them
//	event  a request whose signature holds
//	key    what distinguishes an event, made of what was signed alone: the same key is the same event
//
// # Promised
//
// The signature alone lets a request in: a token, a login or an Origin changes nothing. It is held against the bytes
// as they came, in constant time, before anything reads them. A hook that is not served is answered like a wrong
// signature: answers tell no names. 202 says that the run is on disk, 503 that nothing is: the sender tries again.
//
// # Not promised
//
// That headers are what the sender wrote: only GitHub's body, Stripe's time and body, and the id, time and body of
// Standard Webhooks are signed.
package hook
