// Package inmemory spares tests the disk. Most of what a test of stores waits for are syncs,
// thousands of them, of directories that are removed at its end. On a file system in memory each
// call is made as on a disk and costs nothing. What it does not show is a file system that differs;
// with TMPDIR set to a directory of a disk the same tests run there, as one step of CI does.
package inmemory

// least is how many bytes must be free: many times what all tests take at once.
const least = 4 << 30
