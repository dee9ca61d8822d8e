// Package pgstore keeps the records of runs in a PostgreSQL database, for several machines that drive
// the runs of one store. What it stores, block by block and head by head, is what package cas stores in a directory.
//
//	Batch ──► group ──► one pipelined transaction ──► heads + reflog + blocks + derived
//	After, Block ──► one statement ──► every byte hashed again
//
// # Durable
//
// When Commit returns nil, the batch is on the disk of the primary, and on that of its synchronous standby
// where there is one. When it returns an error nothing of it is stored, but for one that wraps protocol.ErrUnreachable: then the
// outcome is not known, because the database was lost and the caller did not wait for its return.
//
// # Shared
//
// Rows of heads are locked in the order of their names, so that writers queue and do not deadlock. No state of a
// session is kept between transactions: a pooler in transaction mode may lie in between.
//
// # Fenced
//
// A batch under a cas.Fence is written only while no other process has taken the same tree of runs. A process that claims runs beats in
// the database; another one takes its claims over once it has seen no beat of it for a whole lease. What the first one runs outside of
// the database ends before that: see cas.Claim.
//
// # Collected
//
// GC removes what nothing led to at two collections that lie days apart, and what nobody stored since the first of them. So writers
// need not keep collections away, and may name for days what they read or stored.
//
// # Put back
//
// A database that lacks what was last acknowledged to this process, because it was put back to an older copy or is a primary
// that a promotion left behind, is neither read nor written: errors wrap protocol.ErrRolledBack.
//
// # Not promised
//
// An order between runs. A user apart from others: those who may write the database may write any run. A tenant is a database.
package pgstore
