// Package compose joins the parts of wf for one process, as the configs, the environment and the
// Options of the process say.
//
//	configs, environment, Options ─► Setup ─► stores, engines, memories, the catalog of workflows
//
// # Words
//
//	Setup       what a process works with: configs, models that were opened, what is trusted
//	Definition  a workflow file as it was read
//	Catalog     the workflows that clients may start, by directory
//	Walls       what confines the commands of roles
//
// # Promised
//
// Nothing is written to a screen and nothing is read from one: what a user should know without
// being asked goes to Options.Tell.
//
// # Not here
//
// What is asked of the user, such as for trust: the commands do that.
package compose
