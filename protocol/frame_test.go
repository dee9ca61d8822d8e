package protocol_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ipfs/go-cid"
	"github.com/multiformats/go-multihash"

	"wf/protocol"
)

// linkTo is the CID of a text.
func linkTo(t testing.TB, text string) protocol.Link {
	t.Helper()
	sum, err := multihash.Sum([]byte(text), multihash.SHA2_256, -1)
	if err != nil {
		t.Fatal(err)
	}
	return protocol.NewLink(cid.NewCidV1(cid.DagCBOR, sum))
}

// requests are one of each kind.
func requests(t testing.TB) []protocol.Request {
	zero, at := protocol.Seq(0), protocol.Seq(1200)
	return []protocol.Request{
		{Type: protocol.FrameReplayRequest, SessionID: "7K3Q", FromSeq: &zero},
		{Type: protocol.FrameReplayRequest, ID: "1", SessionID: "7K3Q", FromSeq: &at, LastCID: linkTo(t, "1200"), Live: true, Batch: true},
		{Type: protocol.FrameReplayRequest, SessionID: "7K3Q", Live: true},
		{Type: protocol.FrameCancel, ID: "1"},
		{Type: protocol.FramePing, N: 7},
		{Type: protocol.FramePing},
		{Type: protocol.FrameBlockRequest, ID: "b", CID: linkTo(t, "block")},
		{Type: protocol.FrameListRequest, ID: "l", Lists: []protocol.List{protocol.ListRuns, protocol.ListQueue, "of tomorrow"}},
	}
}

// frames are one of each kind, as the codec carries them.
func frames(t testing.TB, c protocol.Codec) []protocol.Frame {
	step := "coder#2"
	one := protocol.WireEvent{Seq: 1201, CID: linkTo(t, "1201"), Prev: linkTo(t, "1200"), TS: 1_767_585_601_000_002, Type: protocol.EvText, Step: &step, Data: protocol.JSON(`{"content":"<é>"}`)}
	two := protocol.WireEvent{Seq: 1, CID: linkTo(t, "1"), TS: 5, Type: protocol.EvRunStarted, Data: protocol.JSON(`{}`)}
	if c == protocol.CBORFrames {
		one = protocol.WireEvent{Seq: 1201, CID: linkTo(t, "1201"), Raw: []byte{0xa0}}
		two = protocol.WireEvent{Seq: 1, CID: linkTo(t, "1"), Size: 2 << 20}
	}
	return []protocol.Frame{
		{Type: protocol.FrameReplayEvent, ID: "1", Event: one},
		{Type: protocol.FrameEvent, Event: two},
		{Type: protocol.FrameReplayBatch, ID: "1", Live: true, Events: []protocol.WireEvent{one, two}},
		{Type: protocol.FrameReplayComplete, ID: "1", LastSeq: 1547, LastCID: linkTo(t, "1547")},
		{Type: protocol.FrameHeartbeat, LastSeq: 1547, LastCID: linkTo(t, "1547")},
		{Type: protocol.FrameDelta, ID: "1", AfterSeq: 1548, Step: "coder#2", N: 17, Kind: "text", Text: "wor", Dropped: 3},
		{Type: protocol.FrameReset, ID: "1", Reason: protocol.ResetHeadMoved, CommonSeq: 1184, CommonCID: linkTo(t, "1184"), HeadSeq: 1190},
		{Type: protocol.FrameReset, Reason: protocol.ResetHeadMoved, HeadSeq: 3},
		{Type: protocol.FrameReplayError, ID: "1", Code: "gap", Message: "event 12 is missing", Seq: 12, HeadSeq: 40},
		{Type: protocol.FramePong, N: 7},
		{Type: protocol.FrameBlock, ID: "b", CID: linkTo(t, "block"), Offset: 0, Size: 3, Bytes: []byte("abc")},
		{Type: protocol.FrameListChanged, ID: "l", List: protocol.ListRuns, Runs: []protocol.RunID{"7K3Q", "8M2A"}},
		{Type: protocol.FrameListChanged, ID: "l", List: protocol.ListQueue, All: true},
	}
}

var codecs = []protocol.Codec{protocol.JSONFrames, protocol.CBORFrames}

var equalLinks = cmp.Comparer(func(a, b protocol.Link) bool { return a == b })

func TestEveryFrameReadsAsItWasWritten(t *testing.T) {
	for _, c := range codecs {
		for _, r := range requests(t) {
			b, err := r.Encode(c)
			if err != nil {
				t.Fatal(err)
			}
			got, err := protocol.ParseRequest(c, b)
			if d := cmp.Diff(r, got, equalLinks); err != nil || d != "" {
				t.Errorf("%s: %v\n%s", b, err, d)
			}
		}
		for _, f := range frames(t, c) {
			b, err := f.Encode(c)
			if err != nil {
				t.Fatal(err)
			}
			got, err := protocol.ParseFrame(c, b)
			if d := cmp.Diff(f, got, equalLinks); err != nil || d != "" {
				t.Errorf("%s: %v\n%s", b, err, d)
			}
		}
	}
}

