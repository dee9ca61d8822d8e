// Package workspace works in the directory of a run, in which an agent may have written
// anything: files, links, pipes, the settings and hooks of git.
//
//	Open ──► a directory within the workspace, as a handle that no link can move
//	Head ──► the commit and branch of the repository, read without git
//
// # Trust
//
// Nothing here starts a program, follows a link out of the workspace, waits for the other end
// of a pipe or reads more than a bounded part of a file into memory.
package workspace
