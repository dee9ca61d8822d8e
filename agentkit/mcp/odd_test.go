package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"wf/agentkit/tool"
	"wf/protocol"
)

// oddVar makes the test binary a server that is written by hand and errs in the way that it says.
const oddVar = "WF_TEST_MCP_ODD"

// oddRequest is a message as a server reads it.
type oddRequest struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Arguments struct{ Text string } `json:"arguments"`
	} `json:"params"`
}

// oddAnswer is what a server of one tool, say, answers; "" is nothing.
func oddAnswer(r oddRequest) string {
	result := ""
	switch r.Method {
	case "initialize":
		result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"odd","version":"1"}}`
	case "tools/list":
		result = `{"tools":[{"name":"say","inputSchema":{"type":"object"}}]}`
	case "tools/call":
		result = fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, "said "+r.Params.Arguments.Text[:min(20, len(r.Params.Arguments.Text))])
	default:
		if r.ID == nil || r.Method == "" {
			return ""
		}
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, r.ID)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, r.ID, result)
}

// oddLines are written by a server of that kind before it answers a method, or a notification; "first" is before all.
var oddLines = map[string]map[string]string{
	"a banner":                        {"first": "Odd server 1.0 on stdio\n"},
	"a banner of several lines":       {"first": "\n\n  ____\n / odd \\\n\n \t \r\nready\n"},
	"a mark":                          {"first": "\ufeff"},
	"a mark on a line of its own":     {"first": "\ufeff\n"},
	"a banner of 5 MB":                {"first": strings.Repeat("x", 5<<20) + "\n"},
	"an object of 5 MB":               {"first": `{"log":"` + strings.Repeat("x", 5<<20) + "\"}\n"},
	"a log line per message":          {"initialize": "a\n", "tools/list": "b\n", "tools/call": "c\n"},
	"log lines in JSON":               {"tools/call": `{"level":"info","msg":"called"}` + "\n"},
	"a list that is no batch":         {"tools/call": "[1, 2]\n[]\n[info] called\n"},
	"values of JSON":                  {"tools/call": "null\n17\n\"called\"\ntrue\n"},
	"half of a message":               {"tools/call": `{"jsonrpc":"2.0","id":` + "\n"},
	"another version":                 {"tools/call": `{"jsonrpc":"1.0","id":1,"result":{}}` + "\n"},
	"not UTF-8":                       {"tools/call": "\xff\xfe\x00\n"},
	"an answer to a notification":     {"notifications/initialized": `{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no"}}` + "\n"},
	"an answer without an id":         {"notifications/initialized": `{"jsonrpc":"2.0","result":{}}` + "\n"},
	"an answer to nobody":             {"tools/call": `{"jsonrpc":"2.0","id":4711,"result":{}}` + "\n" + `{"jsonrpc":"2.0","id":"x","result":{}}` + "\n"},
	"a request that nobody can serve": {"tools/call": `{"jsonrpc":"2.0","id":"s1","method":"sampling/createMessage","params":{}}` + "\n"},
}

// oddCalls are what a server of that kind does in a call, in the place of its answer.
var oddCalls = map[string]func(call string){}

// hang is for a program that does nothing more until it is killed.
func hang() {
	never := make(chan os.Signal, 1)
	signal.Notify(never, syscall.SIGUSR1)
	<-never
}

