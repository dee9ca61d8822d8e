// Package service answers for a store of this machine: it is the api.Service that needs no server.
//
//	command, hub/server ─► Local ─► query   what is asked of stored runs
//	                         ├────► engine  what moves a run
//	                         └────► Keeper  what drives it on, behind the request
//
// # Words
//
//	Local   the service of one store
//	Keeper  what drives runs for it: package daemon has one
//	Adopting  runs that came from elsewhere, and may be let go on here
//
// # Promised
//
// A method that moves a run returns when what it did is durable.
//
// # Not here
//
// Screens and flags (cmd/wf), sockets and schedules (package daemon), HTTP (packages below hub).
package service
