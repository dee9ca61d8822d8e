package config_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/config"
	"wf/agentkit/mcp"
	"wf/agentkit/model"
	"wf/agentkit/modeltest"
	"wf/protocol"
)

// places writes the configs of a user and a project; "" is none.
func places(t *testing.T, user, project string) config.Places {
	t.Helper()
	dir := t.TempDir()
	p := config.Places{Project: filepath.Join(dir, "work", ".wf"), User: filepath.Join(dir, "config"), State: filepath.Join(dir, "state")}
	for at, text := range map[string]string{p.User: user, p.Project: project} {
		if err := os.MkdirAll(at, 0o755); err != nil {
			t.Fatal(err)
		}
		if text == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(at, config.FileName), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func load(t *testing.T, p config.Places) *config.Loaded {
	t.Helper()
	c, err := config.Load(p)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// say makes a call to a model of the config.
func say(t *testing.T, c *config.Loaded, name string) error {
	t.Helper()
	m, err := c.Registry().Open(name, ".")
	if err != nil {
		return err
	}
	_, err = m.GenerateContent(t.Context(), []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, "hi")})
	return err
}

func TestProvidersOfBothWiresAreReached(t *testing.T) {
	s := modeltest.Start(t, modeltest.Text("hi"), modeltest.Text("hi"))
	t.Setenv("LOCAL_KEY", "sesame")
	c := load(t, places(t, "providers:\n  local: {wire: openai, base_url: "+s.URL+", key_env: LOCAL_KEY, context: 32768, prices: {input: 5, output: 7}}\n  other: {wire: anthropic, base_url: "+s.Root+"}\n", ""))
	for _, name := range []string{"local/some/model", "other/claude-x"} {
		if err := say(t, c, name); err != nil {
			t.Fatal(err)
		}
	}
	r := s.Requests()
	if r[0].Header.Get("Authorization") != "Bearer sesame" || !strings.Contains(string(r[0].Body), `"model":"some/model"`) {
		t.Errorf("sent %s with %v", r[0].Body, r[0].Header)
	}
	if r[1].Path != "/v1/messages" || r[1].Header.Get("X-Api-Key") != "" {
		t.Errorf("asked %s with %v", r[1].Path, r[1].Header)
	}
	if c.Window("local/x") != 32768 || c.Window("openai/x") != 0 {
		t.Error("the window is not that of the config")
	}
	n := int64(1)
	if cost := c.Table().Cost(protocol.Usage{Model: "local/some/model", Input: &n, Output: &n}); cost == nil || *cost != 12 {
		t.Errorf("cost %v", cost)
	}
}

// A server that says a word and then nothing is given up after the provider's idle_timeout.
func TestF16SilenceEndsACallAfterTheProvidersTime(t *testing.T) {
	quiet := modeltest.Answer{Say: []modeltest.Piece{{Text: "hm"}}, Stall: true}
	s := modeltest.Start(t, quiet, quiet)
	c := load(t, places(t, "providers:\n  local: {wire: openai, base_url: "+s.URL+", idle_timeout: 30ms}\n  other: {wire: anthropic, base_url: "+s.Root+", idle_timeout: 30ms}\n", ""))
	for _, name := range []string{"local/x", "other/x"} {
		err := say(t, c, name)
		if e := (*model.Error)(nil); !errors.As(err, &e) || e.Class != model.Timeout || !strings.Contains(err.Error(), "nothing was heard for 30ms") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestAProjectGetsNoKeyBeforeItIsTrusted(t *testing.T) {
	s := modeltest.Start(t, modeltest.Text("hi"))
	t.Setenv("MY_KEY", "sesame")
	p := places(t, "", "providers: {evil: {wire: openai, base_url: "+s.URL+", key_env: MY_KEY}}\nmcp: {files: {command: [rm, -rf]}}\n")
	c := load(t, p)
	err := say(t, c, "evil/x")
	if !errors.Is(err, protocol.ErrModel) || !strings.Contains(err.Error(), "wf trust") || !strings.Contains(err.Error(), "MY_KEY") {
		t.Errorf("got %v", err)
	}
	files := protocol.MCPServer{Name: "files", Command: []string{"rm", "-rf"}}
	if trusted, err := c.TrustsServer(files, mcp.Place{}); trusted || err != nil {
		t.Errorf("a program is trusted: %v, %v", trusted, err)
	}
	if wants, err := c.Wants(); err != nil || len(wants) != 2 {
		t.Errorf("wants %v, %v", wants, err)
	}

	if err := c.Trust(); err != nil {
		t.Fatal(err)
	}
	c = load(t, p)
	if err := say(t, c, "evil/x"); err != nil || !c.Project.Trusted {
		t.Errorf("after trust: %v", err)
	}
	if trusted, err := c.TrustsServer(files, mcp.Place{}); !trusted || err != nil {
		t.Errorf("after trust the program: %v, %v", trusted, err)
	}
	if s.Requests()[0].Header.Get("Authorization") != "Bearer sesame" {
		t.Error("the key was not sent")
	}

	if err := c.Distrust(); err != nil {
		t.Fatal(err)
	}
	if load(t, p).Project.Trusted {
		t.Error("trust was not taken back")
	}
}

// Trust is in each entry: what does not change it asks nothing, wherever the file lies.
func TestTrustInAConfigIsInItsEntries(t *testing.T) {
	const text = `model: away/x
providers:
  away: {wire: openai, base_url: 'https://away.example/v1', key_env: MY_KEY}
mcp:
  files: {command: [/opt/files, --all], env: {LEVEL: "2", TOKEN: $A_KEY}}
  web: {url: 'https://web.example/mcp', headers_env: {Authorization: WEB_KEY}}
sandbox: {read: [/srv/data]}
allow_models: [away/*]
`
	p := places(t, "", text)
	if err := load(t, p).Trust(); err != nil {
		t.Fatal(err)
	}
	for change, c := range map[string]struct {
		from, to string
		asks     config.Power
	}{
		"nothing":                {"", "", ""},
		"a comment":              {"model:", "# of ours\nmodel:", ""},
		"a price":                {"model:", "prices: {a/b: {input: 1, output: 1}}\nmodel:", config.SetPrices},
		"a window":               {"key_env: MY_KEY", "key_env: MY_KEY, context: 9", ""},
		"the order":              {`LEVEL: "2", TOKEN: $A_KEY`, `TOKEN: $A_KEY, LEVEL: "2"`, ""},
		"the default model":      {"model: away/x", "model: away/y", config.ChooseDefault},
		"where a provider is":    {"away.example", "evil.example", config.SendPrompts},
		"the key of a provider":  {"MY_KEY", "YOUR_KEY", config.SendPrompts},
		"an argument":            {"--all", "--none", config.StartServer},
		"a value of env":         {`"2"`, `"3"`, config.StartServer},
		"a secret of env":        {"$A_KEY", "$B_KEY", config.StartServer},
		"a url":                  {"web.example", "evil.example", config.StartServer},
		"a header":               {"WEB_KEY", "MY_KEY", config.StartServer},
		"the walls of a server":  {"--all]", "--all], sandbox: off", config.StartServer},
		"what commands may read": {"/srv/data", "/srv", config.OpenWalls},
		"models for clients":     {"[away/*]", "['*']", config.OfferModels},
	} {
		t.Run(change, func(t *testing.T) {
			elsewhere := places(t, "", strings.Replace(text, c.from, c.to, 1))
			elsewhere.State = p.State
			l := load(t, elsewhere)
			wants, err := l.Wants()
			if err != nil {
				t.Fatal(err)
			}
			var asks []config.Power
			for _, w := range wants {
				if !w.Trusted {
					asks = append(asks, w.Power)
				}
			}
			if want := slices.DeleteFunc([]config.Power{c.asks}, func(p config.Power) bool { return p == "" }); !slices.Equal(asks, want) || l.Project.Trusted != (c.asks == "") {
				t.Errorf("asks for %v, want %v", asks, want)
			}
		})
	}
}

// A word for the bytes of a file, as it was kept before, is none for its entries.
func TestTheTrustOfAWholeFileCountsForNothing(t *testing.T) {
	p := places(t, "", "mcp: {files: {command: [rm, -rf]}}\n")
	path := filepath.Join(p.Project, config.FileName)
	name := sha256.Sum256([]byte(path))
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(p.State, "trusted", hex.EncodeToString(name[:16]))
	if err := os.MkdirAll(filepath.Dir(old), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(old, fmt.Appendf(nil, "%x  %s\n", sha256.Sum256(text), path), 0o600); err != nil {
		t.Fatal(err)
	}
	if load(t, p).Project.Trusted {
		t.Error("it counts")
	}
}

// A word for a server within walls is none for it outside of them, once what its command names is gone.
func TestTrustWithinWallsIsNoneOutsideOfThem(t *testing.T) {
	p := places(t, "", "mcp: {hello: {command: [npx, local]}}")
	bin := filepath.Join(filepath.Dir(p.Project), "node_modules", ".bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "local"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	trusted := func(want bool) {
		t.Helper()
		if got := load(t, p).Project.Trusted; got != want {
			t.Errorf("trusted: %v", got)
		}
	}
	if err := load(t, p).Trust(); err != nil {
		t.Fatal(err)
	}
	trusted(true)
	if err := os.RemoveAll(bin); err != nil { // npx would download one of that name, and run it as the user
		t.Fatal(err)
	}
	trusted(false)
	if err := load(t, p).Trust(); err != nil {
		t.Fatal(err)
	}
	trusted(true)
}

// The project's server takes the place of the user's once it is trusted, and not before.
func TestAServerOfTheUserIsNotReplacedBeforeTrust(t *testing.T) {
	p := places(t, "mcp: {files: {command: [/opt/mine]}}", "mcp: {files: {command: [/opt/theirs]}, more: {command: [/opt/more]}}")
	commands := func() (out []string) {
		servers, err := load(t, p).Servers(filepath.Dir(p.Project), filepath.Dir(p.Project))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range servers {
			out = append(out, s.Command...)
		}
		return out
	}
	if d := cmp.Diff([]string{"/opt/mine", "/opt/more"}, commands()); d != "" {
		t.Error(d)
	}
	if err := load(t, p).Trust(); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"/opt/theirs", "/opt/more"}, commands()); d != "" {
		t.Error(d)
	}
}

func TestAProjectReplacesNoProviderBeforeItIsTrusted(t *testing.T) {
	const theirs = "providers: {mine: {wire: openai, base_url: 'http://elsewhere.invalid/v1'}, openai: {wire: openai, base_url: 'http://elsewhere.invalid/v1'}, free: {wire: openai, base_url: 'http://127.0.0.1:1/v1'}}"
	c := load(t, places(t, "providers: {mine: {wire: openai}}", theirs))
	for _, name := range []string{"mine/x", "openai/x"} {
		if err := say(t, c, name); err == nil || !strings.Contains(err.Error(), "wf trust") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if err := say(t, c, "free/x"); err == nil || strings.Contains(err.Error(), "wf trust") {
		t.Errorf("a server without a key: got %v", err)
	}
}

// A project that was just cloned cannot have prompts go where it likes: neither by the default model,
// nor by a provider that a workflow of it names.
func TestF36AProjectSendsNoPromptElsewhereBeforeItIsTrusted(t *testing.T) {
	none := func(string) (string, bool) { return "", false }
	for _, elsewhere := range []string{"https://helper.example/v1", "http://localhost:8080/v1", "http://127.0.0.1.example/v1", "http://10.0.0.7/v1", "http://[::2]:80/v1"} {
		p := places(t, "model: mine/x\nproviders: {mine: {wire: openai, base_url: 'http://127.0.0.1:9/v1'}}",
			"model: helper/x\nproviders: {helper: {wire: openai, base_url: '"+elsewhere+"'}}")
		c := load(t, p)
		if _, err := c.Registry().Open("helper/x", "."); err == nil || !strings.Contains(err.Error(), "wf trust") {
			t.Errorf("%s was opened: %v", elsewhere, err)
		}
		if r, err := c.Resolve("coder", nil, nil, none); !errors.Is(err, protocol.ErrModel) || !strings.Contains(protocol.HintOf(err), "wf trust") {
			t.Errorf("%s is the default: %s, %v", elsewhere, r, err)
		}
		if r, err := c.Resolve("coder", []string{"mine/x"}, nil, none); err != nil || r.Models[0] != "mine/x" {
			t.Errorf("the flag counts for nothing: %s, %v", r, err)
		}
		if wants, err := c.Wants(); err != nil || len(wants) != 2 {
			t.Errorf("wants %v, %v", wants, err)
		}
		if err := c.Trust(); err != nil {
			t.Fatal(err)
		}
		c = load(t, p)
		if _, err := c.Registry().Open("helper/x", "."); err != nil {
			t.Errorf("%s after trust: %v", elsewhere, err)
		}
		if r, err := c.Resolve("coder", nil, nil, none); err != nil || r.Models[0] != "helper/x" {
			t.Errorf("the default after trust: %s, %v", r, err)
		}
	}
	for _, here := range []string{"http://127.0.0.1:8080/v1", "http://127.8.9.1/v1", "http://[::1]:8080/v1"} {
		c := load(t, places(t, "", "model: helper/x\nproviders: {helper: {wire: openai, base_url: '"+here+"'}}"))
		if _, err := c.Registry().Open("helper/x", "."); err != nil {
			t.Errorf("%s asks for trust: %v", here, err)
		}
		if r, err := c.Resolve("coder", nil, nil, none); err != nil || r.Models[0] != "helper/x" {
			t.Errorf("%s asks for trust as the default: %s, %v", here, r, err)
		}
	}
	c := load(t, places(t, "", "model: openai/gpt-5"))
	if r, err := c.Resolve("coder", nil, nil, none); err == nil {
		t.Errorf("a project chose a model that the user pays for: %s", r)
	}
}

// A server that was trusted does not hand prompts on.
func TestARedirectOfAProviderIsRefused(t *testing.T) {
	reached := make(chan string, 10)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { reached <- r.URL.Path }))
	defer other.Close()
	s := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer s.Close()
	for _, wire := range []string{"openai", "anthropic"} {
		c := load(t, places(t, "providers: {here: {wire: "+wire+", base_url: '"+s.URL+"'}}", ""))
		if err := say(t, c, "here/x"); err == nil {
			t.Errorf("%s: an answer came", wire)
		}
	}
	if found := config.Probe(t.Context(), []string{s.URL + "/v1"}, time.Minute); len(found) > 0 {
		t.Errorf("found %v", found)
	}
	select {
	case path := <-reached:
		t.Errorf("the other server was asked for %s", path)
	default:
	}
}

func TestResolutionHasAnOrder(t *testing.T) {
	none := func(string) (string, bool) { return "", false }
	key := func(name string) (string, bool) { return "k", name == "OPENAI_API_KEY" }
	with, without := load(t, places(t, "model: [a/b, c/d]", "")), load(t, places(t, "", ""))
	for name, c := range map[string]struct {
		config    *config.Loaded
		flag, own []string
		lookup    func(string) (string, bool)
		want      string
	}{
		"flag":        {with, []string{"f/f"}, []string{"r/r"}, key, "coder: f/f (--model)"},
		"role":        {with, nil, []string{"r/r", "s/s"}, key, "coder: r/r, s/s (workflow)"},
		"config":      {with, nil, nil, key, "coder: a/b, c/d (config "},
		"environment": {without, nil, nil, key, "coder: openai/gpt-5 (environment OPENAI_API_KEY)"},
	} {
		r, err := c.config.Resolve("coder", c.flag, c.own, c.lookup)
		if err != nil || !strings.HasPrefix(r.String(), c.want) {
			t.Errorf("%s: %s, %v", name, r, err)
		}
	}
	_, err := without.Resolve("coder", nil, nil, none)
	if !errors.Is(err, protocol.ErrModel) || strings.Count(protocol.HintOf(err), ";") != 2 {
		t.Errorf("got %v, hint %q", err, protocol.HintOf(err))
	}
}

func TestTheProjectTakesPrecedence(t *testing.T) {
	p := places(t, "model: a/b\nprices: {a/b: {input: 1, output: 1}, c/d: {input: 2, output: 2}}", "model: c/d\nprices: {a/b: {input: 9, output: 9}}")
	if err := load(t, p).Trust(); err != nil {
		t.Fatal(err)
	}
	c := load(t, p)
	if d := cmp.Diff(config.Models{"c/d"}, c.Model); d != "" {
		t.Error(d)
	}
	if c.Prices["a/b"].Input != 9 || c.Prices["c/d"].Input != 2 {
		t.Errorf("prices %+v", c.Prices)
	}
}

func TestBrokenConfigsSayWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"providers: {x: {wire: openai, base_urll: y}}":                 "base_urll",
		"providers: {x: {wire: telepathy}}":                            "telepathy",
		"providers: {x: {wire: openai, base_url: 'ftp://x'}}":          "base_url",
		"providers: {x: {wire: openai, base_url: 'http://u:p@host/'}}": "key_env",
		"providers: {x: {wire: openai, engine: warp}}":                 "warp",
		"providers: {x: {wire: openai, slots: 2}}":                     "llama-server",
		"providers: {a/b: {wire: openai}}":                             "slash",
		"providers: {tape: {wire: openai}}":                            "taken",
		"providers: {x: {wire: anthropic, cache_ttl: 2h}}":             "cache_ttl",
		"providers: {x: {wire: openai, idle_timeout: soon}}":           "want one like 90s",
		"providers: {x: {wire: openai, idle_timeout: 0s}}":             "want one like 90s",
		"providers: {x: {wire: openai, idle_timeout: 5}}":              "90s or 5m",
		"nonsense: 1":  "nonsense",
		"model: {a: 1": "line 2",
		"model: 5":     "model wants the name of a model, or a list of them",

		"prices:\n  openai/x: {input: abc, output: 3}":        "line 2: prices.openai/x.input wants a whole number of micro-dollars per million tokens, got string",
		"prices:\n  openai/x:\n    output: [3]":               "line 3: prices.openai/x.output wants a whole number of micro-dollars per million tokens, got array",
		"prices:\n  openai/x:\n    input: 1.25":               "line 3: prices.openai/x.input wants a whole number of micro-dollars per million tokens ($1.25 is 1250000), got 1.25",
		"prices:\n  a/x: {}\n  openai/x:\n    input: -1":      "line 4: prices.openai/x: -1 is no price in micro-dollars per million tokens",
		"prices: {a/x: 3}":                                    "line 1: prices.a/x wants a mapping, got number",
		"providers: {x: {wire: openai, context: big}}":        "line 1: providers.x.context wants a whole number, got string",
		"providers: {x: {wire: openai, prices: {input: -1}}}": "providers: x: prices: -1 is no price",
		"sandbox:\n  read:\n    - a\n    - {b: 1}":            "line 4: sandbox.read.1 wants a text, got object",
	} {
		_, err := config.Load(places(t, text, ""))
		if !errors.Is(err, config.ErrConfig) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), config.FileName) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

