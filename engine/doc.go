// Package engine decides what a run does next, and drives it.
//
//	YAML ─lang.Load─► Program ─Block─► CID
//	journal ─Fold─► State ─Next─► Plan{Decisions, Verdict}
//	Decision ─Performer─► events… ─► StepRecord ─Append─► journal grows ─► Fold …
//
// # Pure
//
// Fold and Next take no clock, no context, no environment and do no I/O but reading
// immutable blocks. Resuming after a crash is open, fold and next: there is no other
// recovery code.
//
// # Words
//
// An activation is one firing of an edge into a role: one visit, or, in a fan-out, one per
// item. A completed activation offers one token; its edges take it on. The ancestors of a
// token are what the firing rules count and look up, never the order in which things
// happened to finish: hence the same records whatever finishes first.
//
// # Driving
//
// Drive holds the run's lock, performs decisions concurrently and appends what happens. What
// belongs together is one commit: the end of a visit and the start of the next. The state runs
// ahead of the disk by what is being written (pipe.go); what others can see does not.
//
// # Not here
//
// What a performer does (roles, agentkit), how bytes are kept (cas), how a definition is
// read (engine/lang).
package engine
