// Package tree holds files and directories as blocks.
//
//	directory ─► tree {entries} ─► file ≤ 64 KiB: a raw block
//	                 │          ├► longer file: file {size, parts} ─► raw blocks
//	                 │          ├► link: a raw block with its text
//	                 │          └► directory: a tree
//	                 └► over 4,096 entries: tree {parts} ─► trees {entries}
//
// The same content has the same blocks wherever and whenever it was read: there are no times, owners or
// paths in them, and a change within a long file or directory changes few blocks.
//
// ThreeWay makes one tree of what several changed of another, by their order alone.
//
// # Not trusted
//
// Blocks may have been made by anyone. Decode takes one form of a value alone, and no name that a
// directory cannot have or that git or wf act on; Walk is bounded.
//
// # Not here
//
// Reading and writing directories: package workspace does both.
package tree
