package hook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"wf/protocol"
)

const secret = "a secret of thirty-two characters"

// stage is a receiver with one hook that a server answers for.
type stage struct {
	t     *testing.T
	rc    *Receiver
	url   string
	taken []Event
	says  func(Event) (Taken, error) // of the next events
	log   bytes.Buffer

	reads func() // called when the receiver reads a body; may be nil
	ended func() // called when a request was served; may be nil
}

// told is a body that says when it is read.
type told struct {
	io.ReadCloser
	read func()
}

func (b told) Read(p []byte) (int, error) {
	b.read()
	return b.ReadCloser.Read(p)
}

func newStage(t *testing.T) *stage {
	s := &stage{t: t, says: func(e Event) (Taken, error) { return Taken{Run: "R1", Fresh: true}, nil }}
	s.rc = &Receiver{Log: slog.New(slog.NewTextHandler(&s.log, nil)), Now: func() time.Time { return at }}
	h := &Hook{Name: "push", Kind: protocol.WebhookGitHub, Secrets: []string{secret}, Take: func(_ context.Context, e Event) (Taken, error) {
		s.taken = append(s.taken, e)
		return s.says(e)
	}}
	s.rc.Find = func(_ context.Context, name string) (*Hook, error) {
		switch name {
		case "push":
			return h, nil
		case "broken":
			return nil, errors.New("no such directory")
		}
		return nil, nil
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+protocol.WebhookPath+"{name}", func(w http.ResponseWriter, r *http.Request) {
		if s.reads != nil {
			r.Body = told{r.Body, sync.OnceFunc(s.reads)}
		}
		if s.ended != nil {
			defer s.ended()
		}
		s.rc.ServeHTTP(w, r)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	s.url = server.URL + protocol.WebhookPath
	return s
}

// post sends a body, signed unless a line says otherwise, and gives status and answer.
func (s *stage) post(name string, body io.Reader, lines ...string) (*http.Response, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), "POST", s.url+name, body)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, l := range lines {
		key, value, _ := strings.Cut(l, ": ")
		r.Header.Add(key, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp, string(answer)
}

func signed(body string) string {
	return fmt.Sprintf("X-Hub-Signature-256: sha256=%x", macOf(secret, body))
}

func TestWhatBecomesOfAnEvent(t *testing.T) {
	s := newStage(t)
	const body = `{"ref":"main"}`
	for _, test := range []struct {
		name   string
		says   Taken
		err    error
		status int
		answer string
	}{
		{"a run", Taken{Run: "R1", Fresh: true}, nil, 202, `{"schema":"wf.started/v1","id":"R1","fresh":true}` + "\n"},
		{"the same again", Taken{Run: "R1"}, nil, 200, `{"schema":"wf.started/v1","id":"R1","fresh":false}` + "\n"},
		{"nothing", Taken{}, nil, 204, ""},
		{"it does not fit", Taken{}, fmt.Errorf("%w: input ref is the hunter2", ErrUnfit), 422, `"code":"invalid_inputs"`},
		{"the store is busy", Taken{}, protocol.ErrBusy.With("", "/home/u/.wf is busy"), 503, `"code":"store_busy"`},
		{"too many wait", Taken{}, fmt.Errorf("%w: 10 of /home/u", ErrFull), 429, `"message":"too many requests"`},
		{"anything else", Taken{}, errors.New("/home/u/.wf is damaged"), 503, `"message":"nothing was started yet"`},
	} {
		s.says = func(Event) (Taken, error) { return test.says, test.err }
		resp, answer := s.post("push", strings.NewReader(body), signed(body), "X-GitHub-Delivery: d-1", "Content-Type: application/json", "Authorization: Bearer x", "Cookie: a=b")
		if resp.StatusCode != test.status || !strings.Contains(answer, test.answer) || strings.Contains(answer, "hunter2") || strings.Contains(answer, "/home") {
			t.Errorf("%s: %d %s", test.name, resp.StatusCode, answer)
		}
		if retry := resp.Header.Get("Retry-After") != ""; retry != (test.status == 503 || test.status == 429) {
			t.Errorf("%s: Retry-After: %v", test.name, retry)
		}
	}
	e := s.taken[0]
	if e.Delivery != "d-1" || e.Media != "application/json" || string(e.Body) != body || e.Headers["x-github-delivery"] != "d-1" {
		t.Errorf("%+v", e)
	}
	for name := range e.Headers {
		if closed[http.CanonicalHeaderKey(name)] {
			t.Errorf("an expression sees %s", name)
		}
	}
	before := len(s.taken)
	if resp, _ := s.post("push", strings.NewReader(body), signed(body), "X-GitHub-Event: ping"); resp.StatusCode != 204 || len(s.taken) != before {
		t.Errorf("a ping: %d", resp.StatusCode)
	}
	if resp, _ := s.post("broken", strings.NewReader(body), signed(body)); resp.StatusCode != 503 {
		t.Errorf("the webhooks cannot be read: %d", resp.StatusCode)
	}
}

// What a stranger is answered tells neither names nor what was wrong.
func TestAnswersTellStrangersNothing(t *testing.T) {
	s := newStage(t)
	_, want := s.post("push", strings.NewReader("x"), "X-Hub-Signature-256: sha256="+strings.Repeat("0", 64))
	if !strings.Contains(want, `"code":"unauthorized"`) {
		t.Fatal(want)
	}
	for name, ask := range map[string]func() (*http.Response, string){
		"no signature":         func() (*http.Response, string) { return s.post("push", strings.NewReader("x")) },
		"no such name":         func() (*http.Response, string) { return s.post("other", strings.NewReader("x")) },
		"no such name, signed": func() (*http.Response, string) { return s.post("other", strings.NewReader("x"), signed("x")) },
		"another body":         func() (*http.Response, string) { return s.post("push", strings.NewReader("y"), signed("x")) },
	} {
		if resp, answer := ask(); resp.StatusCode != 401 || answer != want {
			t.Errorf("%s: %d %s", name, resp.StatusCode, answer)
		}
	}
	if len(s.taken) > 0 {
		t.Errorf("%d events were taken", len(s.taken))
	}
}

// Below, at and beyond the bound, with a length that is told before and without one.
func TestTheBodyOfAnEventIsBounded(t *testing.T) {
	s := newStage(t)
	for _, size := range []int{0, MaxBody - 1, MaxBody, MaxBody + 1, 4 * MaxBody} {
		body := strings.Repeat("x", size)
		for _, r := range []io.Reader{strings.NewReader(body), io.MultiReader(strings.NewReader(body))} {
			s.taken = nil
			resp, answer := s.post("push", r, signed(body))
			if fits := size <= MaxBody; (resp.StatusCode == 202) != fits || !fits && resp.StatusCode != 413 || len(s.taken) == 1 != fits {
				t.Errorf("%d bytes: %d %s, %d taken", size, resp.StatusCode, answer, len(s.taken))
			}
		}
	}
	if resp, answer := s.post("push", strings.NewReader("x"), signed("x"), "Content-Encoding: gzip"); resp.StatusCode != 415 {
		t.Errorf("compressed: %d %s", resp.StatusCode, answer)
	}
	if resp, _ := s.post("push", strings.NewReader("x"), signed("x"), "Content-Encoding: identity"); resp.StatusCode != 202 {
		t.Errorf("as it is: %d", resp.StatusCode)
	}
}

// stalled sends the beginning of an event, and no more.
func (s *stage) stalled() net.Conn {
	s.t.Helper()
	address, _, _ := strings.Cut(strings.TrimPrefix(s.url, "http://"), "/")
	c, err := net.Dial("tcp", address)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(c, "POST %spush HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{", protocol.WebhookPath); err != nil {
		s.t.Fatal(err)
	}
	return c
}

// A client that stops in the middle is cut off, and while many do others are told to come again.
func TestAStallingSenderIsCutOff(t *testing.T) {
	s := newStage(t)
	s.rc.Patience = 50 * time.Millisecond
	c := s.stalled()
	defer c.Close()
	if answer, err := io.ReadAll(c); err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 400 ")) || !bytes.Contains(answer, []byte("did not come in time")) {
		t.Errorf("%s, %v", answer, err)
	}
	s = newStage(t)
	s.rc.Patience = time.Hour
	var reads, ended sync.WaitGroup
	reads.Add(reading)
	ended.Add(reading + 1)
	s.reads, s.ended = reads.Done, ended.Done
	var open []net.Conn
	for range reading {
		open = append(open, s.stalled())
	}
	reads.Wait()
	if resp, _ := s.post("push", strings.NewReader("x"), signed("x")); resp.StatusCode != 503 {
		t.Errorf("among %d that stall: %d", reading, resp.StatusCode)
	}
	for _, c := range open {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	ended.Wait()
	s.reads, s.ended = nil, nil
	if resp, _ := s.post("push", strings.NewReader("x"), signed("x")); resp.StatusCode != 202 {
		t.Errorf("afterwards: %d", resp.StatusCode)
	}
}

// Wrong signatures are bounded by their host, and do not keep the right ones out.
func TestWrongSignaturesDoNotLockTheSenderOut(t *testing.T) {
	s := newStage(t)
	counts := map[int]int{}
	for range 30 {
		resp, _ := s.post("push", strings.NewReader("x"))
		counts[resp.StatusCode]++
	}
	if counts[401] != 10 || counts[429] != 20 {
		t.Error(counts)
	}
	if lines := strings.Count(s.log.String(), "request refused"); lines != 10 {
		t.Errorf("the log has %d lines", lines)
	}
	if resp, _ := s.post("push", strings.NewReader("x"), signed("x")); resp.StatusCode != 202 {
		t.Errorf("the right signature: %d", resp.StatusCode)
	}
}
