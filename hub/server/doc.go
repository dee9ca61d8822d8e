// Package server is the HTTP interface of a worker: JSON over an api.Service,
// described by an OpenAPI document that it serves itself, whose schemas are written from the types
// (directory schemas).
//
//	guard ─► route ─► scope ─► strict request ─► Service ─► JSON │ wf.error/v1
//
// # Words
//
//	Service  what answers: it reads runs and drives them (package api)
//	scope    what a route asks of the caller (package guard)
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
