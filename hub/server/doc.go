// Package server is the HTTP interface of an agent: JSON over an interface that the program
// implements, described by an OpenAPI document that it serves itself.
//
//	guard ─► route ─► scope ─► strict request ─► Backend ─► JSON │ wf.error/v1
//
// # Words
//
//	Backend  what answers: it reads runs and drives them
//	scope    what a route needs of whoever asks (package guard)
//
// # Promised
//
// A field of a request that is not described is refused, never ignored; so is a body that is
// too large. Every answer is one JSON object with a schema, but for blocks, pictures and
// streams. GET changes nothing.
//
// # Not here
//
// Credentials, Host and Origin: package guard stands before this. The replay protocol:
// package replay; its handlers are mounted here.
package server
