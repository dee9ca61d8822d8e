// Package replay sends the journals of runs to clients, from any place on, and goes on as they
// grow.
//
//	GET /v1/replay                 WebSocket   wf.replay.v1, wf.replay.v1+cbor
//	GET /v1/sessions/{id}/events   SSE, or NDJSON by Accept
//
// # Every subscriber is a cursor
//
// A cursor is the last event that the client has. It reads what follows in short transactions,
// writes it when they are closed, and at the end of the journal says replay_complete and waits
// for a change. There is no moment at which reading ends and listening begins, and so there is no
// gap and no duplicate at the hand-over.
//
//	place ──► read ≤ 256 events │ 64 KiB ──► write ──► … ──► complete ──► change │ delta │ 15 s
//	  ▲                                                                     │
//	  └──── reset {commonSeq}: the head stands on another history ◄─────────┘
//
// A slow client delays its own cursor alone: TCP holds it back, and past the write deadline it is
// cut off and loses nothing.
//
// Cursors of one run share what they read: a batch, and the JSON of an event, is made once for a
// crowd. One goroutine waits for changes of the store for all of them, while there are any.
//
// # Live output
//
// Deltas are what models and commands say before it is recorded. They go through a ring per
// subscriber that drops the oldest, and stand between the events where they were said. They are
// never a cursor: the whole text follows as an event. Those of a run that another process drives may be passed on by
// a Broadcast, with the step, event and number that they have there.
//
// # Lists
//
// A list_request is answered with the names of lists that change, by package lists: the store is looked at once for all clients.
//
// # Not here
//
// Authentication, and the checks of Host and Origin: hub/guard has them.
package replay
