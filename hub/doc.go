// Package hub holds what others see of runs while they happen: replay and live streaming, the
// HTTP interface of the agent daemon, the hub that coordinates agents, and the web page.
//
// # Words
//
//	agent    a process that owns a store and drives runs (wf serve)
//	hub      what agents dial out to (wf hub): a queue, a registry, pointers; no content
//	cursor   a subscriber: the seq of the last event it holds, and nothing else
//
// # Not here
//
// Stores and engines: everything below reads a protocol.Feed and acts through an interface
// that the program implements.
package hub
