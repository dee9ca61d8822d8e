package replay_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"wf/cas"
	"wf/hub/internal/memfeed"
	"wf/hub/replay"
	"wf/protocol"
)

// K-03: clients that come before, while and after a run is written see each event once, in order,
// over the hand-over from replay to live; one that never reads holds nobody up.
func TestK03NoGapAndNoDuplicateWhileTheRunIsWritten(t *testing.T) {
	const written = 3000
	store := openStore(t)
	j, err := store.Journal(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	all := extend(t, j, 500)
	h := serve(t, &replay.Server{Feed: store})
	stalled(t, h.Listener.Addr())

	start := make(chan struct{})
	var clients sync.WaitGroup
	for i, c := range []struct {
		from  protocol.Seq
		codec protocol.Codec
		batch bool
	}{{0, protocol.JSONFrames, false}, {0, protocol.CBORFrames, true}, {250, protocol.CBORFrames, false}, {499, protocol.JSONFrames, true}} {
		p := dial(t, h, c.codec)
		clients.Go(func() {
			if i%2 == 1 {
				<-start
			}
			p.send(protocol.Request{Type: protocol.FrameReplayRequest, SessionID: "run", FromSeq: &c.from, Live: true, Batch: c.batch})
			last := c.from
			for last < written {
				_, b, err := p.conn.Read(t.Context())
				if err != nil {
					t.Errorf("client %d at %d: %v", i, last, err)
					return
				}
				f, err := protocol.ParseFrame(c.codec, b)
				if err != nil {
					t.Error(err)
					return
				}
				for _, e := range events(f) {
					if e.Seq != last+1 {
						t.Errorf("client %d: event %d after %d", i, e.Seq, last)
						return
					}
					last = e.Seq
				}
				if f.Type == protocol.FrameReplayError {
					t.Errorf("client %d: %s", i, f.Message)
					return
				}
			}
		})
	}
	for len(all) < written {
		if len(all) == 1000 {
			close(start)
		}
		drafts := make([]cas.Draft, 10)
		for i := range drafts {
			drafts[i] = cas.Draft{Step: "coder#1", Data: protocol.TextSaid{Content: protocol.NewText(fmt.Sprint("text ", len(all)+i))}}
		}
		got, err := j.Append(t.Context(), 1, drafts, nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, got...)
	}
	clients.Wait()
}

// stalled asks for everything and never reads.
func stalled(t testing.TB, addr net.Addr) {
	t.Helper()
	conn, _, err := websocket.Dial(context.Background(), "http://"+addr.String()+"/v1/replay", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.CloseNow() })
	if err := conn.Write(context.Background(), websocket.MessageText, []byte(`{"type":"replay_request","sessionId":"run","fromSeq":0,"live":true}`)); err != nil {
		t.Fatal(err)
	}
}

