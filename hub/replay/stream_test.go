package replay_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"wf/hub/internal/memfeed"
	"wf/hub/replay"
	"wf/protocol"
)

func get(t *testing.T, url string, header ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func TestNDJSONIsAFrameOnALineAndEnds(t *testing.T) {
	store := openStore(t)
	want := fill(t, store, "run", 700)
	h := serve(t, &replay.Server{Feed: store})
	resp := get(t, h.URL+"/v1/sessions/run/events?fromSeq=100", "Accept", "application/x-ndjson")
	if resp.Header.Get("Content-Type") != "application/x-ndjson" {
		t.Errorf("%v", resp.Header)
	}
	var got []protocol.WireEvent
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	var last protocol.Frame
	for lines.Scan() {
		f, err := protocol.ParseFrame(protocol.JSONFrames, lines.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		got, last = append(got, events(f)...), f
	}
	sameEvents(t, want[100:], got)
	if last.Type != protocol.FrameReplayComplete || last.LastSeq != 700 {
		t.Errorf("%+v", last)
	}
}

// sse reads server-sent events: the id they leave behind, and the frame.
func sse(t *testing.T, r *bufio.Reader) (id string, f protocol.Frame, comment string) {
	t.Helper()
	var data string
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		line = strings.TrimSuffix(line, "\n")
		switch name, value, _ := strings.Cut(line, ": "); {
		case line == "" && comment != "":
			return
		case line == "" && data != "":
			if f, err = protocol.ParseFrame(protocol.JSONFrames, []byte(data)); err != nil {
				t.Fatal(err)
			}
			return
		case name == "id":
			id = value
		case name == "data":
			data = value
		case name == "":
			comment = value
		}
	}
}

func TestSSEGoesOnFromLastEventID(t *testing.T) {
	m := memfeed.New()
	m.Add("run", 10, "e")
	var b replay.Broadcast
	h := serve(t, &replay.Server{Feed: m, Deltas: &b})
	// The URL is the one that the EventSource began with.
	resp := get(t, h.URL+"/v1/sessions/run/events?fromSeq=0", "Accept", "text/event-stream", "Last-Event-ID", "7")
	if resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("X-Accel-Buffering") != "no" || resp.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%v", resp.Header)
	}
	r := bufio.NewReader(resp.Body)
	if first, err := r.ReadString('\n'); err != nil || first != "retry: 1000\n" {
		t.Errorf("%q %v", first, err)
	}
	for seq := 8; seq <= 10; seq++ {
		if id, f, _ := sse(t, r); id != fmt.Sprint(seq) || f.Type != protocol.FrameReplayEvent || f.Event.Seq != protocol.Seq(seq) {
			t.Errorf("%s %+v", id, f)
		}
	}
	if id, f, _ := sse(t, r); id != "" || f.Type != protocol.FrameReplayComplete || f.LastSeq != 10 {
		t.Errorf("%s %+v", id, f)
	}
	e := m.Chain("run")[9]
	b.Event("run", &e.Event)
	b.Delta("run", "a#1", protocol.Delta{Kind: "text", Text: "two\nlines"})
	if id, f, _ := sse(t, r); id != "" || f.Type != protocol.FrameDelta || f.Text != "two\nlines" {
		t.Errorf("%s %+v", id, f)
	}
	m.Add("run", 1, "e")
	if id, f, _ := sse(t, r); id != "11" || f.Type != protocol.FrameEvent {
		t.Errorf("%s %+v", id, f)
	}
	m.Restore("run", 4)
	if id, f, _ := sse(t, r); id != "4" || f.Type != protocol.FrameReset || f.CommonSeq != 4 {
		t.Errorf("%s %+v", id, f)
	}
}

func TestAStreamThatCannotBeginHasItsStatus(t *testing.T) {
	m := memfeed.New()
	m.Add("run", 10, "e")
	h := serve(t, &replay.Server{Feed: m})
	for _, c := range []struct {
		path, again string
		status      int
		code        string
	}{
		{"/v1/sessions/nobody/events", "", 404, "unknown_session"},
		{"/v1/sessions/run/events?fromSeq=x", "", 400, "bad_cursor"},
		{"/v1/sessions/run/events?fromSeq=-1", "", 400, "bad_cursor"},
		{"/v1/sessions/run/events?fromSeq=11", "", 409, "future_cursor"},
		{"/v1/sessions/run/events", "99", 409, "future_cursor"},
		{"/v1/sessions/run/events?fromSeq=1&lastCid=x", "", 400, "bad_request"},
		{"/v1/sessions/run/events?fromseq=9", "", 400, "bad_request"},
		{"/v1/sessions/run/events?fromSeq=9&fromSeq=1", "", 400, "bad_request"},
		{"/v1/sessions/run/events?live=yes", "", 400, "bad_request"},
	} {
		for _, accept := range []string{"text/event-stream", "application/x-ndjson"} {
			resp := get(t, h.URL+c.path, "Accept", accept, "Last-Event-ID", c.again)
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			var e struct{ Schema, Code, Message, Fix string }
			if err := json.Unmarshal(body, &e); err != nil || resp.StatusCode != c.status || e.Schema != "wf.error/v1" || e.Code != c.code || e.Message == "" || e.Fix == "" {
				t.Errorf("%s: %d %s", c.path, resp.StatusCode, body)
			}
		}
	}
}
