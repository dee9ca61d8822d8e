package replay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"wf/cas"
	"wf/hub/internal/memfeed"
	"wf/hub/replay"
	"wf/protocol"
)

var codecs = []struct {
	name  string
	codec protocol.Codec
	batch bool
}{
	{"JSON, one event a frame", protocol.JSONFrames, false},
	{"JSON in batches", protocol.JSONFrames, true},
	{"CBOR, one event a frame", protocol.CBORFrames, false},
	{"CBOR in batches", protocol.CBORFrames, true},
}

func TestK01EveryEventOnceInOrderThenComplete(t *testing.T) {
	store := openStore(t)
	want := fill(t, store, "run", 1547)
	h := serve(t, &replay.Server{Feed: store})
	for _, c := range codecs {
		t.Run(c.name, func(t *testing.T) {
			p := dial(t, h, c.codec)
			p.send(protocol.Request{Type: protocol.FrameReplayRequest, ID: "1", SessionID: "run", FromSeq: seqOf(0), Batch: c.batch})
			got, end := p.until(protocol.FrameReplayComplete)
			sameEvents(t, want, got)
			if end.ID != "1" || end.LastSeq != 1547 || end.LastCID != want[1546].CID {
				t.Errorf("complete says %q %d %s", end.ID, end.LastSeq, end.LastCID)
			}
			for i, e := range got {
				if c.codec == protocol.CBORFrames && !bytes.Equal(e.Raw, want[i].Raw) {
					t.Fatalf("event %d does not come as its stored bytes", e.Seq)
				}
			}
		})
	}
}

func TestK02OneConnectionAnswersEveryCursor(t *testing.T) {
	store := openStore(t)
	want := fill(t, store, "run", 1547)
	p := dial(t, serve(t, &replay.Server{Feed: store}), protocol.JSONFrames)
	for _, c := range []struct {
		name, request string
		first         protocol.Seq // of the events that come; 0 is none
		code          string
		head          protocol.Seq
	}{
		{name: "from 1200", request: `{"type":"replay_request","sessionId":"run","fromSeq":1200}`, first: 1201},
		{name: "from the head", request: `{"type":"replay_request","sessionId":"run","fromSeq":1547}`},
		{name: "without a cursor, where the head is", request: `{"type":"replay_request","sessionId":"run"}`},
		{name: "beyond the head", request: `{"type":"replay_request","sessionId":"run","fromSeq":9999}`, code: "future_cursor", head: 1547},
		{name: "negative", request: `{"type":"replay_request","sessionId":"run","fromSeq":-1}`, code: "bad_cursor"},
		{name: "no number", request: `{"type":"replay_request","sessionId":"run","fromSeq":"x"}`, code: "bad_cursor"},
		{name: "a fraction", request: `{"type":"replay_request","sessionId":"run","fromSeq":1.5}`, code: "bad_cursor"},
		{name: "more than 2^53", request: `{"type":"replay_request","sessionId":"run","fromSeq":9007199254740992}`, code: "bad_cursor"},
		{name: "an unknown session", request: `{"type":"replay_request","sessionId":"nobody","fromSeq":0}`, code: "unknown_session"},
		{name: "no session", request: `{"type":"replay_request","fromSeq":0}`, code: "bad_request"},
		{name: "no JSON", request: `{"type":`, code: "bad_request"},
		{name: "no object", request: `[1,2]`, code: "bad_request"},
		{name: "an id that is too long", request: `{"type":"replay_request","sessionId":"run","id":"` + strings.Repeat("x", 65) + `"}`, code: "bad_request"},
		{name: "a lastCid that is none", request: `{"type":"replay_request","sessionId":"run","fromSeq":1,"lastCid":"bafy"}`, code: "bad_request"},
		{name: "and still it answers", request: `{"type":"replay_request","sessionId":"run","fromSeq":1540}`, first: 1541},
	} {
		t.Run(c.name, func(t *testing.T) {
			p.t = t
			p.ask(`{"type":"something_new","x":[1]}`) // ignored
			p.ask(c.request)
			if c.code != "" {
				if f := p.read(); f.Type != protocol.FrameReplayError || f.Code != c.code || f.HeadSeq != c.head || f.Message == "" {
					t.Errorf("%+v", f)
				}
				return
			}
			got, end := p.until(protocol.FrameReplayComplete)
			if c.first > 0 {
				sameEvents(t, want[c.first-1:], got)
			} else if len(got) > 0 {
				t.Errorf("%d events", len(got))
			}
			if end.LastSeq != 1547 || end.LastCID != want[1546].CID {
				t.Errorf("complete says %d", end.LastSeq)
			}
		})
	}
}

