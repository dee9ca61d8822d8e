// Package tui shows the runs of a store side by side with what is in them, for the keyboard.
//
//	┌ runs ───────┐┌ Output  Messages  Events  Diff  Cost ┐
//	│ 7K3Q  done  ││                                      │
//	├ steps ──────┤│  of the step that is chosen          │
//	│ coder#2  ok ││                                      │
//	└─────────────┘└──────────────────────────────────────┘
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
