// Package control finds what git and wf act on in a workspace: the closed list of docs/security.md, each part at the place to
// which links lead.
//
//	Eye ──► looks: there, nothing there, or an error
//	Repository, Bare, Store ──► Parts: Places that are there, and Absent ones that a command must not make
//	Remove, PutBack ──► undoes what a command did to them
//
// # Not being able to look is not "not there"
//
// A look of an Eye has three outcomes. An error says that something could not be looked at, wraps protocol.ErrUnseen, and is never
// taken for nothing: a command could give itself the modes that it took away. Modes that keep the owner of a file or directory from it
// are given back first.
//
// # Trust
//
// What is read here an agent may have written. No link is followed by the kernel: the way of each path is gone by its parts. What
// is read has bounds.
//
// # Not promised
//
// That nothing changes behind a look. The launcher of a command takes what is to be protected by descriptor, and refuses what is another
// by then.
package control
