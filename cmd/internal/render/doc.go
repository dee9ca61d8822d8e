// Package render prints what people and programs read of wf: runs, steps, events and blocks.
//
//	               ┌─ Show… ─────► Out   the answer: text │ one JSON object
//	cmd/wf ─► Printer
//	               └─ Reporter ──► Err   progress: live │ lines │ groups; as JSON lines on Out
//
// # Words
//
//	Printer   the two streams of a command and the form that its flags ask for
//	Screen    one stream, with its width and whether it has colours
//	Reporter  shows a run while it goes on, from one api.Update after the other
//	Backdrop  what a Reporter looks up beside the updates: edges and records of steps
//	State     the status of a run for people: also whether a process drives it
//
// # Promised
//
// No text acts on a terminal, from whatever source it came: a Screen writes out what would, but for
// the colours of a Paint. Answers are written to Out, progress to Err. JSON keeps its shapes.
//
// # Not here
//
// Reading stores and asking servers: what is shown was read before. Exit statuses: cmd/wf has them.
package render
