package replay_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"wf/hub/replay"
	"wf/protocol"
)

// A window is exactly the events it names, on every wire and in any company, and says where it
// ended and where the head is.
func TestAWindowIsTheEventsItNames(t *testing.T) {
	t.Parallel()
	const n = 600
	store := openStore(t)
	want := fill(t, store, "run", n)
	h := serve(t, &replay.Server{Feed: store})
	for _, c := range codecs {
		t.Run(c.name, func(t *testing.T) {
			p := dial(t, h, c.codec)
			rapid.Check(t, func(rt *rapid.T) {
				from := rapid.Int64Range(0, n).Draw(rt, "from")
				to := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(max(1, from), n+500)).Draw(rt, "to")
				limit := rapid.OneOf(rapid.Just(0), rapid.IntRange(1, 400)).Draw(rt, "limit")
				p.t = t
				p.send(protocol.Request{Type: protocol.FrameReplayRequest, ID: "1", SessionID: "run", Batch: c.batch,
					FromSeq: seqOf(protocol.Seq(from)), ToSeq: protocol.Seq(to), Limit: limit})
				got, end := p.until(protocol.FrameReplayComplete)
				last := int64(n)
				if to > 0 {
					last = min(last, to)
				}
				if limit > 0 {
					last = min(last, from+int64(limit))
				}
				if len(got) != int(last-from) || len(got) > 0 && (got[0].CID != want[from].CID || got[len(got)-1].CID != want[last-1].CID) {
					rt.Fatalf("%d events, want those from %d to %d", len(got), from+1, last)
				}
				head := protocol.Seq(0)
				if to > 0 || limit > 0 {
					head = n
				}
				if int64(end.LastSeq) != last || end.HeadSeq != head || last > 0 && end.LastCID != want[last-1].CID {
					rt.Fatalf("complete says %d, head %d; want %d, head %d", end.LastSeq, end.HeadSeq, last, head)
				}
			})
		})
	}
}

// Cursors of one run share what is read; a window takes its own part of it alone.
func TestWindowsInACrowdKeepTheirBounds(t *testing.T) {
	store := openStore(t)
	want := fill(t, store, "run", 3000)
	h := serve(t, &replay.Server{Feed: store})
	var all sync.WaitGroup
	for range 12 {
		p := dial(t, h, protocol.CBORFrames)
		all.Go(func() {
			for range 10 {
				from := rand.IntN(2900)
				limit := 1 + rand.IntN(300)
				p.send(protocol.Request{Type: protocol.FrameReplayRequest, SessionID: "run", FromSeq: seqOf(protocol.Seq(from)), Limit: limit, Batch: true})
				got, end := p.until(protocol.FrameReplayComplete)
				last := min(3000, from+limit)
				if len(got) != last-from || int(end.LastSeq) != last || end.LastCID != want[last-1].CID {
					t.Errorf("from %d, limit %d: %d events, complete at %d", from, limit, len(got), end.LastSeq)
				}
			}
		})
	}
	all.Wait()
}

// A window that is of another history begins with a reset, and keeps its end.
func TestAWindowOfAnotherHistoryIsReset(t *testing.T) {
	store := openStore(t)
	want := fill(t, store, "run", 60)
	fill(t, store, "other", 60)
	p := dial(t, serve(t, &replay.Server{Feed: store}), protocol.JSONFrames)
	p.send(protocol.Request{Type: protocol.FrameReplayRequest, SessionID: "run", FromSeq: seqOf(40), ToSeq: 50, LastCID: want[38].CID})
	if f := p.read(); f.Type != protocol.FrameReset || f.HeadSeq != 60 {
		t.Fatalf("%+v", f)
	}
	got, end := p.until(protocol.FrameReplayComplete)
	if len(got) == 0 || got[len(got)-1].Seq != 50 || end.LastSeq != 50 || end.HeadSeq != 60 {
		t.Errorf("%d events, complete %+v", len(got), end)
	}
}

func TestWindowsThatCannotBeAreRefused(t *testing.T) {
	store := openStore(t)
	fill(t, store, "run", 10)
	h := serve(t, &replay.Server{Feed: store})
	p := dial(t, h, protocol.JSONFrames)
	for _, c := range []struct{ fields, query, code string }{
		{`"fromSeq":5,"toSeq":4`, "fromSeq=5&toSeq=4", "bad_cursor"},
		{`"fromSeq":5,"toSeq":0`, "fromSeq=5&toSeq=0", "bad_cursor"},
		{`"fromSeq":5,"limit":0`, "fromSeq=5&limit=0", "bad_cursor"},
		{`"fromSeq":5,"limit":-1`, "fromSeq=5&limit=-1", "bad_cursor"},
		{`"fromSeq":5,"toSeq":1.5`, "fromSeq=5&toSeq=x", "bad_cursor"},
		{`"fromSeq":5,"toSeq":7,"live":true`, "fromSeq=5&toSeq=7&live=true", "bad_request"},
		{`"limit":7`, "", "bad_cursor"},
	} {
		p.ask(`{"type":"replay_request","sessionId":"run",` + c.fields + `}`)
		if f := p.read(); f.Type != protocol.FrameReplayError || f.Code != c.code {
			t.Errorf("%s: %+v", c.fields, f)
		}
		if c.query == "" {
			continue
		}
		for _, accept := range []string{"text/event-stream", "application/x-ndjson"} {
			if resp := get(t, h.URL+"/v1/sessions/run/events?"+c.query, "Accept", accept); resp.StatusCode != 400 {
				t.Errorf("%s: %s", c.query, resp.Status)
			}
		}
	}
}

func TestAStreamOfAWindowEnds(t *testing.T) {
	store := openStore(t)
	fill(t, store, "run", 700)
	h := serve(t, &replay.Server{Feed: store})
	r := bufio.NewReader(get(t, h.URL+"/v1/sessions/run/events?fromSeq=600&toSeq=650&limit=30", "Accept", "text/event-stream").Body)
	for seq := 601; seq <= 630; seq++ {
		if id, f, _ := sse(t, r); id != fmt.Sprint(seq) || int(f.Event.Seq) != seq {
			t.Fatalf("event %q %d where %d is due", id, f.Event.Seq, seq)
		}
	}
	if _, f, _ := sse(t, r); f.Type != protocol.FrameReplayComplete || f.LastSeq != 630 || f.HeadSeq != 700 {
		t.Errorf("%+v", f)
	}
	if rest, err := r.ReadString('\n'); err == nil {
		t.Errorf("the stream goes on: %q", rest)
	}
}

// A window costs the same wherever in a run it lies.
func BenchmarkWindow(b *testing.B) {
	store := openStore(b)
	fill(b, store, "run", 100_000)
	h := serve(b, &replay.Server{Feed: store})
	p := dial(b, h, protocol.JSONFrames)
	for _, from := range []protocol.Seq{0, 50_000, 99_000} {
		b.Run(fmt.Sprint(from), func(b *testing.B) {
			for b.Loop() {
				p.send(protocol.Request{Type: protocol.FrameReplayRequest, SessionID: "run", FromSeq: seqOf(from), Limit: 500, Batch: true})
				if got, _ := p.until(protocol.FrameReplayComplete); len(got) != 500 {
					b.Fatal(len(got))
				}
			}
		})
	}
}
