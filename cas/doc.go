// Package cas keeps blocks by the hash of their bytes, and the heads that point to them, in
// one directory that many processes share without a daemon.
//
// A block never changes. What changes is a head: a name for the newest event of a run, moved
// only from the value the writer last saw.
//
//	Encode, Raw ──► Batch ──► Commit ──► blocks + head + reflog      (one transaction)
//	Draft ──► Journal.Append ──► Commit                              (the events of a run)
//	After, Block ──► short read transactions ──► every byte hashed again
//
// # Words
//
// A block is bytes under a CID: a record (dag-cbor) or a payload (raw). A head is a name with
// a CID. A journal is the chain of a run's events, from its head back to seq 1. The reflog
// lists the moves of a head. A pack is how blocks lie in the database (pack.go); the layout
// of a store is one table (layout.go).
//
// # Durable
//
// When Commit returns nil, the blocks, the heads and the reflog are on disk. When it returns
// an error, nothing of the batch is stored; only an error while an already synced transaction
// is counted leaves both possible, as a power loss would.
//
// # Shared
//
// A Store holds the file lock only while it works. Processes queue for it (gate.go); the process
// that has it releases it after a commit or a short read as soon as another one queues, and when
// idle for 20 ms. After Options.Wait in the queue the error names the process that has the lock.
//
// # Checked
//
// bbolt checks only its meta pages. So every block is hashed when it is read, a panic or
// memory fault inside a transaction becomes protocol.ErrCorrupt, and what an index says is
// believed only as far as the hash agrees.
//
// # Not promised
//
// An order between runs. Network file systems. Moving a store between machines of different
// endianness: export it as a CAR.
package cas
