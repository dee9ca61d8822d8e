package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tmc/langchaingo/llms"

	"wf/agentkit"
	"wf/agentkit/openai"
	"wf/agentkit/tool"
	"wf/api"
	"wf/engine"
	"wf/protocol"
)

// outages are the ways in which a provider ends an attempt, as providers do.
var outages = map[string]func(http.ResponseWriter){
	"400":       status(400, "", "the reason"),
	"401":       status(401, "", "the reason"),
	"404":       status(404, "", "the reason"),
	"quota":     status(429, "", "You exceeded your current quota, please check your plan and billing details."),
	"page":      page(200),
	"408":       status(408, "", "the reason"),
	"409":       status(409, "", "the reason"),
	"422":       status(422, "", "the reason"),
	"425":       status(425, "", "the reason"),
	"429":       status(429, "", "the reason"),
	"429 later": status(429, "1800", "the reason"),
	"500":       status(500, "", "the reason"),
	"502":       page(502),
	"503":       status(503, "1", "the reason"),
	"529":       status(529, "", "the reason"),
	"redirect":  func(w http.ResponseWriter) { w.Header().Set("Location", "/elsewhere"); w.WriteHeader(302) },
	"cut": func(w http.ResponseWriter) {
		stream(w, `{"choices":[{"index":0,"delta":{"role":"assistant","content":"half of the"}}]}`)
		hangUp(w)
	},
	"reset": hangUp,
	"no end": func(w http.ResponseWriter) {
		stream(w, `{"choices":[{"index":0,"delta":{"content":"half of the"}}]}`)
	},
	"empty":   func(w http.ResponseWriter) { stream(w) },
	"garbage": func(w http.ResponseWriter) { stream(w, `{not json}`) },
	"error within": func(w http.ResponseWriter) {
		stream(w, `{"choices":[{"index":0,"delta":{"content":"ha"}}]}`, `{"error":{"message":"Internal stream error","code":500}}`)
	},
	"refusal": func(w http.ResponseWriter) {
		stream(w, `{"choices":[{"index":0,"delta":{"content":"I"},"finish_reason":"content_filter"}]}`, "[DONE]")
	},
	"silence": func(http.ResponseWriter) { <-time.After(3 * quiet) },
	"silence within": func(w http.ResponseWriter) {
		stream(w, `{"choices":[{"index":0,"delta":{"content":"ha"}}]}`)
		<-time.After(3 * quiet)
	},
}

// quiet is how long a server may be silent that a role of such a name asks.
const quiet = 500 * time.Millisecond

func status(code int, retryAfter, message string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"error":{"message":%q,"type":"t","code":"c"}}`, message)
	}
}

func page(code int) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(code)
		fmt.Fprint(w, "<html><head><title>Bad Gateway</title></head><body>nginx</body></html>")
	}
}

func stream(w http.ResponseWriter, events ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(200)
	for _, e := range events {
		fmt.Fprintf(w, "data: %s\n\n", e)
	}
	_ = http.NewResponseController(w).Flush() // the writer of a test's server can
}

// hangUp resets the connection.
func hangUp(w http.ResponseWriter) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // else it is closed, which is another of these
	}
	_ = c.Close() // that is what is tested
}

// provider is a server of two models, good and bad: the bad one fails for each role as its outage says, once the role has made
// so many calls, for as long as ill tells.
type provider struct {
	t       testing.TB
	ill     func(role string) bool
	mu      sync.Mutex
	before  map[string][]json.RawMessage // messages of the newest request of a role
	effects map[string][]string          // what the tool note was called with, by role
	broken  []string                     // requests that do not begin with the one before
	asked   map[string]int
}

// ServeHTTP answers a request of a role whose prompt is OUTAGE/, with a + behind it for each call before the outage.
func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var request struct {
		Messages []json.RawMessage `json:"messages"`
	}
	if err == nil {
		err = json.Unmarshal(body, &request)
	}
	if err != nil {
		p.t.Errorf("%v: %.200s", err, body)
		return
	}
	var system struct{ Content string }
	_ = json.Unmarshal(request.Messages[0], &system) // what is no system message has no role
	role, calls := strings.TrimSpace(system.Content), 0
	for _, m := range request.Messages {
		if strings.Contains(string(m), `"role":"tool"`) {
			calls++
		}
	}
	of, n, _ := strings.Cut(role, "/")
	first := len(n)
	p.mu.Lock()
	p.asked[role]++
	before := p.before[role]
	if len(request.Messages) < len(before) || !slices.EqualFunc(before, request.Messages[:len(before)], func(a, b json.RawMessage) bool { return string(a) == string(b) }) {
		p.broken = append(p.broken, fmt.Sprintf("%s:\n%s\n%s", role, before, request.Messages))
	}
	p.before[role] = request.Messages
	p.mu.Unlock()
	switch {
	case calls == first && !strings.HasPrefix(r.URL.Path, "/good") && p.ill(role):
		outages[of](w)
	case calls == first+2:
		stream(w, `{"choices":[{"index":0,"delta":{"content":"done"},"finish_reason":"stop"}]}`, "[DONE]")
	default:
		args, err := json.Marshal(noted{role, calls})
		if err != nil {
			p.t.Error(err)
		}
		stream(w, fmt.Sprintf(`{"choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"c%d","type":"function","function":{"name":"note","arguments":%q}}]},"finish_reason":"tool_calls"}]}`, calls, args), "[DONE]")
	}
}

