// Package query answers what can be asked of stored runs: each answer is a value of package api,
// made from the journal and the records alone.
//
//	journal, records ─► engine, agentkit ─► api.Cost, api.Diff, api.Explanation, api.Cache …
//
// # Not here
//
// Screens, and how a run is found by what a user writes: package service.
package query
