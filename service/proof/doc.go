// Package proof proves runs by hash: those of a store, of an archive, and of another machine, whose word proves
// nothing, by the archive that it sends.
//
//	archive, store ─► cas.Verify… ─► cas.Report
//	journal ─► decide and build again ─► engine.CheckReport
//
// # Words
//
//	finding  what is not as its hash, or as it was seen before
//	source   what archives are read from: this store or a server
//
// # Not here
//
// How hashes are compared: package cas. Findings are no errors here; commands make exit statuses of them.
package proof
