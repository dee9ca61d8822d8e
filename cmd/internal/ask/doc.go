// Package ask asks a person at a terminal what a run waits for.
//
//	api.Waiting ─► question, choices ─► Form: a text, or a field after the other, on any screen ─► api.Answer
//
// # Promised
//
// Questions are written to the screen of progress. A person who leaves a question open, by Esc or the end of input
// (Ctrl-D), has answered nothing; Ctrl-C interrupts the command. What does not fit a form is asked for again, with the
// reason. What was typed before a question is no answer to it, and what is pasted is one text, whatever lines it has.
//
// What picks a choice is in front of it: its place, or its value where one of them begins with a number. So a number
// never means two things.
//
// # Not here
//
// Whether a person can be asked: the command knows its flags and its streams.
package ask
