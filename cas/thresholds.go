package cas

import "wf/protocol"

// Threshold is a number at which something is kept or read in another way.
type Threshold struct {
	Name string
	At   int
}

// Lengths are the thresholds of texts and blocks, in bytes. Tests draw around them.
func Lengths() []Threshold {
	return []Threshold{
		{"a text is in place up to", protocol.InlineMax},
		{"blocks share a pack up to", smallBlock},
		{"a shared pack holds", packMax},
		{"an edge prompt is cut at", protocol.EdgePromptMax},
		{"a pack lies in the database up to", inlineMax},
		{"a batch of events is read up to", readBytes},
		{"a payload is one block up to", protocol.ChunkSize},
	}
}

// Counts are the thresholds of journals, in events.
func Counts() []Threshold {
	return []Threshold{{"events between entries of the index", checkpoint}, {"events of a batch", readEvents}}
}
