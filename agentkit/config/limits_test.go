package config_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/config"
	"wf/agentkit/model"
	"wf/agentkit/modeltest"
	"wf/agentkit/ratelimit"
	"wf/files/filestest"
)

// look waits until what a call noted is written down, and gives the window of a provider.
func look(t *testing.T, c *config.Loaded, provider string, want func(ratelimit.Status) bool) ratelimit.Status {
	t.Helper()
	a, err := c.Account(provider)
	if err != nil || a == nil {
		t.Fatalf("the account of %s: %v, %v", provider, a, err)
	}
	var s ratelimit.Status
	err = filestest.Await(t.Context(), c.Limits(), func() bool {
		if s, err = a.Look(); err != nil {
			t.Fatal(err)
		}
		return want(s)
	})
	if err != nil {
		t.Fatalf("the window of %s holds %+v: %v", provider, s, err)
	}
	return s
}

func settled(s ratelimit.Status) bool { return s.InFlight == 0 }

// Calls of both wires, and embeddings, count in the window of their account, with the tokens that they used.
func TestEveryCallOfAProviderAsksForItsLimits(t *testing.T) {
	s := modeltest.Start(t, modeltest.Text("hi"), modeltest.Text("hi"), modeltest.Text("hi"))
	t.Setenv("OPENAI_BASE_URL", s.URL)
	t.Setenv("OPENAI_API_KEY", "sesame")
	const limits = "limits: {requests: 50, tokens: 100000, in_flight: 3}"
	c := load(t, places(t, "providers:\n  local: {wire: openai, base_url: "+s.URL+", "+limits+"}\n  other: {wire: anthropic, base_url: "+s.Root+"/x, "+limits+"}\n  openai: {"+limits+"}\n", ""))
	for _, name := range []string{"local/a", "other/b", "openai/c"} {
		if err := say(t, c, name); err != nil {
			t.Fatal(err)
		}
		provider, _, _ := strings.Cut(name, "/")
		if got := look(t, c, provider, settled); got.Requests != 1 || got.Tokens == 0 || got.Tokens > 2000 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	embedding := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"data":[{"index":0,"embedding":[1,2]}],"usage":{"total_tokens":7}}`)
	}))
	defer embedding.Close()
	c = load(t, places(t, "providers:\n  e: {wire: openai, base_url: "+embedding.URL+"/v1, "+limits+"}\n", ""))
	e, err := c.Embedder("e/m")
	if err == nil {
		_, err = e.EmbedQuery(t.Context(), "hello")
	}
	if got := look(t, c, "e", settled); err != nil || got.Requests != 1 || got.Tokens != 7 {
		t.Errorf("an embedding: %+v, %v", got, err)
	}
}

// A call beyond the limit waits; one that is given up while it waits was not sent.
func TestACallBeyondTheLimitIsNotSent(t *testing.T) {
	s := modeltest.Start(t, modeltest.Text("hi"))
	c := load(t, places(t, "providers: {local: {wire: openai, base_url: "+s.URL+", limits: {requests: 1}}}\n", ""))
	if err := say(t, c, "local/x"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	m, err := c.Registry().Open("local/x", ".")
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan error)
	go func() {
		_, err := m.GenerateContent(ctx, []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, "hi")})
		over <- err
	}()
	look(t, c, "local", func(s ratelimit.Status) bool { return len(s.Waiting) == 1 })
	cancel()
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	got := look(t, c, "local", func(s ratelimit.Status) bool { return len(s.Waiting) == 0 })
	if got.Requests != 1 || len(s.Requests()) != 1 {
		t.Errorf("%+v, the server saw %d requests", got, len(s.Requests()))
	}
}

// A refusal gives its tokens back, and its Retry-After holds all calls of the account. A call that no server was
// reached for does not count.
func TestWhatFailedIsSettled(t *testing.T) {
	s := modeltest.Start(t, modeltest.Answer{Status: 429, Header: map[string]string{"Retry-After": "33"}, Body: `{"error":{"message":"slow down"}}`})
	none, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	none.Close()
	c := load(t, places(t, "providers:\n  local: {wire: openai, base_url: "+s.URL+", limits: {tokens: 9000}}\n  none: {wire: openai, base_url: 'http://"+none.Addr().String()+"/v1', limits: {requests: 9}}\n", ""))
	err = say(t, c, "local/x")
	if e := (*model.Error)(nil); !errors.As(err, &e) || e.Class != model.RateLimit {
		t.Fatalf("got %v", err)
	}
	if got := look(t, c, "local", settled); got.Requests != 1 || got.Tokens != 0 || got.Closed <= 0 || got.Closed > 33*time.Second {
		t.Errorf("refused: %+v", got)
	}
	if err := say(t, c, "none/x"); err == nil {
		t.Fatal("a server answers")
	}
	if got := look(t, c, "none", settled); got.Requests != 0 {
		t.Errorf("not sent: %+v", got)
	}
}

// A request that meets a connection which its server has closed is sent once more, and asks once more.
func TestASecondSendingAsksAsWell(t *testing.T) {
	var calls atomic.Int32
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 2 { // read, and dropped without a word
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				conn.Close()
			}
			return
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"choices":[{"message":{"content":"ok"},"finish_reason":"stop"}]}`)
	}))
	defer h.Close()
	c := load(t, places(t, "providers: {local: {wire: openai, base_url: "+h.URL+"/v1, limits: {requests: 9}}}\n", ""))
	for range 2 {
		if err := say(t, c, "local/x"); err != nil {
			t.Fatal(err)
		}
	}
	if got := look(t, c, "local", settled); got.Requests != 3 || calls.Load() != 3 {
		t.Errorf("%+v, %d calls", got, calls.Load())
	}
}