// noted is what the tool note is called with.
type noted struct {
	Of string `json:"of"`
	N  int    `json:"n"`
}

// note is a tool with an effect that must not happen twice.
func (p *provider) note() tool.Tool {
	return tool.Tool{Name: "note", Description: "Notes.", Parameters: protocol.JSON(`{"type":"object","properties":{"of":{"type":"string"},"n":{"type":"integer"}},"required":["of","n"]}`),
		Policy: tool.Auto, Run: func(_ context.Context, _ tool.Workspace, args json.RawMessage) (tool.Result, error) {
			var of noted
			if err := json.Unmarshal(args, &of); err != nil {
				return tool.Result{Content: err.Error(), IsError: true}, nil
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			p.effects[of.Of] = append(p.effects[of.Of], fmt.Sprint(of.N))
			return tool.Result{Content: "noted"}, nil
		}}
}

// newProvider is a provider that is asked by the agents of b; patience is theirs.
func newProvider(t *testing.T, b *bench, patience time.Duration) *provider {
	p := &provider{t: t, before: map[string][]json.RawMessage{}, effects: map[string][]string{}, asked: map[string]int{}}
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	b.e.Performers[protocol.ActPrompt] = agentkit.Agent{Patient: &patience, Tools: []tool.Tool{p.note()}, Models: func(name, _ string) (llms.Model, error) {
		kind, id, _ := strings.Cut(name, "/")
		idle := time.Minute
		if id == "quick" {
			idle = quiet
		}
		return agentkit.NonNil(openai.New(name, id, openai.Config{BaseURL: s.URL + "/" + kind + "/v1", Idle: idle}))
	}}
	return p
}

// once is ill once for each role.
func once() func(role string) bool {
	var well sync.Map
	return func(role string) bool { _, before := well.LoadOrStore(role, true); return !before }
}

// An outage, whatever it is and whenever it comes, leaves the visit where it is: however it is gone on with, no call runs twice,
// and each request begins with the bytes of the one before.
func TestWhateverEndsAnAttemptTheVisitGoesOn(t *testing.T) {
	for way, roleKeys := range map[string]string{
		"resume":   "model: bad/m",
		"retry":    "model: bad/m\n    retry: {attempts: 3, delay: 1ms}",
		"fallback": "model: [bad/m, good/m]",
		"words":    "model: bad/m",
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			p := newProvider(t, b, 0)
			p.ill = once()
			yaml, targets := "wf: 1\nname: outage\nlimits: {tokens: 100000000}\nroles:\n", []string{}
			names := slices.Sorted(maps.Keys(outages))
			for _, name := range names {
				model := "m"
				if strings.HasPrefix(name, "silence") {
					model = "quick"
				}
				for _, calls := range []string{"", "+++"} {
					role := fmt.Sprintf("r%d", len(targets))
					yaml += fmt.Sprintf("  %s:\n    prompt: %q\n    tools: [note]\n    %s\n", role, name+"/"+calls, strings.ReplaceAll(roleKeys, "/m", "/"+model))
					targets = append(targets, role)
				}
			}
			yaml += "edges:\n  - {from: START, to: [" + strings.Join(targets, ", ") + "], prompt: Go}\n"
			for _, r := range targets {
				yaml += "  - {from: " + r + ", to: END}\n"
			}
			id, v := b.run(yaml, nil)
			for range len(names) * 2 {
				if v.Status != protocol.Suspended {
					break
				}
				if way == "words" {
					if err := b.e.Message(t.Context(), id, "anna", "please go on"); err != nil {
						t.Fatal(err)
					}
				}
				v = b.drive(id)
			}
			if v.Status != protocol.Done {
				t.Fatalf("the run is %s: %s", v.Status, v.Reason)
			}
			for _, name := range names {
				for n, calls := range map[int]string{0: "", 3: "+++"} {
					role, want := name+"/"+calls, []string{}
					for k := range n + 2 {
						want = append(want, fmt.Sprint(k))
					}
					if got := p.effects[role]; !slices.Equal(got, want) {
						t.Errorf("%s: the calls that ran are %v, want %v", role, got, want)
					}
					if got := p.asked[role]; got < n+4 || got > n+4 && !strings.HasPrefix(name, "silence") { // a machine at work may be silent, too
						t.Errorf("%s: %d requests were sent, want %d", role, got, n+4)
					}
				}
			}
			if way != "words" && len(p.broken) > 0 {
				t.Errorf("%d requests do not begin with the one before, such as %s", len(p.broken), p.broken[0])
			}
			b.rebuilt(id)
		})
	}
}