// The frames stand in the documents with these words.
func TestFramesAreWrittenAsTheyAreDescribed(t *testing.T) {
	a, b := linkTo(t, "1201").String(), linkTo(t, "1200").String()
	want := []string{
		`{"type":"replay_event","id":"1","seq":1201,"cid":"` + a + `","prev":"` + b + `","ts":"2026-01-05T04:00:01.000002Z","event":{"type":"text","step":"coder#2","data":{"content":"<é>"}}}`,
		`{"type":"event","seq":1,"cid":"` + linkTo(t, "1").String() + `","prev":null,"ts":"1970-01-01T00:00:00.000005Z","event":{"type":"run_started","step":null,"data":{}}}`,
	}
	for i, f := range frames(t, protocol.JSONFrames)[:2] {
		got, err := f.Encode(protocol.JSONFrames)
		if err != nil || string(got) != want[i] {
			t.Errorf("have %s\nwant %s", got, want[i])
		}
	}
}

func TestBadRequestsKeepTheirID(t *testing.T) {
	for _, c := range []struct {
		frame string
		want  error
		id    string
	}{
		{`{"type":"replay_request","id":"7","sessionId":"x","fromSeq":-1}`, protocol.ErrBadCursor, "7"},
		{`{"type":"replay_request","id":"7","sessionId":"x","fromSeq":null}`, nil, "7"},
		{`{"type":"replay_request","id":"7","sessionId":"x","fromSeq":{}}`, protocol.ErrBadCursor, "7"},
		{`{"type":"replay_request","id":"7"}`, protocol.ErrBadRequest, "7"},
		{`{"type":"block_request","id":"7"}`, protocol.ErrBadRequest, "7"},
		{`{"type":"list_request","id":"7"}`, protocol.ErrBadRequest, "7"},
		{`{"type":"list_request","id":"7","lists":[]}`, protocol.ErrBadRequest, "7"},
		{`{"type":"list_request","id":"7","lists":"runs"}`, protocol.ErrBadRequest, "7"},
		{`{"type":"list_request","id":"7","lists":["of tomorrow"]}`, nil, "7"},
		{`{"id":"7"}`, protocol.ErrBadRequest, "7"},
		{`{"type":"cancel","id":"` + strings.Repeat("7", 65) + `"}`, protocol.ErrBadRequest, ""},
		{`{"type":"cancel","id":"7","unknown":{"a":[1]}}`, nil, "7"},
		{`{"type":"of tomorrow","id":"7"}`, nil, "7"},
		{``, protocol.ErrBadRequest, ""},
		{strings.Repeat(" ", protocol.MaxRequest+1), protocol.ErrTooLarge, ""},
	} {
		r, err := protocol.ParseRequest(protocol.JSONFrames, []byte(c.frame))
		if !errors.Is(err, c.want) || r.ID != c.id {
			t.Errorf("%.80s: id %q, %v", c.frame, r.ID, err)
		}
	}
}

// No bytes make a parser fail other than by an error, and what one reads it reads again.
func FuzzFrames(f *testing.F) {
	for _, c := range codecs {
		for _, r := range requests(f) {
			b, err := r.Encode(c)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
		for _, x := range frames(f, c) {
			b, err := x.Encode(c)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, c := range codecs {
			if r, err := protocol.ParseRequest(c, b); err == nil {
				again(t, c, r, r.Encode, protocol.ParseRequest)
			}
			if x, err := protocol.ParseFrame(c, b); err == nil && known[x.Type] {
				again(t, c, x, x.Encode, protocol.ParseFrame)
			}
		}
	})
}

var known = map[protocol.FrameType]bool{
	protocol.FrameReplayEvent: true, protocol.FrameReplayBatch: true, protocol.FrameReplayComplete: true, protocol.FrameEvent: true,
	protocol.FrameDelta: true, protocol.FrameHeartbeat: true, protocol.FrameReset: true, protocol.FrameReplayError: true,
	protocol.FramePong: true, protocol.FrameBlock: true, protocol.FrameListChanged: true,
}

// again writes what was read, reads it, and writes it: both texts are the same.
func again[T any](t *testing.T, c protocol.Codec, v T, encode func(protocol.Codec) ([]byte, error), parse func(protocol.Codec, []byte) (T, error)) {
	t.Helper()
	first, err := encode(c)
	if err != nil {
		return // a time or text that has no form on the wire
	}
	back, err := parse(c, first)
	if err != nil {
		t.Fatalf("%s is not read again: %v", first, err)
	}
	var second []byte
	switch x := any(back).(type) {
	case protocol.Request:
		second, err = x.Encode(c)
	case protocol.Frame:
		second, err = x.Encode(c)
	}
	if err != nil || !bytes.Equal(first, second) {
		t.Fatalf("%v\n%s\n%s", err, first, second)
	}
}
