package render

import "wf/protocol"

// Logged are the lines of an event in wf log, with wrote also what a command wrote; none for an item
// that is folded.
func (b Backdrop) Logged(run protocol.RunID, e *protocol.Entry, d protocol.Data, wrote bool, fold *Folder) []string {
	own, lines, behind := fold.take(e, d, b.exit)
	if own {
		text := Event(d)
		if d == nil {
			text = string(e.Type)
		}
		lines = append(lines, eventLine(e, text))
		if wrote {
			lines = append(lines, b.wrote(run, e.StepName(), d)...)
		}
	}
	return append(lines, behind...)
}