func TestTheConfigOfAnotherUserIsRefused(t *testing.T) {
	p := places(t, "", "model: a/b")
	if os.Geteuid() != 0 {
		t.Skip("only root can give a directory away")
	}
	if err := os.Chown(p.Project, 4711, -1); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(p); !errors.Is(err, config.ErrConfig) || !strings.Contains(err.Error(), "4711") {
		t.Errorf("got %v", err)
	}
}

func TestAMissingKeyIsNamed(t *testing.T) {
	t.Setenv("NO_KEY", "")
	err := say(t, load(t, places(t, "providers: {x: {wire: openai, key_env: NO_KEY}}", "")), "x/y")
	if e := (*model.Error)(nil); !errors.As(err, &e) || e.Class != model.Unavailable || !strings.Contains(err.Error(), "NO_KEY") {
		t.Errorf("got %v", err)
	}
}

func TestAProbeFindsWhoAnswers(t *testing.T) {
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte(`{"data":[{"id":"tiny"},{"id":"big"}]}`))
	}))
	defer h.Close()
	odd := httptest.NewServer(http.NotFoundHandler())
	defer odd.Close()
	got := config.Probe(context.Background(), []string{odd.URL, h.URL, "http://127.0.0.1:1"}, 5*time.Second)
	if d := cmp.Diff([]config.Found{{BaseURL: h.URL, Models: []string{"tiny", "big"}}}, got); d != "" {
		t.Error(d)
	}
}

// A project may come from elsewhere: its config is a file, not a link to another one of the user. The user's
// own may be a link, as files of a home directory often are.
func TestTheConfigOfAProjectIsNoLink(t *testing.T) {
	for _, which := range []string{"project", "user"} {
		p := places(t, "", "")
		other := filepath.Join(t.TempDir(), "other.yaml")
		if err := os.WriteFile(other, []byte("model: script/other.yaml\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		dir := map[string]string{"project": p.Project, "user": p.User}[which]
		if err := os.Symlink(other, filepath.Join(dir, config.FileName)); err != nil {
			t.Fatal(err)
		}
		if l, err := config.Load(p); (err == nil) != (which == "user") || err != nil && !errors.Is(err, config.ErrConfig) || err == nil && len(l.Model) != 1 {
			t.Errorf("a link in place of the config of the %s: %v", which, err)
		}
	}
}
