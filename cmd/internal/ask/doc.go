// Package ask asks a person at a terminal what a run waits for.
//
//	api.Waiting ─► question, choices ─► a line that is read ─► api.Answer
//	           └─► Form: a field after the other, on any screen ──┘
//
// # Promised
//
// Questions are written to the screen of progress. A person who leaves a question open, by an empty line, Esc or the
// end of input, has answered nothing. What does not fit a form is asked for again, with the reason.
//
// # Not here
//
// Whether a person can be asked: the command knows its flags and its streams.
package ask
