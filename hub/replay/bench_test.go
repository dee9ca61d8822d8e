package replay_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"wf/cas"
	"wf/hub/client"
	"wf/hub/replay"
	"wf/protocol"
)

// benchEvents is the length of the journal that is replayed.
const benchEvents = 20_000

// BenchmarkReplay sends a journal from a store over loopback to clients that read frames and
// look at nothing but their kind. "bare" is the share of what a coder/websocket writer reaches
// that has the same frames ready and does nothing else, in the same run.
func BenchmarkReplay(b *testing.B) {
	for _, clients := range []int{1, 100} {
		length := benchEvents
		if clients > 1 {
			length /= 10
		}
		store := openStore(b)
		fill(b, store, "run", length)
		h := serve(b, &replay.Server{Feed: store})
		for _, c := range codecs {
			b.Run(fmt.Sprintf("%s/clients=%d", c.name, clients), func(b *testing.B) {
				request, err := protocol.Request{Type: protocol.FrameReplayRequest, SessionID: "run", FromSeq: seqOf(0), Batch: c.batch}.Encode(c.codec)
				if err != nil {
					b.Fatal(err)
				}
				conns := make([]*websocket.Conn, clients)
				for i := range conns {
					conns[i] = dial(b, h, c.codec).conn
				}
				var spent, bare time.Duration
				var frames [][]byte
				drain(b, conns[0], c.codec, request, func(f []byte) { frames = append(frames, bytes.Clone(f)) })
				ready := bareWriter(b, c.codec, frames)
				bareConns := make([]*websocket.Conn, clients)
				for i := range bareConns {
					bareConns[i] = dial(b, ready, c.codec).conn
				}
				b.ResetTimer()
				for range b.N {
					spent += all(conns, func(conn *websocket.Conn) { drain(b, conn, c.codec, request, nil) })
					bare += all(bareConns, func(conn *websocket.Conn) { drain(b, conn, c.codec, request, nil) })
				}
				b.ReportMetric(float64(b.N*clients*length)/spent.Seconds(), "events/s")
				b.ReportMetric(float64(bare)/float64(spent), "bare")
			})
		}
	}
}

// all runs f for each connection at once, and says how long the slowest took.
func all(conns []*websocket.Conn, f func(*websocket.Conn)) time.Duration {
	begun := time.Now()
	var wg sync.WaitGroup
	for _, c := range conns {
		wg.Go(func() { f(c) })
	}
	wg.Wait()
	return time.Since(begun)
}

// drain asks, and reads up to replay_complete.
func drain(b *testing.B, conn *websocket.Conn, c protocol.Codec, request []byte, keep func([]byte)) {
	typ := websocket.MessageText
	if c == protocol.CBORFrames {
		typ = websocket.MessageBinary
	}
	if err := conn.Write(context.Background(), typ, request); err != nil {
		b.Error(err)
		return
	}
	buf := make([]byte, protocol.MaxFrame)
	for {
		_, r, err := conn.Reader(context.Background())
		if err != nil {
			b.Error(err)
			return
		}
		n, err := readAll(r, buf)
		if err != nil {
			b.Error(err)
			return
		}
		f := buf[:n]
		if keep != nil {
			keep(f)
		}
		if bytes.Contains(f[:min(n, 300)], []byte("replay_complete")) {
			return
		}
	}
}

func readAll(r interface{ Read([]byte) (int, error) }, buf []byte) (int, error) {
	n := 0
	for {
		m, err := r.Read(buf[n:])
		n += m
		if err != nil {
			if err.Error() == "EOF" {
				err = nil
			}
			return n, err
		}
	}
}

// bareWriter answers each message with frames that are ready.
func bareWriter(b *testing.B, c protocol.Codec, frames [][]byte) *httptest.Server {
	typ := websocket.MessageText
	if c == protocol.CBORFrames {
		typ = websocket.MessageBinary
	}
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{c.Subprotocol()}})
		if err != nil {
			b.Error(err)
			return
		}
		defer conn.CloseNow()
		for {
			if _, _, err := conn.Read(r.Context()); err != nil {
				return
			}
			for _, f := range frames {
				if err := conn.Write(r.Context(), typ, f); err != nil {
					return
				}
			}
		}
	}))
	b.Cleanup(h.Close)
	return h
}

