// Package client is the other end of wf serve and wf hub.
//
// A Replay follows a run over any number of connections. It accepts an event only as the
// successor of the one before, by seq and by CID, and on the CBOR wire only if its bytes hash to
// that CID: so what a consumer has applied is the journal, whatever a network or a server
// between does.
//
//	connect ──► replay_request {fromSeq, lastCid} ──► events … ──► complete ──► live
//	   ▲                                                                         │
//	   └──── full jitter, 250 ms · 2^n up to 15 s ◄──── cut off, too slow, … ◄───┘
//
// # Not here
//
// Keeping the cursor: the consumer stores it with what it made of the events, after it has.
package client
