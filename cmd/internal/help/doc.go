// Package help makes the pages that describe wf from its commands, its flags and its language.
//
//	commands, flags ─► Page    on the terminal
//	                ─► Manual  for man(1)
//	Markdown        ─► Text    the page of the language
//
// # Words
//
//	page   the help of one command
//	topic  a page about no command: the language, the exit statuses
//
// # Promised
//
// A page shows each command and flag that is not hidden, once. Sentences fit the width; usage lines
// and examples are never broken. No text of a page of the manual is a request to its formatter.
//
// # Not here
//
// What the pages say: the commands of cmd/wf and package lang have the texts.
package help
