package protocol

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// TraceID names what a run, with its sub-workflows, did: W3C Trace Context, trace-id.
type TraceID [16]byte

// SpanID names a part of it: W3C Trace Context, parent-id.
type SpanID [8]byte

func (t TraceID) String() string { return hex.EncodeToString(t[:]) }

func (s SpanID) String() string { return hex.EncodeToString(s[:]) }

// TraceOf is the trace of a run that is no sub-workflow, by its id and the CID of its first event. That event tells
// stores apart, since it holds the time in µs and the workspace, and it goes along when a store is moved or put back.
// Conclusions would not do: their CIDs are equal on all machines.
func TraceOf(root RunID, first Link) TraceID {
	sum := sha256.Sum256(fmt.Appendf(nil, "wf.trace/v1\x00%s\x00%s", first, root))
	return TraceID(sum[:16])
}

// Span names the part of the trace that begins with event seq of a run: step and attempt are those of a visit, "" and
// 0 for the run itself.
func (t TraceID) Span(run RunID, step string, attempt int, seq Seq) SpanID {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%d\x00%d", t, run, step, attempt, seq))
	return SpanID(sum[:8])
}

// TraceParent hands a trace on to what a visit starts: the traceparent of W3C Trace Context, version 00, sampled.
func TraceParent(t TraceID, s SpanID) string { return "00-" + t.String() + "-" + s.String() + "-01" }
