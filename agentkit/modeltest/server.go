// Package modeltest is a model server on loopback for tests: it records the exact bytes of
// every request and answers, stalls, cuts or fails as it is told.
//
// It speaks OpenAI's chat completions, streamed. Its prefix cache is exact: an answer reports
// as cached what the messages share with any earlier request, a quarter token to the byte.
package modeltest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
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

// Messages is the part of the body that a prefix cache sees: tools, then messages.
func (r Request) Messages() []byte {
	var body struct {
		Tools    json.RawMessage `json:"tools"`
		Messages json.RawMessage `json:"messages"`
	}
	if json.Unmarshal(r.Body, &body) != nil {
		return nil
	}
	return append(append(append([]byte(nil), body.Tools...), '\n'), strings.TrimSuffix(string(body.Messages), "]")...)
}

// Answer is what the server does with one request. The zero Answer ends an empty stream.
type Answer struct {
	Status int               // not 0 or 200: a refusal with Body
	Header map[string]string // of the response
	Body   string            // of a refusal; or, with no Events, the raw stream

	Events []string // payloads of data: lines
	Usage  bool     // add the usage of the prefix cache as last event
	Cut    bool     // close the connection after the events, without [DONE]
	Stall  bool     // after the events say nothing more until the client leaves
}

// Text answers with a text, in pieces of a few bytes, and with usage.
func Text(text string) Answer {
	a := Answer{Usage: true}
	for len(text) > 0 {
		n := min(len(text), 7)
		for n < len(text) && text[n]&0xc0 == 0x80 {
			n++
		}
		a.Events = append(a.Events, delta(map[string]any{"content": text[:n]}))
		text = text[n:]
	}
	a.Events = append(a.Events, Finish("stop"))
	return a
}

// Call is a tool call of an answer; Args is raw.
type Call struct{ ID, Name, Args string }

// Calls answers with tool calls whose arguments come interleaved, byte by byte.
func Calls(calls ...Call) Answer {
	a := Answer{Usage: true}
	for i, c := range calls {
		a.Events = append(a.Events, CallDelta(i, c.ID, c.Name, ""))
	}
	for at := 0; ; at++ {
		more := false
		for i, c := range calls {
			if at < len(c.Args) {
				a.Events = append(a.Events, CallDelta(i, "", "", c.Args[at:at+1]))
				more = true
			}
		}
		if !more {
			break
		}
	}
	a.Events = append(a.Events, Finish("tool_calls"))
	return a
}

// CallDelta is the event of a piece of a tool call.
func CallDelta(index int, id, name, args string) string {
	function := map[string]any{"arguments": args}
	if name != "" {
		function["name"] = name
	}
	call := map[string]any{"index": index, "function": function}
	if id != "" {
		call["id"], call["type"] = id, "function"
	}
	return delta(map[string]any{"tool_calls": []any{call}})
}

// Finish is the event that says why the model stopped.
func Finish(reason string) string {
	return fmt.Sprintf(`{"choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, reason)
}

func delta(d map[string]any) string {
	b, err := json.Marshal(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": d}}})
	if err != nil {
		panic(err) // strings and numbers alone
	}
	return string(b)
}

// Server answers requests in turn.
type Server struct {
	URL string // base URL, with /v1

	mu       sync.Mutex
	answers  []Answer
	requests []Request
	t        testing.TB
}

// Start starts a server that gives the answers in order and ends with the test. A request too
// many fails the test.
func Start(t testing.TB, answers ...Answer) *Server {
	s := &Server{answers: answers, t: t}
	h := httptest.NewServer(s)
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
	})
	s.URL = h.URL + "/v1"
	return s
}

// Requests are those received so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// next notes a request and gives its answer with the tokens of the prompt.
func (s *Server) next(r Request) (a Answer, input, cached int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := r.Messages()
	for _, earlier := range s.requests {
		cached = max(cached, shared(earlier.Messages(), now)/4)
	}
	s.requests = append(s.requests, r)
	if n := len(s.requests); n <= len(s.answers) {
		return s.answers[n-1], (len(now) + 3) / 4, cached, true
	}
	return Answer{}, 0, 0, false
}

func shared(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// ServeHTTP gives the next answer.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Errorf("modeltest: read a request: %v", err)
	}
	a, input, cached, ok := s.next(Request{Path: r.URL.Path, Header: r.Header.Clone(), Body: body})
	if !ok {
		s.t.Errorf("modeltest: no answer is left for %s", body)
		http.Error(w, "no answer is left", http.StatusTeapot)
		return
	}
	for k, v := range a.Header {
		w.Header().Set(k, v)
	}
	if a.Status != 0 && a.Status != http.StatusOK {
		w.WriteHeader(a.Status)
		io.WriteString(w, a.Body)
		return
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	io.WriteString(w, a.Body)
	for _, e := range a.Events {
		fmt.Fprintf(w, "data: %s\n\n", e)
	}
	if a.Usage {
		fmt.Fprintf(w, `data: {"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d}}}`+"\n\n",
			input, len(a.Events), cached)
	}
	flush, _ := w.(http.Flusher)
	flush.Flush()
	switch {
	case a.Stall:
		<-r.Context().Done()
	case a.Cut:
		panic(http.ErrAbortHandler)
	case len(a.Events) > 0 || a.Usage:
		io.WriteString(w, "data: [DONE]\n\n")
	}
}
