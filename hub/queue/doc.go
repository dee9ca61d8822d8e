// Package queue says what a hub keeps: jobs that wait for a worker, workers that are there, and
// which worker has which run.
//
//	submitter ──Submit──► Queue ──Lease──► worker          a job is an id and a workflow
//	worker ──Announce──► Registry ──List──► page           a worker is live as long as it is heard
//	worker ──Swap──► Pointers ──Get──► forwarding          run → worker, by compare-and-swap
//
// # Words
//
//	job      the wish to start a run: the id of the request and the workflow
//	box      what the request says, sealed: only workers that have a key of it can open it
//	lease    the right to start one job, for a while; it ends by a word of the holder, or lapses
//	epoch    the number of a lease. A later lease of any job has a larger one, also after the
//	         queue lost its disk: the holder of a smaller epoch knows that it is too late.
//	pointer  the worker that has a run, and how far the run was when it was last heard of
//
// # A job
//
//	              ┌──────── Retry, lapsed: attempts < 5 ───────┐
//	              ▼                                            │
//	Submit ──► queued ──────────── Lease: attempts + 1 ──► leased ──Done──► done
//	              │                                            │
//	              │                                            └─ Dead, Retry, lapsed: attempts = 5 ─► dead
//	              ├─ Cancel, Forget, a week ─► dead
//	              ◄─ Retry, Resubmit ───────── dead
//
// From every state Settle makes a job done, when its run is found. Purge takes it out, unless it is leased.
//
// # Not promised
//
// That a job starts once: a worker may have started it before its lease lapsed. So the id of a run
// is made of the id of its job, and starting it again on the same worker starts nothing.
//
// Implementations: embedded, on one bbolt file, for one hub; database, in PostgreSQL, for several. Both have their jobs by package line, and pass queuetest.
package queue
