package replay_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"wf/cas"
	"wf/hub/internal/memfeed"
	"wf/hub/replay"
	"wf/protocol"
)

// A run that is deleted ends its subscriptions with run_deleted, and that is the answer from then on, over each transport.
func TestADeletedRunIsNamedAsOne(t *testing.T) {
	store := openStore(t)
	all := fill(t, store, "run", 100)
	fill(t, store, "other", 3)
	h := serve(t, &replay.Server{Feed: store})
	for _, codec := range []protocol.Codec{protocol.JSONFrames, protocol.CBORFrames} {
		run := protocol.RunID("run")
		if codec == protocol.CBORFrames {
			run = "second"
			all = fill(t, store, run, 100)
		}
		p := dial(t, h, codec)
		p.send(protocol.Request{Type: protocol.FrameReplayRequest, ID: "1", SessionID: run, FromSeq: seqOf(0), Live: true, Batch: true})
		p.until(protocol.FrameReplayComplete)
		head, err := store.Head(t.Context(), protocol.RunHead(run))
		if err != nil {
			t.Fatal(err)
		}
		d, err := cas.Bury(head, protocol.Tombstone{By: "ada", At: 1, Why: "too old"})
		if err == nil {
			err = store.Commit(t.Context(), cas.Batch{Deletes: []cas.Deletion{d}})
		}
		if err != nil {
			t.Fatal(err)
		}
		if f := p.read(); f.Type != protocol.FrameReplayError || f.ID != "1" || f.Code != "run_deleted" {
			t.Fatalf("a subscription of a run that is deleted: %+v", f)
		}
		for _, from := range []*protocol.Seq{nil, seqOf(0), seqOf(40), seqOf(100), seqOf(300)} {
			p.send(protocol.Request{Type: protocol.FrameReplayRequest, ID: "2", SessionID: run, FromSeq: from})
			if f := p.read(); f.Type != protocol.FrameReplayError || f.ID != "2" || f.Code != "run_deleted" || f.Message == "" {
				t.Fatalf("asked from %v: %+v", from, f)
			}
		}
		p.send(protocol.Request{Type: protocol.FrameReplayRequest, SessionID: run, FromSeq: seqOf(40), LastCID: all[39].CID})
		if f := p.read(); f.Code != "run_deleted" {
			t.Fatalf("asked with a proof: %+v", f)
		}
		p.send(protocol.Request{Type: protocol.FrameReplayRequest, SessionID: "other", FromSeq: seqOf(0)}) // the connection stays
		if got, _ := p.until(protocol.FrameReplayComplete); len(got) != 3 {
			t.Errorf("%d events of another run", len(got))
		}
	}
	for _, accept := range []string{"text/event-stream", "application/x-ndjson"} {
		resp := get(t, h.URL+"/v1/sessions/run/events?fromSeq=3", "Accept", accept)
		if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusGone {
			t.Errorf("%s: %d %s %v", accept, resp.StatusCode, body, err)
		}
	}
}

// Without lastCid a history that has diverged is continued: what comes then does not follow the event that the client
// holds, which its prev alone tells. Where nothing comes, nothing tells.
func TestWithoutProofADivergedHistoryIsContinued(t *testing.T) {
	m := memfeed.New()
	m.Add("run", 40, "old")
	old := m.Chain("run")
	m.Restore("run", 17)
	m.Add("run", 20, "new")
	now := m.Chain("run")
	h := serve(t, &replay.Server{Feed: m})
	for _, codec := range []protocol.Codec{protocol.JSONFrames, protocol.CBORFrames} {
		for _, from := range []int{16, 17, 18, 36, 37} {
			p := dial(t, h, codec)
			p.send(protocol.Request{Type: protocol.FrameReplayRequest, SessionID: "run", FromSeq: seqOf(protocol.Seq(from))})
			got, end := p.until(protocol.FrameReplayComplete)
			sameEvents(t, now[from:], got)
			if len(got) > 0 {
				prev := got[0].Prev
				if codec == protocol.CBORFrames {
					prev = prevOf(t, got[0])
				}
				if (prev == old[from-1].CID) != (from <= 17) || prev != now[from-1].CID {
					t.Errorf("from %d: %s precedes what comes, %s is held", from, prev, old[from-1].CID)
				}
			}
			if end.LastSeq != 37 || end.LastCID != now[36].CID {
				t.Errorf("from %d: complete at %d, %s", from, end.LastSeq, end.LastCID)
			}
		}
		for _, from := range []int{38, 40} { // beyond the head: what is there is told, not guessed
			p := dial(t, h, codec)
			p.send(protocol.Request{Type: protocol.FrameReplayRequest, SessionID: "run", FromSeq: seqOf(protocol.Seq(from))})
			if f := p.read(); f.Code != "future_cursor" || f.HeadSeq != 37 {
				t.Errorf("from %d: %+v", from, f)
			}
		}
	}
	for _, from := range []int{18, 37} { // over HTTP too
		resp := get(t, fmt.Sprintf("%s/v1/sessions/run/events?fromSeq=%d", h.URL, from), "Accept", "application/x-ndjson")
		if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("from %d: %d %s %v", from, resp.StatusCode, body, err)
		}
	}
}

// prevOf reads what precedes an event from its bytes.
func prevOf(t *testing.T, e protocol.WireEvent) protocol.Link {
	t.Helper()
	var x protocol.Event
	if err := protocol.DecodeEvent(e.Raw, &x); err != nil {
		t.Fatal(err)
	}
	return x.Prev
}
