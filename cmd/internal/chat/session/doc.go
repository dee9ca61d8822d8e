// Package session lets a person take part in a run of a store or of a server, on the screen of package chat.
//
//	chat ─► Session ─► api.Service, api.Follower ─► this process, or a server
//
// # Promised
//
// A Session is the same wherever the run is. What needs more than the interfaces of package api, since only the
// process that has the store knows of it, is Near; without it the commands for that are errors.
//
// # Not here
//
// What is drawn (chat), choosing or beginning the run (cmd/wf).
package session
