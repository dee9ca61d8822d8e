// Package chat shows a run as a conversation in a terminal, and lets a person take part in it.
//
//	Session ─► events, live output ─► Transcript (pure) ─► lines ─► screen
//	        ◄─ Say, Answer, Command           ▲
//	                                     keys, commands
//
// # Promise
//
// What is shown is a pure function of the events that were read and of the live output that
// came after them; a new connection shows the same. Whatever a model, a tool or a person wrote
// is shown as text: control characters and escape sequences never reach the terminal.
//
// # Limits
//
// Older pages are read when they are scrolled to, and of a long answer only what is on the screen is drawn. The screen is drawn down to 20×5.
//
// # Not here
//
// Driving runs, storing, the network: the services of a Place do that.
package chat
