package client

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/hub/internal/memfeed"
	"wf/protocol"
)

// What is read by hand is what protocol reads; what is not of that form goes there.
func TestTheWalkReadsWhatTheProtocolReads(t *testing.T) {
	first := memfeed.Next(protocol.Entry{}, "one")
	second := memfeed.Next(first, "two")
	place := func(e protocol.Entry) protocol.WireEvent {
		return protocol.WireEvent{Seq: e.Seq, CID: e.CID, Raw: e.Raw}
	}
	links := cmp.Comparer(func(a, b protocol.Link) bool { return a == b })
	for _, c := range []struct {
		name   string
		f      protocol.Frame
		walked bool
	}{
		{"a batch", protocol.Frame{Type: protocol.FrameReplayBatch, Events: []protocol.WireEvent{place(first), place(second)}}, true},
		{"a live batch with an id", protocol.Frame{Type: protocol.FrameReplayBatch, ID: "7", Live: true, Events: []protocol.WireEvent{place(first)}}, true},
		{"one event without its bytes", protocol.Frame{Type: protocol.FrameReplayBatch, Events: []protocol.WireEvent{place(first), {Seq: 2, CID: second.CID, Size: 9}}}, false},
		{"another frame", protocol.Frame{Type: protocol.FramePong, N: 7}, false},
	} {
		b, err := c.f.Encode(protocol.CBORFrames)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := walkBatch(b); ok != c.walked {
			t.Errorf("%s: walked %v", c.name, ok)
		}
		got, err := parseFrame(protocol.CBORFrames, b)
		if d := cmp.Diff(c.f, got, links); err != nil || d != "" {
			t.Errorf("%s: %v\n%s", c.name, err, d)
		}
		for n := range b { // cut off anywhere it is an error, not another batch
			if f, ok := walkBatch(b[:n]); ok {
				t.Errorf("%s: %d bytes are %+v", c.name, n, f)
			}
		}
	}
	for _, e := range []protocol.Entry{first, second} {
		var got protocol.Event
		if !walkEvent(e.Raw, &got) {
			t.Errorf("event %d is not walked", e.Seq)
		}
		if d := cmp.Diff(e.Event, got, links); d != "" {
			t.Errorf("event %d: %s", e.Seq, d)
		}
	}
}
