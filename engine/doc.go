// Package engine drives runs: it performs what the rules decide, and journals what happens.
//
//	YAML ─lang.Load─► Program ─Block─► CID
//	journal ─rules.Fold─► State ─Next─► Plan
//	Plan ─Performer─► events… ─► StepRecord ─Append─► journal grows ─► Apply …
//
// # Driving
//
// Drive holds the run's lock, performs decisions concurrently and appends what happens. What
// belongs together is one commit: the end of a visit and the start of the next. The state runs
// ahead of the disk by what is being written (pipe.go); what others can see does not.
//
// # Words
//
// Those of package rules: activation, token, live region. A visit is performed by a worker, on what an
// assignment says; a batch is what is written in one commit.
//
// # Not here
//
// What a run does next (engine/rules), what a performer does (roles, agentkit), how bytes are kept
// (cas), how a definition is read (engine/lang).
package engine