// oddStdio serves stdin.
func oddStdio(kind string) {
	file := os.Getenv("STARTS")
	before, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		panic(err)
	}
	started := string(before)
	if err := os.WriteFile(file, append(before, "started\n"...), 0o600); err != nil {
		panic(err)
	}
	if strings.HasPrefix(kind, "a child that ") && os.Getenv("CHILD") == "" {
		child := exec.Command(os.Args[0])
		child.Stdin, child.Stdout, child.Env = os.Stdin, os.Stdout, append(os.Environ(), "CHILD=1", "STARTS="+os.DevNull)
		if err := child.Start(); err != nil {
			panic(err)
		}
	} else if os.Getenv("CHILD") != "" {
		if kind == "a child that goes on printing" {
			for range time.Tick(5 * time.Millisecond) {
				fmt.Println("still here")
			}
		}
		hang()
	}
	end := "\n"
	if kind == "line ends of Windows" {
		end = "\r\n"
	}
	fmt.Print(oddLines[kind]["first"])
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		var r oddRequest
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			panic(err)
		}
		answer := oddAnswer(r)
		if r.Method == "tools/call" {
			if does := oddCalls[kind]; does != nil {
				does(line)
			}
			switch kind {
			case "it ends in a call":
				fmt.Fprintln(os.Stderr, "out of memory")
				os.Exit(1)
			case "it hangs in a call":
				answer = ""
			case "a child that has its streams", "a child that goes on printing":
				os.Exit(0)
			case "its answers are lists":
				answer = "[" + answer + "]"
			case "it ends with its answer":
				fmt.Print(answer)
				os.Exit(0)
			}
		}
		fmt.Print(oddLines[kind][r.Method])
		if answer != "" {
			fmt.Print(answer, end)
		}
		switch {
		case kind == "it ends behind each answer" && r.Method == "tools/call":
			os.Exit(0)
		case kind == "it reads no more" && r.Method == "tools/list":
			hang()
		case kind == "it ends as it is called" && r.Method == "tools/list" && !strings.Contains(started, "started"):
			for n := 0; n < 1; { // the call lies in the pipe, and stays there
				if n, err = unix.Poll([]unix.PollFd{{Fd: 0, Events: unix.POLLIN}}, -1); err != nil && !errors.Is(err, unix.EINTR) {
					panic(err)
				}
			}
			os.Exit(0)
		}
	}
}

// odd is a pool with a server of a kind, and what a person is told of it.
func odd(t *testing.T, kind string) (p *Pool, told func() string, starts func() int) {
	t.Helper()
	p = stdio(t)
	file := filepath.Join(t.TempDir(), "starts")
	p.Servers[0].Env = []protocol.MCPValue{{Name: oddVar, Value: kind}, {Name: "STARTS", Value: file}}
	return p, listen(p), func() int {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(b), "started")
	}
}

// listen keeps what a pool tells.
func listen(p *Pool) func() string {
	var mu sync.Mutex
	var all []string
	p.Strange = func(_ string, err error) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, err.Error())
	}
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(all, "\n")
	}
}

// F-117: what a program writes besides messages ended it, and the run.
func TestWhatAProgramSaysBesidesMessagesIsSkippedAndToldOnce(t *testing.T) {
	quiet := map[string]bool{"a mark": true, "a mark on a line of its own": true, "a request that nobody can serve": true, "line ends of Windows": true,
		"its answers are lists": true}
	kinds := []string{"line ends of Windows", "its answers are lists"}
	for kind := range oddLines {
		kinds = append(kinds, kind)
	}
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p, told, starts := odd(t, kind)
			if tools, err := p.Tools(t.Context(), "mcp:t/*"); err != nil || len(tools) != 1 {
				t.Fatalf("%d tools, %v", len(tools), err)
			}
			for _, text := range []string{"a", "b", "c"} {
				if r := call(t, p, "say", `{"text":"`+text+`"}`); r.Content != "said "+text || r.IsError {
					t.Errorf("a call gives %q", r.Content)
				}
			}
			if starts() != 1 {
				t.Errorf("started %d times", starts())
			}
			switch lines := told(); {
			case quiet[kind] && lines != "":
				t.Errorf("a person is told %q", lines)
			case !quiet[kind] && (strings.Count(lines, "mcp:t ") != 1 || len(lines) > 600):
				t.Errorf("a person is told %q", lines)
			}
		})
	}
	p, told, _ := odd(t, "a banner of several lines")
	p.Servers[0].Env = append(p.Servers[0].Env, protocol.MCPValue{Name: "UNUSED", Secret: "TOKEN"})
	p.Secret = func(string) (string, bool) { return "____", true }
	if _, err := p.Tools(t.Context(), "mcp:t/*"); err != nil || !strings.Contains(told(), "[secret:TOKEN]") || strings.Contains(told(), "____") {
		t.Errorf("of a line with a secret a person is told %q, %v", told(), err)
	}
}

