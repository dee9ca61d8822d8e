// Package daemon drives the runs of a store in the background, and lets other processes ask for
// them: over HTTP, through a hub, or by a socket of the run that a process drives.
//
// # Words
//
//	Daemon       what wf serve runs, and, in one process with a screen, wf chat and wf tui
//	Supervisor   drives runs: those that it is given, and those that it finds open
//	Listener     an address with the guard before it
//	Serving      a daemon that answers at its listeners, and has joined a hub or not
//	Hub          what wf hub runs: workers join it, clients see the runs of all of them
//	Remote       how another server is reached, and with which token
//	LiveSockets  let other processes watch a run with what is said before it is recorded
//	passedOn     lets the clients of this process watch what is said at the sockets of others
//
// # Promised
//
// Stopping a daemon suspends what it drives; the next one goes on with that. A run that another
// process drives is left to it, and so is one that came from elsewhere. A stored token goes only to the
// addresses of the hub that it is for.
//
// # Not here
//
// Flags, and what is printed: Serving.Where and Hub.Where say what there is to print.
package daemon
