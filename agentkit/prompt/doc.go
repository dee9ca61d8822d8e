// Package prompt renders what an agent is sent, from records alone.
//
// The same records give the same bytes: in every process, on every machine, for ever. So each
// request of a conversation begins with the whole of the one before, a provider reads it from its
// prefix cache, and the digest that the journal holds can be checked from the records.
//
//	StepRecords, Compactions ─ dialogue ► parts ─ format n ─► P_k ─┐
//	                                                               ├─ Request ─► Contents ─► the model
//	events of the visit ─────── Work ────────► what was said since ┘     └─────► Bytes ─► Digest
//
// # Words
//
// P_k is the first request of visit k; U_k and A_k are the edge prompt with what goes with it and what the role
// concluded. A format renders the parts of P_k; it is never changed, only followed by another.
// A Work is a visit as its events tell it: P_k and what was said since. A Cut is an older part of
// a request that a summary is to take the place of.
//
// # Pure
//
// No clock, environment, disk, net, chance or map order reaches a message. What is known outside
// alone (which models a role has, how many tokens they read) is a parameter.
//
// # Not here
//
// Calling models, running tools, asking people and writing events: that is package agentkit. A Cut
// says what a summary is to replace; agentkit has it written, and journals it.
package prompt
