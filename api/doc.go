// Package api holds the words of what can be asked of a store of runs, and the interfaces of
// what answers: in this process, or over HTTP.
//
//	commands ─► Service ◄── package service: a store of this machine
//	                    ◄── hub/client: wf serve or wf hub, over HTTP ─► hub/server ─► Service
//
// # Words
//
//	Run      a run as people and programs see it: wf.run/v1
//	Step     one visit of a role within a run
//	Window   which steps of a run are wanted
//	Driving  whether a process drives a run
//
// # Promised
//
// The JSON names of fields are those of the wire and of -o json; they stay. A new field is left
// out of the JSON while it is empty.
//
// # Not here
//
// What is stored: records and events are those of package protocol.
package api

// CID names a block by its hash: base32, in lower case.
type CID = string

// Time is a time as in RFC 3339, in UTC.
type Time = string