// What becomes of calls of a program that errs in them, and of the calls after that.
func TestWhatBecomesOfACallOfAProgramThatErrs(t *testing.T) {
	const works = "said b"
	long := strings.Repeat("x", 1<<20)
	for kind, c := range map[string]struct {
		text, first, second string
		starts              int
	}{
		"it ends behind each answer":    {"a", "said a", works, 2},
		"it ends with its answer":       {"a", "said a", works, 2},
		"it ends in a call":             {"a", "ended during the call, its outcome is unknown", "its outcome is unknown", 2},
		"a child that has its streams":  {"a", "ended during the call, its outcome is unknown", "its outcome is unknown", 2},
		"a child that goes on printing": {"a", "ended during the call, its outcome is unknown", "its outcome is unknown", 2},
		"it hangs in a call":            {"a", "did not answer within 300ms, and was stopped; the outcome of the call is unknown", "did not answer within", 2},
		"it reads no more":              {long, "did not answer within 300ms, and was stopped", "did not answer within", 2},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p, _, starts := odd(t, kind)
			p.calling = 300 * time.Millisecond
			if strings.HasPrefix(c.first, "said") || strings.HasPrefix(c.first, "ended") {
				p.calling = 20 * time.Second
			}
			if r := call(t, p, "say", `{"text":"`+c.text+`"}`); !strings.Contains(r.Content, c.first) {
				t.Errorf("the first call gives %.300q", r.Content)
			}
			if r := call(t, p, "say", `{"text":"b"}`); !strings.Contains(r.Content, c.second) {
				t.Errorf("the second call gives %.300q", r.Content)
			}
			if starts() != c.starts {
				t.Errorf("started %d times", starts())
			}
		})
	}
}

// F-117: a program that ends behind each answer lost every second call. It is started as often as that takes.
func TestAProgramThatEndsBehindEachAnswerAnswersEachCall(t *testing.T) {
	p, _, starts := odd(t, "it ends behind each answer")
	const n = 3 * startsMax
	for i := range n {
		text := fmt.Sprint(i)
		if r := call(t, p, "say", `{"text":"`+text+`"}`); r.Content != "said "+text {
			t.Fatalf("call %d gives %q", i, r.Content)
		}
	}
	if starts() != n {
		t.Errorf("started %d times", starts())
	}
}

// A call that a program has not read when it ends was not performed: it is made of the program that is started in its place.
func TestACallThatAProgramDidNotReadIsMadeAgain(t *testing.T) {
	p, _, starts := odd(t, "it ends as it is called")
	if r := call(t, p, "say", `{"text":"a"}`); r.Content != "said a" || starts() != 2 {
		t.Errorf("gives %q, started %d times", r.Content, starts())
	}
}

// oddWeb is a server by HTTP with sessions, which errs in its first call.
type oddWeb struct {
	errs func(w http.ResponseWriter, answer string)

	mu       sync.Mutex
	sessions int
	calls    int      // that it was asked for
	done     []string // those that it performed
}

func (o *oddWeb) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var q oddRequest
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		panic(err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	session, answer := fmt.Sprint("s", o.sessions), oddAnswer(q)
	switch q.Method {
	case "initialize":
		o.sessions++
		w.Header().Set("Mcp-Session-Id", fmt.Sprint("s", o.sessions))
	case "tools/call":
		if o.calls++; o.calls == 1 && o.errs != nil {
			o.errs(w, answer)
			return
		}
		if r.Header.Get("Mcp-Session-Id") != session {
			http.Error(w, "which session?", http.StatusNotFound)
			return
		}
		o.done = append(o.done, q.Params.Arguments.Text)
	}
	w.Header().Set("Content-Type", "application/json")
	if answer == "" {
		answer = `{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no such notification"}}`
	}
	fmt.Fprint(w, answer)
}

