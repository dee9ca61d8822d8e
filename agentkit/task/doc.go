// Package task holds the pure parts of tasks: what an agent is offered to steer one, what its
// arguments mean, what is kept, and how a task reads as a page.
//
// A task is a visit with a small context of its own. The agent reads its goal and state, not
// what was said before; of earlier tasks it reads summaries and the values they shared.
//
//	task_started ──► task_state_updated … ──► task_waiting ──► answered ──► … task_completed
//
// # Words
//
// The original is the message that set the task; the goal says the same in one line; the state
// is what the agent notes of its progress; the final response is for the person, the summary
// for the tasks that follow.
//
// # Not here
//
// Models and clocks: nothing here asks one. The agent loop is in package agentkit.
package task
