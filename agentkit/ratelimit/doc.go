// Package ratelimit keeps the calls to an account of a provider within its limits, over all processes of
// this user on this machine.
//
//	Ask ─► queue ─► room in the window? ─► Grant ─► the request is sent ─► Done: tokens settled, place free
//	         ▲             │ no
//	         └──── wait ◄──┘      longer than HoldAfter: the Watcher of the call is told
//
// An account is a key at a base URL, known by its Fingerprint. Its ledger is one file, which a process that asks locks
// (flock) for some microseconds, reads, and writes again: what was sent in the last window, the processes that
// wait, in their order, and how many calls each has in flight. Beside it each process keeps a file of its own
// locked, and the kernel frees that lock when the process ends, however it ends: its place in the queue and its
// calls in flight count no more.
//
// # Promised
//
// Window is the minute of the provider and a margin. Of N requests a minute no more than N are granted within any
// Window, by all processes together; likewise tokens, but for a request that alone is beyond the limit: it is
// granted when nothing else is in the window. The processes take turns in the order in which they came, and the
// callers of a process as well. A grant counts from the time at which the request was written, and a request that
// was never written does not count.
//
// The file is not synced. After a boot, after damage, or where a clock was put back, the window counts as full
// from now on: so nothing more gets through, and nothing stops for longer than a window.
//
// # Not here
//
// What the limits are (package config), and requests by programs other than wf, or on other machines.
package ratelimit
