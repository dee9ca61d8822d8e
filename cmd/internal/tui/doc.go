// Package tui shows the runs of a store side by side with what is in them, for the keyboard.
//
//	╭─ 1 Runs ────╮╭─ 3 coder#2  Output Messages … ╮
//	│ ✓ 7K3Q      ││                                │
//	╰─────────────╯│                                │
//	╭─ 2 Steps ───╮│  of the step that is chosen    │
//	│ ✓ coder#2 ↩ ││                                │
//	╰─────────────╯╰────────────────────────────────╯
//
// # Promise
//
// It changes nothing but what a person asks for by a key: answers, resumes, cancels, forks, deletes. What cannot be undone
// is asked for once more, and names the run. What is shown follows the run while it goes on. Lists are read in parts, as far
// as the choice comes; a key never waits for what is read. A fan-out of more items than have a line each is one, with the items
// below it that want to be looked at; a key unfolds it.
//
// # Not here
//
// Reading stores: a Source does that.
package tui
