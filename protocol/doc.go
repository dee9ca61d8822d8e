// Package protocol holds the types of wf: records, events, frames and errors.
//
//	definition ─► Start ─► StepRecord ─► StepRecord ─► … ─► Result      what was concluded
//	Event 1 ◄── Event 2 ◄── Event 3 ◄── …                    ◄── head   what happened
//
// The conclusions are a Merkle DAG without wall clock, duration, usage, host, run id,
// random id or float: the same definition, inputs and outputs give the same CIDs on
// every machine. The journal is a chain with dense seq from 1; time, cost and attempts
// live there.
//
// # Words
//
// A workflow is compiled to one canonical Workflow block. A run is one execution of it.
// A visit is one entry of a role, a step what the visit concluded, an event what happened
// on the way. A head is the only mutable thing: a name for the newest event.
//
// # Not here
//
// No I/O, no hashing, and no encoding options but those of frames, which both ends of a live
// stream need and which are never hashed: the bytes of blocks are made in cas. Nothing of wf is
// imported by this package.
package protocol