// What becomes of a call by HTTP of a server that errs in it, and that the call after that works.
func TestWhatBecomesOfACallByHTTPOfAServerThatErrs(t *testing.T) {
	status := func(code int, body string) func(http.ResponseWriter, string) {
		return func(w http.ResponseWriter, _ string) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			fmt.Fprint(w, body)
		}
	}
	says := func(kind, before, after string) func(http.ResponseWriter, string) {
		return func(w http.ResponseWriter, answer string) {
			w.Header().Set("Content-Type", kind)
			fmt.Fprint(w, before+answer+after)
		}
	}
	stream := func(before string) func(http.ResponseWriter, string) {
		return says("text/event-stream; charset=utf-8", before+"data: ", "\n\n")
	}
	cut := func(kind, before string) func(http.ResponseWriter, string) {
		return func(w http.ResponseWriter, _ string) {
			w.Header().Set("Content-Type", kind)
			fmt.Fprint(w, before)
			if err := http.NewResponseController(w).Flush(); err != nil {
				panic(err)
			}
			panic(http.ErrAbortHandler)
		}
	}
	const (
		lost   = "error: mcp:t lost the connection during the call, its outcome is unknown: "
		noRead = "error: mcp:t gave no answer that can be read, the outcome of the call is unknown: "
	)
	for kind, c := range map[string]struct {
		errs     func(http.ResponseWriter, string)
		want     string
		sessions int
		told     bool
	}{
		"the session is gone":                      {status(404, "Not Found"), "said a", 2, false},
		"the session is gone, says JSON":           {status(404, `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Session not found"}}`), "said a", 2, false},
		"the session is gone, says JSON of nobody": {status(404, `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`), "said a", 2, false},
		"the connection is lost":                   {func(http.ResponseWriter, string) { panic(http.ErrAbortHandler) }, lost + "EOF", 1, false},
		"the connection is lost in an answer":      {cut("application/json", `{"jsonrpc":`), lost + "unexpected EOF", 2, false},
		"the connection is lost in a stream":       {cut("text/event-stream", "event: message\n"), lost + "unexpected EOF", 1, false},
		"a stream ends without an answer":          {says("text/event-stream", ": done\n\n: ", "\n\n"), noRead, 1, false},
		"an answer is no message":                  {status(200, "nonsense"), noRead, 2, false},
		"an answer is a page":                      {says("text/html", "<p>", "</p>"), noRead, 2, false},
		"a gateway fails":                          {status(502, "upstream"), "error: mcp:t failed during the call, its outcome is unknown: HTTP 502 Bad Gateway: upstream", 1, false},
		"an error with the status of a failure":    {status(500, `{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"no disk"}}`), "error: mcp:t refuses the call: HTTP 500 Internal Server Error: no disk", 1, false},
		"the key is not right":                     {status(401, "who are you?"), "error: mcp:t refuses the call: HTTP 401 Unauthorized: who are you?", 2, false},
		"a refusal with a status":                  {status(400, `{"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"no such tool"}}`), "error: mcp:t refuses the call: HTTP 400 Bad Request: no such tool", 1, false},
		"it leads elsewhere":                       {status(307, ""), "error: mcp:t refuses the call: HTTP 307 Temporary Redirect", 2, false},
		"a mark before an answer":                  {says("application/json", mark, "\n"), "said a", 1, false},
		"a mark before a stream":                   {stream(mark), "said a", 1, false},
		"a stream":                                 {stream(": hello\nretry: 10\n\nid: 1\n\n\n\nevent: ping\ndata: now\n\nevent: message\nid: 2\n"), "said a", 1, false},
		"an answer in several lines":               {says("text/event-stream", "data: ", "\ndata:  \n\n"), "said a", 1, false},
		"a log line in a stream":                   {stream("data: called\n\n"), "said a", 1, true},
		"a log line that is no event":              {stream("called\n"), "said a", 1, true},
		"a log line in an event without a name":    {stream("event:\ndata: called\n\n"), "said a", 1, true},
		"a log in JSON in a stream":                {stream("data: {\"level\":\"info\"}\n\n"), "said a", 1, true},
		"an answer without an id in a stream":      {stream("data: {\"jsonrpc\":\"2.0\",\"id\":null,\"result\":{}}\n\n"), "said a", 1, true},
		"an answer to nobody in a stream":          {stream("data: {\"jsonrpc\":\"2.0\",\"id\":4711,\"result\":{}}\n\n"), "said a", 1, false},
	} {
		t.Run(kind, func(t *testing.T) {
			o := &oddWeb{errs: c.errs}
			web := httptest.NewServer(o)
			defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
			defer web.Close()
			p := &Pool{Servers: []protocol.MCPServer{{Name: "t", URL: web.URL}}}
			told := listen(p)
			defer p.Close()
			if r := call(t, p, "say", `{"text":"a"}`); r.Content != c.want && (c.want != noRead || !strings.HasPrefix(r.Content, noRead)) {
				t.Errorf("the call gives %q", r.Content)
			}
			if r := call(t, p, "say", `{"text":"b"}`); r.Content != "said b" {
				t.Errorf("the next one gives %q", r.Content)
			}
			done := "b"
			if c.want == "said a" && c.sessions == 2 { // the server did not take it, so that it is made again
				done = "a b"
			}
			if o.sessions != c.sessions || strings.Join(o.done, " ") != done {
				t.Errorf("%d sessions, performed %q", o.sessions, o.done)
			}
			if lines := told(); c.told != (strings.Count(lines, "mcp:t ") == 1) || !c.told && lines != "" {
				t.Errorf("a person is told %q", lines)
			}
		})
	}
}