// rebuilt checks that a run follows from its records, with the messages of its agents.
func (b *bench) rebuilt(id protocol.RunID) {
	b.t.Helper()
	if r, err := b.e.Check(b.t.Context(), id, rendered); err != nil || !r.OK() {
		b.t.Errorf("%v: %+v", err, r)
	}
}

// A server that is not there yet, as one that is being restarted, is waited for, by the refusal of the system itself.
func TestAServerThatStartsIsWaitedFor(t *testing.T) {
	b := newBench(t)
	p := newProvider(t, b, time.Minute)
	p.ill = func(string) bool { return false }
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	agent := b.e.Performers[protocol.ActPrompt].(agentkit.Agent)
	agent.Models = func(name, _ string) (llms.Model, error) {
		return agentkit.NonNil(openai.New(name, "m", openai.Config{BaseURL: "http://" + at + "/bad/v1"}))
	}
	b.e.Performers[protocol.ActPrompt] = agent
	var begun atomic.Bool
	b.e.Watch = func(n api.Update) {
		if h, ok := n.Data.(protocol.Held); ok && !begun.Swap(true) {
			if !strings.Contains(h.Why, "connection refused") {
				t.Errorf("it is held: %s", h)
			}
			l, err := net.Listen("tcp", at)
			if err != nil {
				t.Error(err)
				return
			}
			s := &httptest.Server{Listener: l, Config: &http.Server{Handler: p}}
			s.Start()
			t.Cleanup(s.Close)
		}
	}
	_, v := b.run(oneOutage("503"), nil)
	if v.Status != protocol.Done || !begun.Load() {
		t.Errorf("%s: %s", v.Status, v.Reason)
	}
}

// oneOutage is a workflow of a role whose provider fails after three calls, with lines of YAML of the role.
func oneOutage(of string, lines ...string) string {
	return "wf: 1\nname: outage\nlimits: {tokens: 100000000, duration: 1m}\nroles:\n  a:\n    prompt: \"" + of + "/+++\"\n    tools: [note]\n    model: bad/m\n    " + strings.Join(lines, "\n    ") + "\n"
}

