package client_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"wf/hub/client"
	"wf/hub/internal/memfeed"
	"wf/protocol"
)

// scripted answers requests with frames of the test's own making.
func scripted(t *testing.T, codec protocol.Codec, answer func(n int, r protocol.Request) []protocol.Frame) *httptest.Server {
	t.Helper()
	n := 0
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{codec.Subprotocol()}})
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.CloseNow()
		typ := websocket.MessageText
		if codec == protocol.CBORFrames {
			typ = websocket.MessageBinary
		}
		for {
			_, b, err := conn.Read(r.Context())
			if err != nil {
				return
			}
			req, err := protocol.ParseRequest(codec, b)
			if err != nil {
				t.Error(err)
				return
			}
			frames := answer(n, req)
			n++
			for _, f := range frames {
				b, err := f.Encode(codec)
				if err != nil {
					t.Error(err)
					return
				}
				if conn.Write(r.Context(), typ, b) != nil {
					return
				}
			}
			if frames == nil {
				return
			}
		}
	}))
	t.Cleanup(h.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return h
}

func wireEvents(chain []protocol.Entry) []protocol.WireEvent {
	var out []protocol.WireEvent
	for _, e := range chain {
		out = append(out, protocol.WireEvent{Seq: e.Seq, CID: e.CID, Prev: e.Prev, TS: e.TS, Type: e.Type, Step: e.Step, Data: protocol.JSON("{}"), Raw: e.Raw})
	}
	return out
}

func complete(chain []protocol.Entry) protocol.Frame {
	e := chain[len(chain)-1]
	return protocol.Frame{Type: protocol.FrameReplayComplete, LastSeq: e.Seq, LastCID: e.CID}
}

// What does not follow the cursor is asked for again, with the proof of what is held.
func TestAnEventThatIsMissingIsAskedForAgain(t *testing.T) {
	f := memfeed.New()
	f.Add("run", 10, "e")
	chain := f.Chain("run")
	all := wireEvents(chain)
	var asked []protocol.Seq
	h := scripted(t, protocol.JSONFrames, func(n int, r protocol.Request) []protocol.Frame {
		asked = append(asked, *r.FromSeq)
		if n == 0 {
			return []protocol.Frame{{Type: protocol.FrameReplayBatch, Events: all[:4]}, {Type: protocol.FrameReplayEvent, Event: all[2]}, {Type: protocol.FrameReplayEvent, Event: all[6]}}
		}
		if r.LastCID != chain[3].CID {
			t.Errorf("proof %s", r.LastCID)
		}
		return []protocol.Frame{{Type: protocol.FrameReplayBatch, Events: all[4:]}, complete(chain)}
	})
	s := newState()
	r := client.Replay{URL: h.URL, Run: "run"}
	if err := r.Follow(t.Context(), s.consumer()); err != nil {
		t.Fatal(err)
	}
	if same, err := s.is(chain); !same || err != nil || !cmp.Equal(asked, []protocol.Seq{0, 4}) {
		t.Error(same, err, asked)
	}
}

// Bytes that do not hash to their CID are never applied; where they keep coming it is an error.
func TestForgedBytesAreNotApplied(t *testing.T) {
	f := memfeed.New()
	f.Add("run", 5, "e")
	g := memfeed.New()
	g.Add("run", 5, "forged")
	all, forged := wireEvents(f.Chain("run")), wireEvents(g.Chain("run"))
	all[3].Raw = forged[3].Raw
	connections := 0
	h := scripted(t, protocol.CBORFrames, func(n int, r protocol.Request) []protocol.Frame {
		connections++
		return []protocol.Frame{{Type: protocol.FrameReplayBatch, Events: all[*r.FromSeq:]}}
	})
	s := newState()
	r := client.Replay{URL: h.URL, Run: "run", Codec: protocol.CBORFrames}
	if err := r.Follow(t.Context(), s.consumer()); !errors.Is(err, protocol.ErrCorrupt) {
		t.Fatal(err)
	}
	if len(s.events) != 3 || connections < 3 {
		t.Errorf("%d events were applied over %d connections", len(s.events), connections)
	}
}

// An event that does not fit into a frame is fetched as a block.
func TestAnEventTooLongForAFrameIsFetched(t *testing.T) {
	first := memfeed.Next(protocol.Entry{}, "short")
	second := memfeed.Next(first, "long in the eyes of this server")
	third := memfeed.Next(second, "short")
	chain := []protocol.Entry{first, second, third}
	all := wireEvents(chain)
	all[1].Raw, all[1].Size = nil, int64(len(second.Raw))
	h := scripted(t, protocol.CBORFrames, func(n int, r protocol.Request) []protocol.Frame {
		if r.Type == protocol.FrameBlockRequest {
			half := len(second.Raw) / 2
			part := protocol.Frame{Type: protocol.FrameBlock, CID: r.CID, Size: int64(len(second.Raw)), Bytes: second.Raw[:half]}
			rest := part
			rest.Offset, rest.Bytes = int64(half), second.Raw[half:]
			return []protocol.Frame{part, {Type: protocol.FrameHeartbeat, LastSeq: 1, LastCID: first.CID}, rest, complete(chain)}
		}
		return []protocol.Frame{{Type: protocol.FrameReplayEvent, Event: all[0]}, {Type: protocol.FrameReplayEvent, Event: all[1]}, {Type: protocol.FrameReplayEvent, Event: all[2]}}
	})
	s := newState()
	r := client.Replay{URL: h.URL, Run: "run", Codec: protocol.CBORFrames}
	if err := r.Follow(t.Context(), s.consumer()); err != nil {
		t.Fatal(err)
	}
	if same, err := s.is(chain); !same || err != nil {
		t.Error(same, err)
	}
}

// A delta that came before an event of its step is out of date.
func TestOldDeltasAreLeftOut(t *testing.T) {
	f := memfeed.New()
	f.Add("run", 3, "e")
	chain := f.Chain("run")
	all := wireEvents(chain)
	delta := func(after protocol.Seq, step, text string) protocol.Frame {
		return protocol.Frame{Type: protocol.FrameDelta, AfterSeq: after, Step: step, N: 1, Kind: "text", Text: text}
	}
	h := scripted(t, protocol.JSONFrames, func(int, protocol.Request) []protocol.Frame {
		return []protocol.Frame{{Type: protocol.FrameReplayBatch, Events: all}, delta(2, "coder#1", "old"), delta(3, "coder#1", "new"), delta(1, "other#1", "of another"), complete(chain)}
	})
	var heard []string
	r := client.Replay{URL: h.URL, Run: "run"}
	if err := r.Follow(t.Context(), client.Consumer{Delta: func(d protocol.LiveDelta) { heard = append(heard, d.Delta.Text) }}); err != nil {
		t.Fatal(err)
	}
	if !cmp.Equal(heard, []string{"new", "of another"}) {
		t.Error(heard)
	}
}
