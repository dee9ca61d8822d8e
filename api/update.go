package api

import "wf/protocol"

// An Update is one thing that happened to a run: an event that is durable, or live output that never
// will be.
type Update struct {
	Run   protocol.RunID
	Entry *protocol.Entry // nil for live output
	Data  protocol.Data   // of the event, decoded, long texts in place; a protocol.Delta for live output
	Step  string          // of the event or the output, "" for what belongs to no step

	After protocol.Seq // of live output that a server sent: the newest event when it was said
	N     int64        // of the same: counts the output of a step, so that a reader sees what is missing
}
