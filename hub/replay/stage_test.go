package replay_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"wf/cas"
	"wf/cas/castest/inmemory"
	"wf/hub/replay"
	"wf/protocol"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("WF_TEST_AGENT"); dir != "" {
		agent(dir)
		return
	}
	inmemory.TempDirs()
	goleak.VerifyTestMain(m)
}

// serve mounts a server on loopback, and ends both after the test.
func serve(t testing.TB, s *replay.Server) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("GET /v1/replay", s.WebSocket())
	mux.Handle("GET /v1/sessions/{id}/events", s.Events())
	h := httptest.NewServer(mux)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		h.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return h
}

// openStore opens a store in a directory of its own.
func openStore(t testing.TB) *cas.Store {
	t.Helper()
	s, err := cas.Open(context.Background(), t.TempDir(), cas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// fill appends n events of about the size of those of a run, many in a commit.
func fill(t testing.TB, s *cas.Store, run protocol.RunID, n int) []protocol.Entry {
	t.Helper()
	j, err := s.Journal(context.Background(), run)
	if err != nil {
		t.Fatal(err)
	}
	return extend(t, j, n)
}

func extend(t testing.TB, j *cas.Journal, n int) []protocol.Entry {
	t.Helper()
	var out []protocol.Entry
	for len(out) < n {
		drafts := make([]cas.Draft, min(500, n-len(out)))
		for i := range drafts {
			k := len(out) + i
			drafts[i] = cas.Draft{Step: fmt.Sprintf("coder#%d", k/50+1), Data: protocol.TextSaid{Content: protocol.NewText(
				fmt.Sprintf("Event %d says \"this\": ", k) + strings.Repeat("words that fill, ", 24))}}
		}
		got, err := j.Append(context.Background(), 1_700_000_000_000_000+int64(len(out)), drafts, nil)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, got...)
	}
	return out
}

// peer is a client that knows the frames and nothing else.
type peer struct {
	t     testing.TB
	conn  *websocket.Conn
	codec protocol.Codec
}

func dial(t testing.TB, h *httptest.Server, c protocol.Codec) *peer {
	t.Helper()
	conn, _, err := websocket.Dial(context.Background(), h.URL+"/v1/replay", &websocket.DialOptions{Subprotocols: []string{c.Subprotocol()}})
	if err != nil {
		t.Fatal(err)
	}
	conn.SetReadLimit(protocol.MaxFrame)
	t.Cleanup(func() { conn.CloseNow() })
	return &peer{t, conn, c}
}

func (p *peer) send(r protocol.Request) {
	p.t.Helper()
	b, err := r.Encode(p.codec)
	if err != nil {
		p.t.Fatal(err)
	}
	p.write(b)
}

func (p *peer) write(b []byte) {
	p.t.Helper()
	typ := websocket.MessageText
	if p.codec == protocol.CBORFrames {
		typ = websocket.MessageBinary
	}
	if err := p.conn.Write(p.t.Context(), typ, b); err != nil {
		p.t.Fatal(err)
	}
}

// ask sends a request as people write it.
func (p *peer) ask(text string) { p.t.Helper(); p.write([]byte(text)) }

func (p *peer) read() protocol.Frame {
	p.t.Helper()
	_, b, err := p.conn.Read(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	f, err := protocol.ParseFrame(p.codec, b)
	if err != nil {
		p.t.Fatalf("%v\n%.300s", err, b)
	}
	return f
}

// events are the events of a frame.
func events(f protocol.Frame) []protocol.WireEvent {
	switch f.Type {
	case protocol.FrameReplayEvent, protocol.FrameEvent:
		return []protocol.WireEvent{f.Event}
	}
	return f.Events
}

// until reads events up to a frame of another type.
func (p *peer) until(kind protocol.FrameType) (all []protocol.WireEvent, last protocol.Frame) {
	p.t.Helper()
	for {
		f := p.read()
		if f.Type == kind {
			return all, f
		}
		if f.Type == protocol.FrameReplayError {
			p.t.Fatalf("replay_error %s: %s", f.Code, f.Message)
		}
		all = append(all, events(f)...)
	}
}

// sameEvents checks that what came is exactly a piece of the journal.
func sameEvents(t testing.TB, want []protocol.Entry, got []protocol.WireEvent) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d events came, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i].Seq != want[i].Seq || got[i].CID != want[i].CID || got[i].Raw == nil && got[i].Prev != want[i].Prev {
			t.Fatalf("place %d: event %d %s after %s, want %d %s after %s", i, got[i].Seq, got[i].CID, got[i].Prev, want[i].Seq, want[i].CID, want[i].Prev)
		}
	}
}

func seqOf(n protocol.Seq) *protocol.Seq { return &n }
