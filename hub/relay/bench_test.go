package relay_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"wf/hub/client"
	"wf/hub/queue"
	"wf/protocol"
)

// BenchmarkForwarding replays 20,000 events of 600 bytes from a worker, directly and through the
// hub, and reports events per second of both and their ratio.
func BenchmarkForwarding(b *testing.B) {
	h := newHouse(b)
	d := newDesk(h, "a")
	direct := httptest.NewServer(served(everyone, d.worker.Handler))
	defer direct.Close()
	const events = 20_000
	text := strings.Repeat("words that fill, ", 25)
	for range events / 500 {
		batch := make([]string, 500)
		for i := range batch {
			batch[i] = text
		}
		d.say("run1", batch...)
	}
	d.arrive()
	h.pointed("run1", func(p queue.Pointer) bool { return p.Seq == events })
	for _, codec := range []protocol.Codec{protocol.JSONFrames, protocol.CBORFrames} {
		b.Run(codec.Subprotocol(), func(b *testing.B) {
			var took [2]time.Duration
			for b.Loop() {
				for i, url := range []string{direct.URL, "http://" + h.addr} {
					begun := time.Now()
					n := 0
					r := client.Replay{URL: url + "/v1/replay", Run: "run1", Codec: codec, HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
					if err := r.Follow(context.Background(), client.Consumer{Event: func(client.Event) error { n++; return nil }}); err != nil || n != events {
						b.Fatal(fmt.Errorf("%d events: %w", n, err))
					}
					took[i] += time.Since(begun)
				}
			}
			total := float64(events * b.N)
			b.ReportMetric(total/took[0].Seconds(), "direct-events/s")
			b.ReportMetric(total/took[1].Seconds(), "hub-events/s")
			b.ReportMetric(took[0].Seconds()/took[1].Seconds(), "hub/direct")
			b.ReportMetric(0, "ns/op")
		})
	}
}