// stuffed is a store with a run that is longer than the buffers between both ends.
func stuffed(t *testing.T) (*cas.Store, []protocol.Entry) {
	t.Helper()
	store := openStore(t)
	j, err := store.Journal(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	drafts := make([]cas.Draft, 400)
	for i := range drafts {
		drafts[i] = cas.Draft{Step: "a#1", Data: protocol.TextSaid{Content: protocol.NewText(fmt.Sprint(i, strings.Repeat(" and so on", 6000)))}}
	}
	all, err := j.Append(t.Context(), 1, drafts, nil)
	if err != nil {
		t.Fatal(err)
	}
	return store, all
}

// A client that does not read until the deadline is cut off; one that comes back with its last
// seq has lost nothing.
func TestAClientThatNeverReadsIsCutOff(t *testing.T) {
	t.Parallel()
	store, want := stuffed(t)
	left := make(departure)
	p := dial(t, serve(t, &replay.Server{Feed: store, Deltas: left, WriteTimeout: 20 * time.Millisecond}), protocol.JSONFrames)
	p.ask(`{"type":"replay_request","sessionId":"run","fromSeq":0,"live":true}`)
	<-left
	var got []protocol.WireEvent
	for {
		_, b, err := p.conn.Read(t.Context())
		if err != nil {
			break
		}
		f, err := protocol.ParseFrame(protocol.JSONFrames, b)
		if err != nil {
			break // cut off in the middle of it
		}
		got = append(got, events(f)...)
	}
	if len(got) == len(want) {
		t.Fatalf("all %d events came", len(got))
	}
	q := dial(t, serve(t, &replay.Server{Feed: store}), protocol.JSONFrames)
	request := protocol.Request{Type: protocol.FrameReplayRequest, SessionID: "run", FromSeq: seqOf(protocol.Seq(len(got))), Batch: true}
	if len(got) > 0 {
		request.LastCID = got[len(got)-1].CID
	}
	q.send(request)
	rest, _ := q.until(protocol.FrameReplayComplete)
	sameEvents(t, want, append(got, rest...))
}

// A server that stops does not wait for those who do not read.
func TestAServerThatStopsLeavesAStalledClient(t *testing.T) {
	t.Parallel()
	store, _ := stuffed(t)
	s := &replay.Server{Feed: store, WriteTimeout: time.Hour}
	h := serve(t, s)
	p := dial(t, h, protocol.JSONFrames)
	p.ask(`{"type":"replay_request","sessionId":"run","fromSeq":0,"live":true}`)
	p.read()
	res, err := http.Get(h.URL + "/v1/sessions/run/events")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestAHeadThatMovesIsAReset(t *testing.T) {
	m := memfeed.New()
	m.Add("run", 300, "old")
	old := m.Chain("run")
	h := serve(t, &replay.Server{Feed: m})
	p := dial(t, h, protocol.JSONFrames)
	p.ask(`{"type":"replay_request","id":"x","sessionId":"run","fromSeq":0,"live":true}`)
	got, _ := p.until(protocol.FrameReplayComplete)
	sameEvents(t, old, got)

	expect := func(p *peer, common, head protocol.Seq) {
		t.Helper()
		f := p.read()
		if f.Type != protocol.FrameReset || f.ID != "x" || f.Reason != "head_moved" || f.CommonSeq != common || common > 0 && f.CommonCID != old[common-1].CID {
			t.Fatalf("%+v", f)
		}
		if head > 0 && f.HeadSeq != head {
			t.Errorf("the head is told to be at %d", f.HeadSeq)
		}
	}
	m.Restore("run", 17) // the client's history goes on behind the head
	expect(p, 17, 17)
	m.Add("run", 20, "new") // it is followed from there
	for seq := protocol.Seq(18); seq <= 37; seq++ {
		if f := p.read(); f.Event.Seq != seq || f.Type != protocol.FrameEvent {
			t.Fatalf("%+v", f)
		}
	}
	now := m.Chain("run")

	// A client that was away: same number, longer, shorter; what it has is no longer the history.
	for _, c := range []struct {
		name   string
		from   int
		common protocol.Seq
	}{{"at the head", 37, 17}, {"before the head", 25, 17}, {"beyond the head", 300, 17}, {"before the fork", 9, 0}} {
		p := dial(t, h, protocol.JSONFrames)
		p.ask(fmt.Sprintf(`{"type":"replay_request","id":"x","sessionId":"run","fromSeq":%d,"lastCid":"%s"}`, c.from, old[c.from-1].CID))
		at := protocol.Seq(c.from)
		if c.common > 0 {
			at = c.common
			expect(p, c.common, 37)
		}
		rest, _ := p.until(protocol.FrameReplayComplete)
		sameEvents(t, now[at:], rest)
	}

	// A proof that this store never had: nothing is known to be shared.
	foreign := memfeed.Next(memfeed.Next(protocol.Entry{}, "elsewhere"), "elsewhere")
	q := dial(t, h, protocol.JSONFrames)
	q.ask(fmt.Sprintf(`{"type":"replay_request","id":"x","sessionId":"run","fromSeq":2,"lastCid":"%s"}`, foreign.CID))
	expect(q, 0, 37)
	rest, _ := q.until(protocol.FrameReplayComplete)
	sameEvents(t, now, rest)
}

func TestAQuietSubscriptionHasHeartbeats(t *testing.T) {
	m := memfeed.New()
	m.Add("run", 3, "e")
	p := dial(t, serve(t, &replay.Server{Feed: m, Heartbeat: time.Millisecond}), protocol.JSONFrames)
	p.ask(`{"type":"replay_request","sessionId":"run","live":true}`)
	p.until(protocol.FrameReplayComplete)
	for range 3 {
		if f := p.read(); f.Type != protocol.FrameHeartbeat || f.LastSeq != 3 || f.LastCID != m.Chain("run")[2].CID {
			t.Errorf("%+v", f)
		}
	}
}

// A client that answers no ping is gone, though its connection is not.
func TestAClientThatAnswersNoPingIsLetGo(t *testing.T) {
	m := memfeed.New()
	m.Add("run", 1, "e")
	left := make(departure)
	p := dial(t, serve(t, &replay.Server{Feed: m, Deltas: left, PingEvery: 5 * time.Millisecond}), protocol.JSONFrames)
	p.ask(`{"type":"replay_request","sessionId":"run","live":true}`)
	<-left // it does not read, and so never answers
}

// departure is closed when the subscription ends.
type departure chan struct{}

func (d departure) Subscribe(protocol.RunID, func(protocol.LiveDelta)) func() {
	return func() { close(d) }
}

// What is said stands between the events where it was said, and a client that does not read
// loses the oldest of it, with their number.
func TestDeltasStandWhereTheyWereSaid(t *testing.T) {
	m := memfeed.New()
	m.Add("run", 2, "e")
	var b replay.Broadcast
	p := dial(t, serve(t, &replay.Server{Feed: m, Deltas: &b}), protocol.JSONFrames)
	p.ask(`{"type":"replay_request","sessionId":"run","live":true}`)
	p.until(protocol.FrameReplayComplete)
	commit := func() {
		m.Add("run", 1, "e")
		chain := m.Chain("run")
		b.Event("run", &chain[len(chain)-1].Event)
	}
	commit()
	b.Delta("run", "coder#1", protocol.Delta{Kind: "thinking", Text: "hm"})
	b.Delta("run", "coder#1", protocol.Delta{Kind: "text", Text: "so"})
	b.Delta("other", "coder#1", protocol.Delta{Kind: "text", Text: "not for us"})
	commit()
	b.Delta("run", "coder#1", protocol.Delta{Kind: "text", Text: " far"})
	b.End("run")
	var got []string
	for len(got) < 5 {
		switch f := p.read(); f.Type {
		case protocol.FrameEvent:
			got = append(got, fmt.Sprint("event ", f.Event.Seq))
		case protocol.FrameDelta:
			got = append(got, fmt.Sprintf("%s %q %d after %d of %s", f.Kind, f.Text, f.N, f.AfterSeq, f.Step))
		}
	}
	want := []string{"event 3", `thinking "hm" 1 after 3 of coder#1`, `text "so" 2 after 3 of coder#1`, "event 4", `text " far" 3 after 4 of coder#1`}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("have\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestDeltasThatNobodyTakesAreDroppedAndCounted(t *testing.T) {
	m := memfeed.New()
	m.Add("run", 2, "e")
	var b replay.Broadcast
	s := &replay.Server{Feed: m, Deltas: &b}
	ctx, stop := context.WithCancel(t.Context())
	const said, size = 1000, 1000
	var texts []string
	dropped := int64(0)
	sink := collect{frame: func(f *protocol.Frame) error {
		switch f.Type {
		case protocol.FrameReplayComplete: // the client is stuck here meanwhile
			for i := range said {
				b.Delta("run", "a#1", protocol.Delta{Kind: "text", Text: fmt.Sprintf("%*d", size, i)})
			}
		case protocol.FrameDelta:
			texts = append(texts, strings.TrimSpace(f.Text))
			dropped += f.Dropped
			if int(f.N) == said {
				stop()
			}
		}
		return nil
	}}
	if err := s.Follow(ctx, protocol.Request{SessionID: "run", Live: true}, sink); ctx.Err() == nil {
		t.Fatal(err)
	}
	if len(texts)+int(dropped) != said || dropped == 0 || texts[len(texts)-1] != fmt.Sprint(said-1) || len(texts)*size > 256<<10 {
		t.Errorf("%d came, %d were dropped, the last is %q", len(texts), dropped, texts[len(texts)-1])
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A delta that was said after an event which is not there is dropped, and what is said behind it comes: the head was put
// back, or another process made it up.
func TestADeltaOfAnEventThatIsNotThereIsDropped(t *testing.T) {
	m := memfeed.New()
	m.Add("run", 2, "e")
	p := dial(t, serve(t, &replay.Server{Feed: m, Deltas: made{
		{Run: "run", After: 1, Step: "a#1", N: 1, Delta: protocol.Delta{Kind: "text", Text: "one"}},
		{Run: "run", After: 100, Step: "a#1", N: 2, Delta: protocol.Delta{Kind: "text", Text: "made up"}},
		{Run: "run", After: 2, Step: "a#1", N: 3, Delta: protocol.Delta{Kind: "text", Text: "two"}},
	}}), protocol.JSONFrames)
	p.ask(`{"type":"replay_request","sessionId":"run","live":true}`)
	for _, want := range []protocol.Frame{{N: 1, Text: "one"}, {N: 3, Text: "two"}} {
		f := p.read()
		for f.Type != protocol.FrameDelta {
			f = p.read()
		}
		if f.N != want.N || f.Text != want.Text || f.Dropped != want.Dropped {
			t.Errorf("%+v came, want %+v", f, want)
		}
	}
}

// made says the same to every subscriber.
type made []protocol.LiveDelta

func (m made) Subscribe(_ protocol.RunID, send func(protocol.LiveDelta)) func() {
	for _, d := range m {
		send(d)
	}
	return func() {}
}

// On a real store too a head may be put back, as a restore does.
func TestAStoreThatWasPutBackIsAReset(t *testing.T) {
	store := openStore(t)
	all := fill(t, store, "run", 100)
	p := dial(t, serve(t, &replay.Server{Feed: store}), protocol.CBORFrames)
	p.send(protocol.Request{Type: protocol.FrameReplayRequest, SessionID: "run", FromSeq: seqOf(0), Live: true, Batch: true})
	p.until(protocol.FrameReplayComplete)
	if err := store.Commit(t.Context(), cas.Batch{Moves: []cas.Move{{Name: protocol.RunHead("run"), Old: all[99].CID, New: all[39].CID, TS: 1,
		Events: []cas.EventRef{{Seq: 40, CID: all[39].CID}}}}}); err != nil {
		t.Fatal(err)
	}
	if f := p.read(); f.Type != protocol.FrameReset || f.CommonSeq != 40 || f.CommonCID != all[39].CID {
		t.Errorf("%+v", f)
	}
	more := fill(t, store, "run", 3)
	got := events(p.read())
	if len(got) != 3 || got[0].Seq != 41 || got[0].CID != more[0].CID {
		t.Errorf("%+v", got)
	}
}
