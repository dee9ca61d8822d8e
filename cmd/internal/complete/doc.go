// Package complete offers what can be written next on a command line of wf, when Tab is pressed.
//
//	usage line, flags ─► Offer ─► arguments and values ◄─ Source
//
// # Words
//
//	kind    what an argument may be, as the usage line of its command says
//	Source  the store, workflows and flags in which things are looked up
//
// # Promised
//
// What cannot be read offers nothing; no error is shown. Nothing is written.
//
// # Not here
//
// The scripts for shells: cobra writes them.
package complete
