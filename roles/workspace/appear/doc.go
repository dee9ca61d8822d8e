// Package appear finds what a command or a tool left in a workspace on which programs of the user act, outside
// of any sandbox: git repositories, hooks, stores of wf, .envrc files, tasks of editors and workflows where wf serve looks for them.
//
//	Of(workspace) ──► Watch ──► Begin ──► Span: a command runs ──► End ──► protocol.Appeared
//
// The first look reads every directory of the workspace, up to a bound, in the order of their depth. Later ones
// stat the directories that are known and read those that changed. A directory is known by its ctime, which
// no process can set: a command that sets mtime back hides nothing.
//
// # Trust
//
// Nothing here follows a link, opens anything but directories and small regular files, or starts a program.
// Each name is opened from the directory before it.
//
// # Not promised
//
// Which process made something: what a person makes while a command runs is found like what the command made.
// Nothing is found within .git and .wf but what makes git run programs, and nothing below directories that
// cannot be read or beyond the bounds, which an Appeared says.
package appear
