// Package files remembers a tree of files piece by piece, so that an agent can recall the
// place that a question is about.
//
//	Walk ─► File ─► Pieces ─► memories, each with file and lines ─► Recall
//
// A piece is what belongs together: a declaration with its comment in Go, else lines up to an
// empty one. Indexing again changes only what changed: a piece with the same text in the same
// file is the same memory, wherever it moved.
//
// # Left out
//
// What .gitignore names, .git and .wf, links, files that are no text or larger than MaxFile.
package files

// Bounds of files and pieces.
const (
	MaxFile    = 1 << 20 // bytes; larger ones are generated, or data
	pieceLines = 60      // of a piece, about
	pieceMax   = 6 << 10 // bytes of a piece
	pieceSmall = 12      // lines below which neighbours are joined
)

// Tag is the tag of all pieces; the second one names the language, by the file's extension.
const Tag = "file"