// What a project calls an account of the user, it stays within the user's limits, and may lower them once it is
// trusted.
func TestAProjectMayOnlyLowerLimits(t *testing.T) {
	t.Setenv("MY_KEY", "sesame")
	const user = "providers: {mine: {wire: openai, base_url: 'https://models.example/v1', key_env: MY_KEY, limits: {requests: 60, in_flight: 5}}}\n"
	for name, c := range map[string]struct {
		limits    string
		trust     bool
		want      ratelimit.Limits
		ofProject ratelimit.Limits
	}{
		"none":               {"", true, ratelimit.Limits{Requests: 60, InFlight: 5}, ratelimit.Limits{Requests: 60, InFlight: 5}},
		"higher":             {", limits: {requests: 600}", true, ratelimit.Limits{Requests: 60, InFlight: 5}, ratelimit.Limits{Requests: 60, InFlight: 5}},
		"lower":              {", limits: {requests: 6}", true, ratelimit.Limits{Requests: 6, InFlight: 5}, ratelimit.Limits{Requests: 6, InFlight: 5}},
		"lower, not trusted": {", limits: {requests: 6}", false, ratelimit.Limits{Requests: 60, InFlight: 5}, ratelimit.Limits{}},
	} {
		t.Run(name, func(t *testing.T) {
			p := places(t, user, "providers: {theirs: {wire: openai, base_url: 'https://MODELS.example', key_env: MY_KEY"+c.limits+"}}\n")
			if c.trust {
				if err := load(t, p).Trust(); err != nil {
					t.Fatal(err)
				}
			}
			l := load(t, p)
			for provider, want := range map[string]ratelimit.Limits{"mine": c.want, "theirs": c.ofProject} {
				a, err := l.Account(provider)
				if err != nil || a == nil && !want.None() || a != nil && a.Limits != want {
					t.Errorf("%s: %+v, %v", provider, a, err)
				}
			}
		})
	}
	if _, err := config.Load(places(t, "", "providers: {openai: {limits: {requests: 1}}}\n")); !errors.Is(err, config.ErrConfig) {
		t.Errorf("limits of a provider of wf, by a project: %v", err)
	}
}

// A patience is a time, or none; a project cannot set that of a provider of wf.
func TestPatienceOfAProvider(t *testing.T) {
	for text, want := range map[string]time.Duration{"0": 0, `"0"`: 0, "0s": 0, "90s": 90 * time.Second, "1h30m": 90 * time.Minute, "-1s": -1, "5": -1, "1.5": -1, "soon": -1, "[]": -1} {
		for _, provider := range []string{"openai: {patience: %s}", "mine: {wire: openai, patience: %s}"} {
			c, err := config.Parse("c", "providers:\n  "+fmt.Sprintf(provider, text)+"\n")
			name, _, _ := strings.Cut(provider, ":")
			if p := c.Providers[name].Patience; (err == nil) != (want >= 0) || err == nil && (p == nil || time.Duration(*p) != want) {
				t.Errorf("%s: %v, %v", text, p, err)
			}
		}
	}
	_, err := config.Load(places(t, "", "providers: {openai: {patience: 1h}}\n"))
	if !errors.Is(err, config.ErrConfig) || !strings.Contains(err.Error(), "its patience") {
		t.Errorf("patience of a provider of wf, by a project: %v", err)
	}
}

func TestMistakesInLimitsAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		"openai: {limits: {requests: -1}}":            "whole numbers from 1",
		"openai: {limits: {rpm: 1}}":                  `unknown field "rpm"`,
		"openai: {limits: {requests: many}}":          "providers.openai.limits.requests wants a whole number",
		"openai: {limits: {requests: 1}, context: 9}": "limits and patience alone",
		"openai: {}":                    "limits and patience alone",
		"mine: {limits: {requests: 1}}": "want openai or anthropic",
		"openai: {base_url: 'http://x/v1', limits: {tokens: 1}}": "limits and patience alone",
	} {
		if _, err := config.Parse("c", "providers:\n  "+text+"\n"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Without limits nothing is kept, and without a state directory limits are an error.
func TestWithoutLimitsNothingIsKept(t *testing.T) {
	s := modeltest.Start(t, modeltest.Text("hi"))
	p := places(t, "providers: {local: {wire: openai, base_url: "+s.URL+"}}\n", "")
	c := load(t, p)
	if err := say(t, c, "local/x"); err != nil {
		t.Fatal(err)
	}
	if a, err := c.Account("local"); a != nil || err != nil {
		t.Errorf("%v, %v", a, err)
	}
	if _, err := os.Stat(filepath.Join(p.State, "limits")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something is kept: %v", err)
	}
	p = places(t, "providers: {local: {wire: openai, base_url: "+s.URL+", limits: {requests: 1}}}\n", "")
	p.State = ""
	if err := say(t, load(t, p), "local/x"); !errors.Is(err, config.ErrConfig) {
		t.Errorf("got %v", err)
	}
}
