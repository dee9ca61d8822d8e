package modeltest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Request is what a client sent.
type Request struct {
	Path   string
	Header http.Header
	Body   []byte
}

// Text is the request as it was sent: the path, the headers sorted by name, an empty line, the
// body.
func (r Request) Text() string {
	var b strings.Builder
	b.WriteString("POST " + r.Path + "\n")
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		b.WriteString(name + ": " + strings.Join(r.Header[name], ", ") + "\n")
	}
	return b.String() + "\n" + string(r.Body) + "\n"
}

// Messages is the part of a request that a prefix cache sees: tools, then system text and messages, without marks.
func (r Request) Messages() []byte {
	if r.anthropicWire() {
		var body anthropicRequest
		if json.Unmarshal(r.Body, &body) != nil {
			return nil
		}
		var all []byte
		for _, b := range body.blocks() {
			all = append(append(all, b.bytes...), '\n')
		}
		return all
	}
	var body struct {
		Tools    json.RawMessage `json:"tools"`
		Messages json.RawMessage `json:"messages"`
	}
	if json.Unmarshal(r.Body, &body) != nil {
		return nil
	}
	return append(append(append([]byte(nil), body.Tools...), '\n'), strings.TrimSuffix(string(body.Messages), "]")...)
}

// Results is how many tool results the request holds, on either wire.
func (r Request) Results() int {
	var body struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	if json.Unmarshal(r.Body, &body) != nil {
		return 0
	}
	n := 0
	for _, m := range body.Messages {
		if m.Role == "tool" {
			n++
			continue
		}
		var blocks []anthropicBlock
		if json.Unmarshal(m.Content, &blocks) != nil {
			continue // a text
		}
		for _, b := range blocks {
			if b.Type == "tool_result" {
				n++
			}
		}
	}
	return n
}

// anthropicWire reports whether the request came by Anthropic's wire.
func (r Request) anthropicWire() bool { return strings.HasSuffix(r.Path, "/messages") }

// Server answers requests in turn.
type Server struct {
	URL  string // base URL of OpenAI's wire, with /v1
	Root string // base URL of Anthropic's wire, without

	// Models are the ids that it lists, which counts as no request; without any it has no list. Set before the first
	// request.
	Models []string

	// Binds has thoughts bound to what stands before them, on Anthropic's wire: they are signed so, and refused elsewhere.
	// Set before the first request.
	Binds bool
	// IDLength is how long an id of a call may be on OpenAI's wire; 0 is OpenAI's own bound. Set before the first request.
	IDLength int

	mu       sync.Mutex
	answers  []Answer
	by       func(Request) Answer // instead of answers
	requests []Request
	refused  []string
	entries  map[string]bool // of Anthropic's cache
	t        testing.TB
}

// Start starts a server that gives the answers in order and ends with the test. A request too
// many fails the test.
func Start(t testing.TB, answers ...Answer) *Server {
	return (&Server{answers: answers}).start(t)
}

// Serve starts a server that answers every request, of any client, by what it holds, and ends
// with the test. answer may be called by several goroutines at once.
func Serve(t testing.TB, answer func(Request) Answer) *Server {
	return (&Server{by: answer}).start(t)
}

func (s *Server) start(t testing.TB) *Server {
	s.t, s.entries = t, map[string]bool{}
	h := httptest.NewServer(s)
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
	})
	s.Root, s.URL = h.URL, h.URL+"/v1"
	return s
}

// Requests are those received so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Refused says why requests were refused that no provider takes, one text for each.
func (s *Server) Refused() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.refused)
}

// problem is why no provider takes a request, "" for nothing. What is refused is noted.
func (s *Server) problem(r Request) string {
	why := ""
	switch {
	case strings.HasSuffix(r.Path, "/chat/completions"):
		why = openaiProblem(r.Body, cmp.Or(s.IDLength, openaiIDLength))
	case !r.anthropicWire():
	case s.Binds:
		why = cmp.Or(anthropicProblem(r.Body), boundProblem(r.Body))
	default:
		why = anthropicProblem(r.Body)
	}
	if why != "" {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.refused = append(s.refused, why)
	}
	return why
}

// next notes a request and gives its answer with the tokens of the prompt.
func (s *Server) next(r Request) (a Answer, stream func(Answer) string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.anthropicWire() {
		input, cached, written := anthropicCache(s.entries, r.Body)
		stream = func(a Answer) string { return anthropicStream(a, input, cached, written) }
	} else {
		now, cached := r.Messages(), 0
		for _, earlier := range s.requests {
			cached = max(cached, shared(earlier.Messages(), now)/4)
		}
		stream = func(a Answer) string { return openaiStream(a, (len(now)+3)/4, cached) }
	}
	s.requests = append(s.requests, r)
	if s.by != nil {
		return Answer{}, stream, true
	}
	if n := len(s.requests); n <= len(s.answers) {
		return s.answers[n-1], stream, true
	}
	return Answer{}, nil, false
}

func shared(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// list names the models.
func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	data := []map[string]string{}
	for _, id := range s.Models {
		data = append(data, map[string]string{"id": id})
	}
	if len(data) == 0 || r.URL.Path != "/v1/models" {
		http.NotFound(w, r)
		return
	}
	fmt.Fprint(w, compact(map[string]any{"data": data}))
}

// ServeHTTP gives the next answer.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		s.list(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Errorf("modeltest: read a request: %v", err)
	}
	request := Request{Path: r.URL.Path, Header: r.Header.Clone(), Body: body}
	a, stream, ok := s.next(request)
	if !ok {
		s.t.Errorf("modeltest: no answer is left for %s", body)
		http.Error(w, "no answer is left", http.StatusTeapot)
		return
	}
	if s.by != nil {
		a = s.by(request)
	}
	end := "data: [DONE]\n\n"
	if request.anthropicWire() {
		end = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	}
	if why := s.problem(request); why != "" {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, compact(map[string]any{"error": map[string]any{"type": "invalid_request_error", "message": why}}))
		return
	}
	if a.Before != nil {
		a.Before()
	}
	if a.Raw != nil {
		s.raw(w, a.Raw)
		return
	}
	if s.Binds && request.anthropicWire() {
		a = a.bound(body)
	}
	for k, v := range a.Header {
		w.Header().Set(k, v)
	}
	if a.Status != 0 && a.Status != http.StatusOK {
		w.WriteHeader(a.Status)
		io.WriteString(w, a.Body)
		if a.Stall {
			stall(w, r)
		}
		return
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	if a.Body != "" {
		io.WriteString(w, a.Body)
	} else {
		io.WriteString(w, stream(a))
	}
	switch {
	case a.Stall:
		stall(w, r)
	case a.Cut:
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case !a.End && a.Body == "" && a.Failure == nil:
		io.WriteString(w, end)
	}
}

// raw sends bytes that are no response and ends the connection.
func (s *Server) raw(w http.ResponseWriter, b []byte) {
	connection, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		s.t.Errorf("modeltest: %v", err)
		return
	}
	defer connection.Close()
	if _, err := connection.Write(b); err != nil {
		s.t.Logf("modeltest: the client left: %v", err)
	}
}

// stall sends what there is, and nothing more until the client leaves.
func stall(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}