// The data of a JSON frame is what the store holds, with long texts in place.
func TestJSONShowsLongTextsAndLinks(t *testing.T) {
	store := openStore(t)
	j, err := store.Journal(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("a \"long\"\tline\n\x01 é €\n", 200)
	record := cas.Raw([]byte("record"))
	if _, err := j.Append(t.Context(), 1_700_000_000_123_456, []cas.Draft{
		{Step: "a#1", Data: protocol.TextSaid{Content: protocol.NewText(long)}},
		{Step: "a#1", Data: protocol.TextSaid{Content: protocol.NewText("short <&> \u2028")}},
		{Step: "a#1", Data: protocol.StepCompleted{Record: record.Link, MS: -7, Status: protocol.StepOK}},
		{Data: protocol.RunStarted{Title: "t", Tags: []string{"x", "y"}, Source: record.Link, Start: record.Link}},
	}, []cas.Block{record}); err != nil {
		t.Fatal(err)
	}
	p := dial(t, serve(t, &replay.Server{Feed: store}), protocol.JSONFrames)
	p.ask(`{"type":"replay_request","sessionId":"run","fromSeq":0}`)
	got, _ := p.until(protocol.FrameReplayComplete)
	type object = map[string]any
	link := object{"/": record.Link.String()}
	for i, want := range []object{
		{"content": long},
		{"content": "short <&> \u2028"},
		{"record": link, "result": nil, "ms": -7.0, "workspace": nil, "status": "ok"},
		{"start": link, "source": link, "title": "t", "description": nil, "type": "", "scope": "", "tags": []any{"x", "y"}, "created_by": "",
			"target_user": "", "request_id": "", "parent": nil, "workspace": "", "version": ""},
	} {
		var have object
		if err := json.Unmarshal(got[i].Data, &have); err != nil {
			t.Fatalf("event %d: %v\n%s", i+1, err, got[i].Data)
		}
		if d := cmp.Diff(want, have); d != "" {
			t.Errorf("event %d (-want +have):\n%s", i+1, d)
		}
	}
	if got[0].TS != 1_700_000_000_123_456 || *got[0].Step != "a#1" || got[3].Step != nil || got[0].Prev.Defined() {
		t.Errorf("%+v", got)
	}
}

// A text that no frame can hold stays a link with its size, and the block comes in parts.
func TestATextThatIsTooLongStaysALink(t *testing.T) {
	store := openStore(t)
	j, err := store.Journal(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{strings.Repeat("x", 900<<10), strings.Repeat("x", protocol.ChunkSize+5), strings.Repeat("\x01", 200<<10), strings.Repeat("y", protocol.ChunkSize)}
	for _, text := range texts {
		if _, err := j.Append(t.Context(), 1, []cas.Draft{{Step: "a#1", Data: protocol.TextSaid{Content: protocol.NewText(text)}}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	h := serve(t, &replay.Server{Feed: store})
	for _, batch := range []bool{false, true} {
		p := dial(t, h, protocol.JSONFrames)
		p.send(protocol.Request{Type: protocol.FrameReplayRequest, SessionID: "run", FromSeq: seqOf(0), Batch: batch})
		got, _ := p.until(protocol.FrameReplayComplete)
		for i, text := range texts {
			var d struct{ Content any }
			if err := json.Unmarshal(got[i].Data, &d); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				if d.Content != text {
					t.Errorf("a text of %d bytes is not in place", len(text))
				}
				continue
			}
			if link, ok := d.Content.(map[string]any); !ok || link["size"] != float64(len(text)) || link["/"] == "" {
				t.Errorf("a text of %d bytes is %.80v", len(text), d.Content)
			}
		}
	}
	p := dial(t, h, protocol.CBORFrames)
	whole := cas.Raw([]byte(texts[3]))
	p.send(protocol.Request{Type: protocol.FrameBlockRequest, ID: "b", CID: whole.Link})
	var data []byte
	for len(data) < len(texts[3]) {
		f := p.read()
		if f.Type != protocol.FrameBlock || f.ID != "b" || f.CID != whole.Link || f.Offset != int64(len(data)) || f.Size != int64(len(texts[3])) {
			t.Fatalf("%s %s %d %d", f.Type, f.Code, f.Offset, f.Size)
		}
		data = append(data, f.Bytes...)
	}
	if !bytes.Equal(data, whole.Data) {
		t.Error("the parts are not the block")
	}
	p.send(protocol.Request{Type: protocol.FrameBlockRequest, ID: "c", CID: cas.Raw([]byte("nobody has this")).Link})
	if f := p.read(); f.ID != "c" || f.Code != protocol.ErrNotFound.Code {
		t.Errorf("%+v", f)
	}
}

func TestFramesThatAreTooLongEndTheSocketWithAWord(t *testing.T) {
	m := memfeed.New()
	m.Add("run", 1, "e")
	p := dial(t, serve(t, &replay.Server{Feed: m}), protocol.JSONFrames)
	p.ask(`{"type":"ping","n":7,"pad":"` + strings.Repeat("x", protocol.MaxRequest-100) + `"}`)
	if f := p.read(); f.Type != protocol.FramePong || f.N != 7 {
		t.Fatalf("%+v", f)
	}
	p.ask(`{"pad":"` + strings.Repeat("x", protocol.MaxRequest) + `"}`)
	if f := p.read(); f.Code != "too_large" {
		t.Errorf("%+v", f)
	}
	_, _, err := p.conn.Read(t.Context())
	if websocket.CloseStatus(err) != websocket.StatusMessageTooBig {
		t.Errorf("closed by %v", err)
	}
}

func TestAMessageOfTheOtherKindIsRefused(t *testing.T) {
	m := memfeed.New()
	m.Add("run", 1, "e")
	p := dial(t, serve(t, &replay.Server{Feed: m}), protocol.JSONFrames)
	if err := p.conn.Write(t.Context(), websocket.MessageBinary, []byte(`{"type":"ping"}`)); err != nil {
		t.Fatal(err)
	}
	if f := p.read(); f.Code != "bad_request" {
		t.Errorf("%+v", f)
	}
	p.ask(`{"type":"ping","n":1}`)
	if f := p.read(); f.Type != protocol.FramePong {
		t.Errorf("%+v", f)
	}
}

func TestASocketHoldsManySubscriptionsUpToTheLimit(t *testing.T) {
	m := memfeed.New()
	const limit = 5
	h := serve(t, &replay.Server{Feed: m, Subscriptions: limit, Sockets: 2})
	p := dial(t, h, protocol.JSONFrames)
	for i := range limit {
		run := protocol.RunID(fmt.Sprint("run", i))
		m.Add(run, i+1, "e")
		p.send(protocol.Request{Type: protocol.FrameReplayRequest, ID: fmt.Sprint(i), SessionID: run, FromSeq: seqOf(0), Live: true})
	}
	last := map[string]protocol.Seq{}
	for done := 0; done < limit; {
		f := p.read()
		if f.Type == protocol.FrameReplayComplete {
			done++
			continue
		}
		if f.Event.Seq != last[f.ID]+1 {
			t.Fatalf("%s: event %d after %d", f.ID, f.Event.Seq, last[f.ID])
		}
		last[f.ID] = f.Event.Seq
	}
	p.send(protocol.Request{Type: protocol.FrameReplayRequest, ID: "more", SessionID: "run0", FromSeq: seqOf(0), Live: true})
	if f := p.read(); f.ID != "more" || f.Code != "rate_limited" {
		t.Errorf("%+v", f)
	}
	// One that is cancelled makes room, and says nothing any more.
	p.send(protocol.Request{Type: protocol.FrameCancel, ID: "3"})
	p.send(protocol.Request{Type: protocol.FrameReplayRequest, ID: "more", SessionID: "run0", FromSeq: seqOf(0), Live: true})
	if all, _ := p.until(protocol.FrameReplayComplete); len(all) != 1 {
		t.Errorf("%d events", len(all))
	}
	m.Add("run3", 1, "unheard")
	m.Add("run4", 1, "heard")
	if f := p.read(); f.ID != "4" || f.Type != protocol.FrameEvent || f.Event.Seq != 6 {
		t.Errorf("%+v", f)
	}
	// The same id again begins anew.
	p.send(protocol.Request{Type: protocol.FrameReplayRequest, ID: "4", SessionID: "run4", FromSeq: seqOf(0)})
	if all, end := p.until(protocol.FrameReplayComplete); len(all) != 6 || end.ID != "4" {
		t.Errorf("%d events, %+v", len(all), end)
	}
	dial(t, h, protocol.JSONFrames)
	if _, resp, err := websocket.Dial(context.Background(), h.URL+"/v1/replay", nil); err == nil || resp.StatusCode != http.StatusTooManyRequests {
		t.Errorf("a third socket: %v", err)
	}
}

// Whoever let a client in may end what it opened, and the client is told why.
func TestAStreamEndsWithTheCredentialsOfItsRequest(t *testing.T) {
	m := memfeed.New()
	m.Add("run", 3, "e")
	s := &replay.Server{Feed: m}
	inner := serve(t, s).Config.Handler
	in, out := context.WithCancelCause(context.Background())
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, end := context.WithCancelCause(r.Context())
		defer context.AfterFunc(in, func() { end(context.Cause(in)) })()
		inner.ServeHTTP(w, r.WithContext(ctx))
	}))
	defer h.Close()
	p := dial(t, h, protocol.JSONFrames)
	p.ask(`{"type":"replay_request","sessionId":"run","fromSeq":0,"live":true}`)
	p.until(protocol.FrameReplayComplete)
	res, err := http.Get(h.URL + "/v1/sessions/run/events")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	out(fmt.Errorf("the token was taken away: %w", protocol.ErrUnauthorized))
	if f := p.read(); f.Code != "unauthorized" {
		t.Errorf("%+v", f)
	}
	if _, _, err := p.conn.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
		t.Errorf("closed by %v", err)
	}
	if b, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(b), `"code":"unauthorized"`) {
		t.Errorf("%v after %s", err, b)
	}
}

