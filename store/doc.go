// Package store opens the two kinds of stores of runs by their names, and says what both of them are for
// the commands and daemons above.
//
//	DIRECTORY          ─► cas      one bbolt file, locks beside it, one machine
//	postgres://…       ─► pgstore  a database, any number of machines
//
// # Promised
//
// What a Store does is the same for both kinds, and one suite tries it (cas/castest). What only a directory
// can do is asked of Directory, whose error says what does it for a database.
//
// # Not here
//
// Which store a command works with: service/compose reads flags, environment and configs.
package store
