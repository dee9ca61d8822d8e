package help

import "wf/protocol"

// Nearest is the name that a word was probably meant to be, "" where none is near.
func Nearest(word string, names []string) string {
	best, least := "", 1+len(word)/3
	for _, name := range names {
		if d := protocol.Edits(word, name); d < least || d == least && best == "" {
			best, least = name, d
		}
	}
	return best
}
