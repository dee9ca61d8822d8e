package protocol

import "strings"

// The replay protocol, version 1: frames over one WebSocket, each with a type. A frame is JSON
// text, or, after negotiation, DAG-CBOR with the events as their stored bytes.
//
//	→ replay_request {sessionId, fromSeq, live}
//	← replay_event 1201 … ← replay_complete {lastSeq, lastCid}
//	← event, delta, heartbeat, reset …                        the live tail
//	→ cancel          → ping ← pong          → block_request ← block
//	→ list_request {lists}   ← list_changed {list, runs │ all} …
//
// A receiver ignores frames and fields it does not know. Everything that belongs to one request
// carries its id, so that one socket holds many subscriptions.
const (
	// FramesJSON and FramesCBOR are the names to negotiate in Sec-WebSocket-Protocol; a client
	// that names none gets JSON.
	FramesJSON = "wf.replay.v1"
	FramesCBOR = "wf.replay.v1+cbor"

	MaxRequest       = 64 << 10 // bytes of a frame from a client
	MaxFrame         = 1 << 20  // bytes of a frame to a client
	MaxFrameID       = 64       // bytes of a subscription's id
	MaxSubscriptions = 64       // of one socket
	MaxSockets       = 256      // of one server
	BlockPart        = 512 << 10
)

// Codec is how frames are written.
type Codec int

// The two codecs.
const (
	JSONFrames Codec = iota // FramesJSON, in text messages
	CBORFrames              // FramesCBOR, in binary messages
)

// CodecOf is the codec of a negotiated subprotocol; JSON for none.
func CodecOf(subprotocol string) Codec {
	if strings.EqualFold(subprotocol, FramesCBOR) {
		return CBORFrames
	}
	return JSONFrames
}

// Subprotocol is the name of the codec in Sec-WebSocket-Protocol.
func (c Codec) Subprotocol() string {
	if c == CBORFrames {
		return FramesCBOR
	}
	return FramesJSON
}

// FrameType says what a frame is.
type FrameType string

// From a client.
const (
	FrameReplayRequest FrameType = "replay_request"
	FrameCancel        FrameType = "cancel"
	FramePing          FrameType = "ping"
	FrameBlockRequest  FrameType = "block_request"
	FrameListRequest   FrameType = "list_request"
)

// To a client.
const (
	FrameReplayEvent    FrameType = "replay_event"
	FrameReplayBatch    FrameType = "replay_batch" // only after a request with batch
	FrameReplayComplete FrameType = "replay_complete"
	FrameEvent          FrameType = "event"
	FrameDelta          FrameType = "delta"
	FrameHeartbeat      FrameType = "heartbeat"
	FrameReset          FrameType = "reset"
	FrameReplayError    FrameType = "replay_error"
	FramePong           FrameType = "pong"
	FrameBlock          FrameType = "block"
	FrameListChanged    FrameType = "list_changed"
)

// List is a list of the HTTP API, GET /v1/<list>, of whose changes a client can get frames.
type List string

// The lists. Agents and Queue are those of a hub.
const (
	ListRuns          List = "runs"
	ListWorkflows     List = "workflows"
	ListTables        List = "tables"
	ListNotifications List = "notifications"
	ListDeletions     List = "deletions"
	ListAgents        List = "agents"
	ListQueue         List = "queue"
)

// MaxListed is how many runs one list_changed names; of more it says all.
const MaxListed = 256

// Request is a frame from a client.
//
//	replay_request  ID, SessionID, FromSeq, LastCID, ToSeq, Limit, Live, Batch
//	cancel          ID
//	ping            N
//	block_request   ID, CID
//	list_request    ID, Lists
//
// A replay_request or list_request with an ID that is in use takes the place of that subscription.
type Request struct {
	Type      FrameType
	ID        string // up to MaxFrameID bytes, echoed in every answer; may be ""
	SessionID RunID

	// FromSeq is the last seq that the client holds: what follows it is sent. 0 is everything;
	// nil is nothing of what there is, only what comes after the head of now.
	FromSeq *Seq
	// LastCID is the event that the client holds at FromSeq. Where the server has another one,
	// it answers with a reset instead of a silent jump. The zero Link proves nothing.
	LastCID Link
	// ToSeq is the last event that is wanted, Limit the number of events behind FromSeq; 0 is no
	// bound. With one of them replay_complete says where the window ended and where the head is.
	// A window goes together with FromSeq, and not with Live.
	ToSeq Seq
	Limit int
	// Live stays subscribed behind replay_complete.
	Live bool
	// Batch allows replay_batch frames, which pack several events.
	Batch bool

	N   int64 // of a ping, given back in the pong
	CID Link  // the block that is asked for

	Lists []List // whose changes are wanted; those that the server does not have are passed over
}

// Frame is a frame to a client. Which fields are set depends on its type:
//
//	replay_event, event  Event
//	replay_batch         Events, Live
//	replay_complete      LastSeq, LastCID, and HeadSeq of a window
//	heartbeat            LastSeq, LastCID
//	delta                AfterSeq, Step, N, Kind, Text, Dropped
//	reset                Reason, CommonSeq, CommonCID, HeadSeq
//	replay_error         Code, Message, HeadSeq, Seq
//	pong                 N
//	block                CID, Offset, Size, Bytes
//	list_changed         List, and Runs or All
type Frame struct {
	Type FrameType
	ID   string

	Event  WireEvent
	Events []WireEvent
	Live   bool // the events of a batch came after replay_complete

	LastSeq Seq
	LastCID Link

	AfterSeq Seq    // the newest event when the delta was said
	Step     string // that the delta is output of
	N        int64
	Kind     string // text, thinking, stdout, stderr
	Text     string
	Dropped  int64 // deltas that were dropped before this one, since the client was slow

	Reason    string // head_moved
	CommonSeq Seq    // the last event that old and new history share; 0 is none
	CommonCID Link
	HeadSeq   Seq // 0 is unknown

	Code    string
	Message string
	Seq     Seq // replay_error gap: the first event that could not be read

	CID    Link
	Offset int64 // where Bytes begins within the block
	Size   int64 // of the whole block
	Bytes  []byte

	List List
	Runs []RunID // that moved, came or went since the last frame about the list; at most MaxListed
	All  bool    // anything of the list may be another; the first frame about a list says so
}

// ResetHeadMoved is the reason of a reset: a fork or a restore moved the head, or the client's
// proof was of another history.
const ResetHeadMoved = "head_moved"

// WireEvent is an event on the wire.
//
// In JSON long texts of the data are in place, and other links are {"/":"cid"}; a text that
// would not fit into MaxFrame stays {"/":"cid","size":bytes}, and data that does not fit even
// so is {"/":"cid of the event","size":bytes}: block_request and GET /v1/blocks give the bytes.
//
// In CBOR Raw is the stored bytes, which hash to CID; seq, prev, ts, type, step and data are
// read from them. Of an event that does not fit into a frame only Seq, CID and Size are sent.
type WireEvent struct {
	Seq  Seq
	CID  Link
	Prev Link
	TS   int64 // unix µs
	Type EventType
	Step *string
	Data JSON // JSON only

	Raw  []byte // CBOR only
	Size int64  // CBOR only: length of the stored bytes that were not sent
}
