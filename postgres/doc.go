// Package postgres speaks with a PostgreSQL server, for all that wf keeps in one: runs (pgstore) and the queue of a hub.
//
//	address ──Parse──► Address ──Connect──► Conn ──Query, Pipeline, Transact──► rows in binary form
//
// # Promised
//
// An address never shows a secret, and holds no password. Beyond this machine the certificate of the server is verified. A
// COMMIT has no deadline and is never cancelled: of a transaction that did not come back it is known that this is not known.
//
// # Not here
//
// What the tables are.
package postgres