// A server by HTTP is called again however often it lost its sessions, and a call is not made for ever.
func TestAServerByHTTPThatForgetsItsSessions(t *testing.T) {
	o := &oddWeb{}
	web := httptest.NewServer(o)
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	defer web.Close()
	p := &Pool{Servers: []protocol.MCPServer{{Name: "t", URL: web.URL}}}
	defer p.Close()
	for i := range 3 * startsMax {
		o.mu.Lock()
		o.sessions++ // those that it gave out are not the one that it knows
		o.mu.Unlock()
		if r := call(t, p, "say", `{"text":"a"}`); r.Content != "said a" {
			t.Fatalf("call %d gives %q", i, r.Content)
		}
	}
	never := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Mcp-Session-Id")
		o.ServeHTTP(w, r)
	})
	web.Config.Handler = never
	before := len(o.done)
	if r := call(t, p, "say", `{"text":"a"}`); r.Content != "error: mcp:t refuses the call: HTTP 404 Not Found: which session?" || len(o.done) != before {
		t.Errorf("without a session that it knows it gives %q", r.Content)
	}
}

// F-111: a server that cannot be reached refuses nothing. What it forgot while it was away is begun anew.
func TestAServerByHTTPThatIsAwayForAWhile(t *testing.T) {
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	web := httptest.NewServer(&oddWeb{})
	at := web.Listener.Addr().String()
	p := &Pool{Servers: []protocol.MCPServer{{Name: "t", URL: web.URL}}}
	defer p.Close()
	if r := call(t, p, "say", `{"text":"a"}`); r.Content != "said a" {
		t.Fatal(r.Content)
	}
	web.Close()
	for range 2 * startsMax {
		if r := call(t, p, "say", `{"text":"b"}`); !strings.HasPrefix(r.Content, "error: mcp:t cannot be reached, and the call was not made: dial tcp "+at) {
			t.Fatalf("while it is away a call gives %q", r.Content)
		}
	}
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	again := &httptest.Server{Listener: l, Config: &http.Server{Handler: &oddWeb{sessions: 100}}}
	again.Start()
	defer again.Close()
	if r := call(t, p, "say", `{"text":"c"}`); r.Content != "said c" {
		t.Errorf("then a call gives %q", r.Content)
	}
}

func TestAServerByHTTPThatHangsInACall(t *testing.T) {
	release := make(chan struct{})
	web := httptest.NewServer(&oddWeb{errs: func(http.ResponseWriter, string) { <-release }})
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	defer web.Close()
	defer close(release)
	p := &Pool{Servers: []protocol.MCPServer{{Name: "t", URL: web.URL}}, calling: 300 * time.Millisecond}
	if r := call(t, p, "say", `{"text":"a"}`); r.Content != "error: mcp:t did not answer within 300ms, and is not waited for any longer; the outcome of the call is unknown" {
		t.Errorf("a call gives %q", r.Content)
	}
}

func TestALineMayHoldSomeMessages(t *testing.T) {
	const m = `{"jsonrpc":"2.0","method":"a"}`
	for line, want := range map[string]int{
		m: 1, "[" + m + "]": 1, "[ " + m + " , " + m + " ]": 2, "[]": 0, "[" + m + "] x": 0, "[" + m: 0, "[info] " + m: 0, "[" + m + ",]": 0,
		"[" + strings.Repeat(m+",", batchMax-1) + m + "]": batchMax,
		"[" + strings.Repeat(m+",", batchMax) + m + "]":   0,
	} {
		if got, all := messages([]byte(line)); len(got) != want || all != (want > 0) {
			t.Errorf("%.60q holds %d, %v, want %d", line, len(got), all, want)
		}
	}
}

