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
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"wf/files/filestest"
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

// stalled sends the beginning of an event from 127.0.0.source, and no more: so many of its bytes.
func (s *stage) stalled(source, bytes int) net.Conn {
	s.t.Helper()
	address, _, _ := strings.Cut(strings.TrimPrefix(s.url, "http://"), "/")
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(source))}}
	c, err := d.DialContext(s.t.Context(), "tcp", address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	if _, err := fmt.Fprintf(c, "POST %spush HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", protocol.WebhookPath, MaxBody, strings.Repeat("{", bytes)); err != nil {
		s.t.Fatal(err)
	}
	return c
}

// A client that stops in the middle is cut off.
func TestAStallingSenderIsCutOff(t *testing.T) {
	for _, n := range []int{0, 1, short - 1, short, short + 1, MaxBody - 1} {
		s := newStage(t)
		s.rc.Patience = 50 * time.Millisecond
		c := s.stalled(1, n)
		if answer, err := io.ReadAll(c); err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 400 ")) || !bytes.Contains(answer, []byte("did not come in time")) {
			t.Errorf("%d bytes: %s, %v", n, answer, err)
		}
	}
}

// However many stall, and from wherever, an event that is signed is taken: of the first one of its sender, too. Those that
// give way are told to come again.
func TestF406ThoseThatStallKeepNoEventOut(t *testing.T) {
	for _, test := range []struct {
		name       string
		n, sources int
		bytes      int // of each
		held       int // at most
	}{
		{"below what one peer may have", reading/4 - 1, 1, 1, reading/4 - 1},
		{"as many as one peer may have", reading / 4, 1, 1, reading / 4},
		{"one more", reading/4 + 1, 1, 1, reading / 4},
		{"80, as they were found", 80, 1, 1, reading / 4},
		{"as many as strangers may have", reading * 3 / 4, 50, 1, reading * 3 / 4},
		{"one more of 50", reading*3/4 + 1, 50, 1, reading * 3 / 4},
		{"more than all", 2 * reading, 50, 1, reading * 3 / 4},
		{"long ones of one peer", long, 1, short + 1, reading / 4},
		{"long ones of 50", 2 * long, 50, short + 1, reading * 3 / 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.sources > 1 && runtime.GOOS != "linux" {
				t.Skip("127.0.0.2 is no address of this system")
			}
			s := newStage(t)
			s.rc.Patience = time.Hour
			var reads sync.WaitGroup
			reads.Add(test.n)
			s.reads = reads.Done
			var open []net.Conn
			for i := range test.n {
				open = append(open, s.stalled(1+i%test.sources, test.bytes))
			}
			reads.Wait()
			s.reads = nil
			most := min(test.n, test.held)
			filestest.Until(t, "as many are read as may be", func() bool { return s.rc.reads.Held() <= most && s.rc.longs.Held() <= long*3/4 }, nil)
			for i, size := range []int{MaxBody, short + 1, short, short - 1, 1} { // the first is of a sender who is not known
				body := strings.Repeat(fmt.Sprint(i), size)
				if resp, answer := s.post("push", strings.NewReader(body), signed(body)); resp.StatusCode != 202 {
					t.Errorf("an event of %d bytes: %d %s", size, resp.StatusCode, answer)
				}
			}
			if test.n > test.held {
				if answer, err := io.ReadAll(open[0]); err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 503 ")) || !bytes.Contains(answer, []byte("Retry-After: "+retryIn)) {
					t.Errorf("the oldest: %s, %v", answer, err)
				}
			}
			for _, c := range open {
				_ = c.Close()
			}
			filestest.Until(t, "every place is free", func() bool { return s.rc.reads.Held()+s.rc.longs.Held() == 0 }, nil)
		})
	}
}

// A sender whose signature held lately may have more events on their way than a stranger, and they do not give way to his.
func TestF406AKnownSenderComesFirst(t *testing.T) {
	s := newStage(t)
	s.rc.Patience = time.Hour
	if resp, _ := s.post("push", strings.NewReader("x"), signed("x")); resp.StatusCode != 202 {
		t.Fatal(resp.StatusCode)
	}
	if runtime.GOOS != "linux" {
		t.Skip("127.0.0.2 is no address of this system")
	}
	var own []net.Conn
	for range reading / 4 { // of the sender, who is slow today
		own = append(own, s.stalled(1, 1))
	}
	filestest.Until(t, "they are read", func() bool { return s.rc.reads.Held() == reading/4 }, nil)
	for i := range 2 * reading {
		s.stalled(2+i%49, 1)
	}
	filestest.Until(t, "all places are taken", func() bool { return s.rc.reads.Held() == reading }, nil)
	for range reading { // of one stranger more
		s.stalled(60, 1)
	}
	filestest.Until(t, "all places are taken", func() bool { return s.rc.reads.Held() == reading }, nil)
	for _, c := range own {
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("one of the sender gave way: %v", err)
		}
	}
	for i := range reading / 4 { // and others get in
		body := fmt.Sprint(i)
		if resp, answer := s.post("push", strings.NewReader(body), signed(body)); resp.StatusCode != 202 {
			t.Errorf("%d %s", resp.StatusCode, answer)
		}
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
