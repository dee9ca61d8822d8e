package anthropic

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/internal/wire"
	"wf/agentkit/model"
	"wf/agentkit/ratelimit"
	"wf/roles"
)

// Prefix is how the name of a model of this package begins: anthropic/MODEL.
const Prefix = "anthropic/"

// BaseURL is that of Anthropic itself.
const BaseURL = "https://api.anthropic.com"

// DefaultMaxTokens bounds an answer where the params name no max_tokens. A thought counts as a part of it, but for one with a
// budget of its own.
const DefaultMaxTokens = 16_000

const version = "2023-06-01" // header anthropic-version

// Config is where a model is reached. The zero Config is Anthropic itself without a key.
type Config struct {
	BaseURL string        // without /v1; "" is https://api.anthropic.com
	Key     string        // "" sends none
	TTL     string        // of cache marks: 5m or 1h; "" is 5m
	Idle    time.Duration // silence that ends a call; 0 is 10 minutes before the answer, 5 within it

	KeyFrom string             // the variable that the key comes from, for messages; "" is not known
	Account *ratelimit.Account // whose limits hold; nil has none
}

// Model implements llms.Model.
type Model struct {
	name, id string
	url, key string
	strict   bool // the server is Anthropic itself, which takes no thought without its signature
	ttl      string
	idle     time.Duration
	keyFrom  string
	account  *ratelimit.Account
}

// Open makes a model named anthropic/MODEL from ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY. With
// neither it is an error wrapping protocol.ErrModel that says what to do.
func Open(name string) (*Model, error) {
	base, key, err := wire.FromEnvironment("ANTHROPIC", "model "+name, "that speaks the messages API", "another model with --model")
	if err != nil {
		return nil, err
	}
	return New(name, strings.TrimPrefix(name, Prefix), Config{BaseURL: base, Key: key, KeyFrom: "ANTHROPIC_API_KEY"})
}

// New makes a model: name is what wf calls it, id what the server does.
func New(name, id string, c Config) (*Model, error) {
	roles.Conceal("model key", c.Key)
	base := cmp.Or(c.BaseURL, BaseURL)
	u, err := wire.Base("model "+name, base, "https://HOST", "ANTHROPIC_BASE_URL")
	if err != nil {
		return nil, err
	}
	u.Path, u.RawPath = rootOf(u.Path), rootOf(u.RawPath)
	switch c.TTL {
	case "", "5m", "1h":
	default:
		return nil, model.Unusable("model "+name, "%q is no lifetime of a cache mark (want 5m or 1h)", c.TTL)
	}
	return &Model{name: name, id: id, url: wire.Below(u, "v1/messages"), strict: u.Hostname() == "api.anthropic.com",
		key: c.Key, ttl: c.TTL, idle: c.Idle, account: c.Account, keyFrom: c.KeyFrom}, nil
}

// self names the address and the model that what was said belongs to.
func (m *Model) self() string { return wire.Self(m.url, m.id) }

// rootOf is the path of a server without that of the API's version.
func rootOf(path string) string { return strings.TrimSuffix(strings.TrimRight(path, "/"), "/v1") }

// Sources are the address, and what the server calls the model.
func (m *Model) Sources(model.Request) []model.Source {
	return []model.Source{{Name: "endpoint", Value: wire.Public(m.url)}, {Name: "name of the model at its endpoint", Value: m.id}}
}

// Call is the older form of GenerateContent.
func (m *Model) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, m, prompt, options...)
}

// GenerateContent makes one streamed request. Failures are *model.Error, but for that of ctx,
// which is returned as it is; with one, the response is what was used of an answer that had begun.
func (m *Model) GenerateContent(ctx context.Context, messages []llms.MessageContent, options ...llms.CallOption) (*llms.ContentResponse, error) {
	opts := model.OptionsOf(options)
	request, _ := model.RequestFrom(ctx)
	body, sent, err := m.body(messages, opts, request)
	if err != nil {
		return nil, &model.Error{Class: model.Invalid, Message: fmt.Sprintf("model %s: %v", m.name, err), Err: err}
	}
	s := &stream{name: m.name, self: m.self(), strict: m.strict, ttl: sent.ttl, opts: opts}
	header := map[string]string{
		"X-Api-Key": m.key, "Anthropic-Version": version, "Anthropic-Beta": strings.Join(sent.betas, ","), "Accept": "text/event-stream",
	}
	call := wire.Call{Name: m.name, URL: m.url, Header: header, Body: body, Idle: m.idle, KeyFrom: m.keyFrom,
		Account: m.account, Most: int64(sent.most), Used: func() int64 { return s.usage.counts(s.ttl).Tokens() }, Clock: &s.clock}
	if err := call.Do(ctx, s.read); err != nil {
		return model.Begun(s.usage.counts(s.ttl), &s.clock), err
	}
	return s.response()
}