// What is held of an answer that has no end is bounded, by a program and by HTTP.
func TestAnAnswerWithoutAnEndIsNotHeldWhole(t *testing.T) {
	const sent = 4 * messageMax
	for name, c := range map[string]struct{ kind, begin, most string }{
		"an event":         {"text/event-stream", "data: ", fmt.Sprintf("an event has more than %d bytes", messageMax)},
		"a line of events": {"text/event-stream", "called ", fmt.Sprintf("an event has more than %d bytes", messageMax)},
		"an object":        {"application/json", "{", fmt.Sprintf("a message has more than %d bytes", messageMax)},
	} {
		t.Run(name, func(t *testing.T) {
			var wrote int
			o := &oddWeb{errs: func(w http.ResponseWriter, _ string) {
				w.Header().Set("Content-Type", c.kind)
				wrote, _ = fmt.Fprint(w, c.begin) // the client may be gone
				for chunk := bytes.Repeat([]byte("x"), 1<<20); wrote < sent; {
					n, err := w.Write(chunk)
					if wrote += n; err != nil {
						return
					}
				}
			}}
			web := httptest.NewServer(o)
			defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
			defer web.Close()
			p := &Pool{Servers: []protocol.MCPServer{{Name: "t", URL: web.URL}}}
			defer p.Close()
			if r := call(t, p, "say", `{"text":"a"}`); !strings.Contains(r.Content, c.most) || !strings.Contains(r.Content, "its outcome is unknown") && !strings.Contains(r.Content, "the outcome of the call is unknown") {
				t.Errorf("the call gives %.300q", r.Content)
			}
			if r := call(t, p, "say", `{"text":"b"}`); r.Content != "said b" {
				t.Errorf("the next one gives %q", r.Content)
			}
			if wrote > 2*messageMax {
				t.Errorf("%d bytes were read", wrote)
			}
		})
	}
}

// A Pool goes on with the programs of another one, unless it is for another place, or a file that its command names has changed:
// what was trusted is that file.
func TestAPoolGoesOnWithThoseOfAnother(t *testing.T) {
	for name, c := range map[string]struct {
		change func(from, to *Pool)
		starts int
	}{
		"as it was":         {func(*Pool, *Pool) {}, 1},
		"in another place":  {func(_, to *Pool) { to.Dir = to.Root }, 2},
		"in a copy":         {func(_, to *Pool) { to.At = "/work" }, 2},
		"for another run":   {func(_, to *Pool) { to.Run = "OTHER" }, 2},
		"with another word": {func(_, to *Pool) { to.Servers[0].Command = append(to.Servers[0].Command, "x") }, 2},
		"its file changed":  {func(from, _ *Pool) { write(t, filepath.Join(from.Dir, "start.sh"), "# anew\nexec \"$1\"\n") }, 2},
		"its program ended": {func(from, _ *Pool) {
			proc := from.connections["t"].proc
			proc.kill()
			<-from.connections["t"].gone
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			from, _, starts := odd(t, "one that errs in nothing")
			from.Root = filepath.Dir(from.Dir)
			write(t, filepath.Join(from.Dir, "start.sh"), "exec \"$1\"\n")
			from.Servers[0].Command, from.Servers[0].Sandbox = []string{"sh", "./start.sh", from.Servers[0].Command[0]}, protocol.SandboxOff
			write(t, filepath.Join(from.Root, "start.sh"), "exec \"$1\"\n")
			if _, err := from.Tools(t.Context(), "mcp:t/*"); err != nil {
				t.Fatal(err)
			}
			to := &Pool{Servers: slices.Clone(from.Servers), Dir: from.Dir, Root: from.Root, Trusted: all}
			to.Servers[0].Command = slices.Clone(to.Servers[0].Command)
			defer to.Close()
			c.change(from, to)
			if err := to.TakeOver(from); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if r := call(t, to, "say", `{"text":"a"}`); r.Content != "said a" {
					t.Errorf("a call gives %q", r.Content)
				}
			}
			if starts() != c.starts {
				t.Errorf("started %d times", starts())
			}
		})
	}
}

// What a person trusts no more is not called, although it was started while it was trusted.
func TestAPoolDoesNotGoOnWithWhatIsTrustedNoMore(t *testing.T) {
	from, _, starts := odd(t, "one that errs in nothing")
	if _, err := from.Tools(t.Context(), "mcp:t/*"); err != nil {
		t.Fatal(err)
	}
	to := &Pool{Servers: from.Servers, Dir: from.Dir, Trusted: func(protocol.MCPServer, Place) error { return ErrUntrusted }}
	defer to.Close()
	if err := to.TakeOver(from); err != nil {
		t.Fatal(err)
	}
	tl, ok := to.Recorded(protocol.Tool{Name: wireName("t", "say")})
	if !ok {
		t.Fatal("no tool")
	}
	if r, err := tl.Run(t.Context(), tool.Workspace{}, json.RawMessage(`{"text":"a"}`)); !errors.Is(err, ErrUntrusted) || starts() != 1 {
		t.Errorf("a call gives %q, %v, started %d times", r.Content, err, starts())
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