func TestAFurtherAttemptBeginsAnewWhereTheRoleSaysSo(t *testing.T) {
	b := newBench(t)
	p := newProvider(t, b, 0)
	p.ill = once()
	id, v := b.run(oneOutage("503", "retry: {attempts: 2, delay: 1ms, anew: true}"), nil)
	if got := strings.Join(p.effects["503/+++"], " "); v.Status != protocol.Done || got != "0 1 2 0 1 2 3 4" {
		t.Errorf("%s: %s, %s", v.Status, v.Reason, got)
	}
	b.rebuilt(id)
}

// What a role's timeout ends goes on too.
func TestAVisitGoesOnAfterItsTimeout(t *testing.T) {
	b := newBench(t)
	p := newProvider(t, b, 0)
	p.ill = once()
	id, v := b.run(oneOutage("silence", "timeout: 1s", "retry: {attempts: 5, delay: 1ms}"), nil)
	if got := strings.Join(p.effects["silence/+++"], " "); v.Status != protocol.Done || got != "0 1 2 3 4" {
		t.Errorf("%s: %s, %s", v.Status, v.Reason, got)
	}
	b.rebuilt(id)
}

// A wait of minutes ends at once when somebody speaks, and the agent hears it; when the run is cancelled; when its process is
// to end; and when its time is over by the clock.
func TestAWaitForAProviderEndsAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		act    func(b *bench, id protocol.RunID, stop func()) error
		status protocol.RunStatus
		reason string
	}{
		"words": {func(b *bench, id protocol.RunID, _ func()) error {
			return b.e.Message(b.t.Context(), id, "anna", "it is well again")
		}, protocol.Done, ""},
		"cancel": {func(b *bench, id protocol.RunID, _ func()) error {
			return b.e.Cancel(b.t.Context(), id, "anna", "enough")
		}, protocol.Cancelled, ""},
		"signal": {func(_ *bench, _ protocol.RunID, stop func()) error { stop(); return nil }, protocol.Suspended, "interrupt"},
		"clock":  {func(*bench, protocol.RunID, func()) error { return nil }, protocol.Suspended, "limit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			p := newProvider(t, b, time.Hour)
			var spoken atomic.Bool
			p.ill = func(string) bool { return !spoken.Load() }
			yaml := oneOutage("429 later")
			if name == "clock" {
				yaml = strings.Replace(yaml, "duration: 1m", "duration: 5s", 1)
			}
			id, _, err := b.e.Begin(t.Context(), engine.Launch{Program: b.load(yaml), Source: []byte(yaml), Inputs: protocol.JSON("{}"), Workspace: b.dir})
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			acted, held := make(chan error, 1), atomic.Bool{}
			b.e.Watch = func(n api.Update) {
				if h, ok := n.Data.(protocol.Held); ok && h.Limit == protocol.HeldByOutage {
					spoken.Store(name == "words")
					if !held.Swap(true) {
						go func() { acted <- c.act(b, id, stop) }()
					}
				}
			}
			st, err := b.e.Drive(ctx, id, engine.DriveOptions{By: "test"})
			if err != nil && (name != "signal" || !errors.Is(err, context.Canceled)) || ctx.Err() != nil && name != "signal" {
				t.Fatal(err)
			}
			if !held.Load() {
				t.Fatalf("it was not held: %s, %s", st.Status(), st.Reason())
			}
			if err := <-acted; err != nil {
				t.Error(err)
			}
			if st.Status() != c.status || string(st.SuspendedBy()) != c.reason {
				t.Errorf("the run is %s by %q", st.Status(), st.SuspendedBy())
			}
			if got := strings.Join(p.effects["429 later/+++"], " "); got != "0 1 2" && name != "words" || name == "words" && got != "0 1 2 3 4" {
				t.Errorf("the calls that ran are %s", got)
			}
			if words := fmt.Sprintf("%s", p.before["429 later/+++"]); strings.Contains(words, "it is well again") != (name == "words") {
				t.Errorf("the agent was sent %s", words)
			}
			if holds, over := len(b.has(id, protocol.EvHeld)), len(b.has(id, protocol.EvReleased)); holds == 0 || holds != over && name != "cancel" { // a run that was cancelled tells no more
				t.Errorf("%d holds, %d of them over", holds, over)
			}
			b.rebuilt(id)
		})
	}
}
