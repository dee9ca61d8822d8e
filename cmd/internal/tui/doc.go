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
// It changes nothing, but for the answers a person gives. What is shown follows the run while
// it goes on.
//
// # Not here
//
// Reading stores: a Source does that.
package tui
