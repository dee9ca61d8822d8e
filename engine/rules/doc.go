// Package rules decides: from what a journal says it computes where a run stands and what the run
// does next. The same journal gives the same state and the same decisions, on every machine and at
// every time.
//
//	Records (Starts, definitions, step records, payloads: immutable, by link)
//	   │
//	   ▼
//	journal ──Fold──► State ──Next──► Plan ──┬─► Start, Again   visits to perform
//	   ▲                ▲                    ├─► Timers         waits with a due time
//	   │              Apply                  └─► End            the verdict: done, waiting, suspended …
//	   │                │                              │
//	   └──── events ◄───┴──── the engine performs ◄────┘
//
// Resuming after a crash is Fold and Next: there is no other recovery code.
//
// # Words
//
// An activation is one firing of an edge into a role: one visit, or, in a fan-out, one per item.
// A completed activation offers one token; its edges take it on. The ancestors of a token are what the
// firing rules count and look up, never the order in which visits happened to finish: hence the
// same records whatever finishes first. The live region is what the rules can still reach of a run: the
// open activations and tokens, and what lies between them and the nearest activation that all of them
// descend from. A bound is a limit of an edge or a role, counted along the ancestors; a limit belongs to
// the whole run.
//
// # Limits
//
// No function takes a context or reads a clock, the environment, a disk or chance: times are arguments
// in unix µs, and what a State reads comes in by Records. A State is for one goroutine; Next fills its
// caches. What a State costs grows with its live region, and not with the length of the run.
//
// # Not here
//
// How events are encoded and stored, how visits are performed and how runs are locked (engine); how a
// definition is read and how its expressions are computed (engine/lang).
package rules