func TestWhatIsNoWebSocketIsToldToBeOne(t *testing.T) {
	res, err := http.Get(serve(t, &replay.Server{Feed: memfeed.New()}).URL + "/v1/replay")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if b, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusUpgradeRequired || !strings.Contains(string(b), `"schema":"wf.error/v1"`) {
		t.Errorf("%d %v: %s", res.StatusCode, err, b)
	}
}

func TestAServerThatStopsSaysSo(t *testing.T) {
	m := memfeed.New()
	m.Add("run", 3, "e")
	s := &replay.Server{Feed: m}
	p := dial(t, serve(t, s), protocol.JSONFrames)
	p.ask(`{"type":"replay_request","sessionId":"run","fromSeq":0,"live":true}`)
	p.until(protocol.FrameReplayComplete)
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	if f := p.read(); f.Code != "shutting_down" {
		t.Errorf("%+v", f)
	}
	if _, _, err := p.conn.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("closed by %v", err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// broken is a feed with a hole, or one that cannot be watched.
type broken struct {
	*memfeed.Feed
	at    protocol.Seq
	watch error
}

func (b broken) After(ctx context.Context, run protocol.RunID, from protocol.Seq) iter.Seq2[protocol.Entry, error] {
	return func(yield func(protocol.Entry, error) bool) {
		for e, err := range b.Feed.After(ctx, run, from) {
			if e.Seq == b.at {
				yield(protocol.Entry{}, fmt.Errorf("event %d: %w", e.Seq, protocol.ErrCorrupt))
				return
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// receding puts the head back to seq right after it was asked for, once.
type receding struct {
	*memfeed.Feed
	seq  int
	once *sync.Once
}

func (r receding) Tip(ctx context.Context, run protocol.RunID) (protocol.Link, protocol.Seq, error) {
	tip, seq, err := r.Feed.Tip(ctx, run)
	r.once.Do(func() { r.Restore(run, r.seq) })
	return tip, seq, err
}

// A head that is put back while a client finds its place is a reset, and no cursor of the future.
func TestAHeadPutBackWhileAClientComes(t *testing.T) {
	m := memfeed.New()
	m.Add("run", 30, "e")
	chain := m.Chain("run")
	for seq, want := range map[int]protocol.FrameType{10: protocol.FrameReset, 19: protocol.FrameReset, 20: protocol.FrameReplayComplete} {
		m.Restore("run", 10)
		m.Add("run", 20, "e")
		p := dial(t, serve(t, &replay.Server{Feed: receding{m, seq, new(sync.Once)}}), protocol.JSONFrames)
		p.ask(fmt.Sprintf(`{"type":"replay_request","sessionId":"run","fromSeq":20,"lastCid":"%s"}`, chain[19].CID))
		f := p.read()
		if f.Type != want || f.Type == protocol.FrameReset && (int(f.CommonSeq) != seq || f.CommonCID != chain[seq-1].CID) {
			t.Errorf("put back to %d: %+v", seq, f)
		}
	}
}

func (b broken) AwaitChange(ctx context.Context, since uint64) (uint64, error) {
	if b.watch != nil {
		return 0, b.watch
	}
	return b.Feed.AwaitChange(ctx, since)
}

func TestAHoleIsNamedAndNotSkipped(t *testing.T) {
	m := memfeed.New()
	m.Add("run", 30, "e")
	p := dial(t, serve(t, &replay.Server{Feed: broken{Feed: m, at: 21}}), protocol.JSONFrames)
	p.ask(`{"type":"replay_request","sessionId":"run","fromSeq":0,"live":true}`)
	for seq := protocol.Seq(1); seq <= 20; seq++ {
		if f := p.read(); f.Event.Seq != seq {
			t.Fatalf("%+v", f)
		}
	}
	if f := p.read(); f.Code != "gap" || f.Seq != 21 {
		t.Errorf("%+v", f)
	}
	p.ask(`{"type":"ping","n":1}`)
	if f := p.read(); f.Type != protocol.FramePong {
		t.Errorf("%+v", f)
	}
}

func TestAStoreThatCannotBeWatchedEndsTheSubscription(t *testing.T) {
	m := memfeed.New()
	m.Add("run", 1, "e")
	p := dial(t, serve(t, &replay.Server{Feed: broken{Feed: m, watch: errors.New("the disk is gone")}}), protocol.JSONFrames)
	p.ask(`{"type":"replay_request","sessionId":"run","live":true}`)
	for {
		f := p.read()
		if f.Type == protocol.FrameReplayError {
			if f.Code != "internal" || !strings.Contains(f.Message, "the disk is gone") {
				t.Errorf("%+v", f)
			}
			return
		}
	}
}

// K-11: what is sent first is not held back by what follows. The figure is BenchmarkFirstEvent.
func TestK11TheFirstEventWaitsForOneBatchOnly(t *testing.T) {
	m := memfeed.New()
	m.Add("run", 20_000, "e")
	first := -1
	sink := collect{events: func(batch []protocol.Entry) error {
		if first < 0 {
			first = m.HandedOut()
		}
		return nil
	}}
	s := &replay.Server{Feed: m}
	if err := s.Follow(t.Context(), protocol.Request{SessionID: "run", FromSeq: seqOf(0)}, sink); err != nil {
		t.Fatal(err)
	}
	if first > 256 {
		t.Errorf("%d events were read before the first was sent", first)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// collect is a sink of functions.
type collect struct {
	events func([]protocol.Entry) error
	frame  func(*protocol.Frame) error
}

func (c collect) Events(_ context.Context, batch []protocol.Entry, _ bool) error {
	return c.events(batch)
}

func (c collect) Frame(_ context.Context, f *protocol.Frame) error {
	if c.frame == nil {
		return nil
	}
	return c.frame(f)
}