// BenchmarkClient follows a journal with the client that checks everything it takes.
func BenchmarkClient(b *testing.B) {
	store := openStore(b)
	fill(b, store, "run", benchEvents)
	h := serve(b, &replay.Server{Feed: store})
	for _, codec := range []protocol.Codec{protocol.JSONFrames, protocol.CBORFrames} {
		b.Run(codec.Subprotocol(), func(b *testing.B) {
			for b.Loop() {
				r := client.Replay{URL: h.URL + "/v1/replay", Codec: codec, Run: "run"}
				n := 0
				if err := r.Follow(context.Background(), client.Consumer{Event: func(client.Event) error { n++; return nil }}); err != nil || n != benchEvents {
					b.Fatal(n, err)
				}
			}
			b.ReportMetric(float64(b.N*benchEvents)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// BenchmarkFirstEvent is K-11: from the request for 100,000 events to the first of them.
func BenchmarkFirstEvent(b *testing.B) {
	store := openStore(b)
	fill(b, store, "run", 100_000)
	h := serve(b, &replay.Server{Feed: store})
	for b.Loop() {
		b.StopTimer()
		p := dial(b, h, protocol.JSONFrames)
		b.StartTimer()
		p.conn.Write(context.Background(), websocket.MessageText, []byte(`{"type":"replay_request","sessionId":"run","fromSeq":0}`))
		if _, _, err := p.conn.Read(context.Background()); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		p.conn.CloseNow()
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms/first")
}

// BenchmarkLive is how long an event takes from the end of its commit to a watching client.
func BenchmarkLive(b *testing.B) {
	store := openStore(b)
	j, err := store.Journal(context.Background(), "run")
	if err != nil {
		b.Fatal(err)
	}
	extend(b, j, 10)
	p := dial(b, serve(b, &replay.Server{Feed: store}), protocol.JSONFrames)
	p.ask(`{"type":"replay_request","sessionId":"run","live":true}`)
	if _, _, err := p.conn.Read(context.Background()); err != nil {
		b.Fatal(err)
	}
	var took []time.Duration
	for b.Loop() {
		if _, err := j.Append(context.Background(), 1, []cas.Draft{{Step: "a#1", Data: protocol.TextSaid{Content: protocol.NewText("now")}}}, nil); err != nil {
			b.Fatal(err)
		}
		done := time.Now()
		if _, _, err := p.conn.Read(context.Background()); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(done))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "µs/p50")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "µs/p99")
}

// BenchmarkStalled appends beside clients that asked for everything and never read; "alone" is
// the share of what the writer reaches without them.
func BenchmarkStalled(b *testing.B) {
	store := openStore(b)
	fill(b, store, "run", benchEvents)
	h := serve(b, &replay.Server{Feed: store})
	write := func(run protocol.RunID) time.Duration {
		j, err := store.Journal(context.Background(), run)
		if err != nil {
			b.Fatal(err)
		}
		begun := time.Now()
		for range 200 {
			extend(b, j, 1)
		}
		return time.Since(begun)
	}
	var alone, beside time.Duration
	for i := range b.N {
		alone += write(protocol.RunID(fmt.Sprint("alone", i)))
	}
	for range 20 {
		stalled(b, h.Listener.Addr())
	}
	for i := range b.N {
		beside += write(protocol.RunID(fmt.Sprint("beside", i)))
	}
	b.ReportMetric(float64(b.N*200)/beside.Seconds(), "commits/s")
	b.ReportMetric(float64(alone)/float64(beside), "alone")
}

// BenchmarkStore reads the journal of BenchmarkReplay and sends nothing: the bound of what one
// client can be sent.
func BenchmarkStore(b *testing.B) {
	store := openStore(b)
	fill(b, store, "run", benchEvents)
	for b.Loop() {
		n := 0
		for _, err := range store.After(context.Background(), "run", 0) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != benchEvents {
			b.Fatal(n)
		}
	}
	b.ReportMetric(float64(b.N*benchEvents)/b.Elapsed().Seconds(), "events/s")
}
