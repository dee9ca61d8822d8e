package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/internal/wire"
	"wf/agentkit/model"
	"wf/agentkit/ratelimit"
	"wf/protocol/lazy"
	"wf/roles"
)

// Prefix is how the name of a model of this package begins: openai/MODEL.
const Prefix = "openai/"

// BaseURL is that of OpenAI itself.
const BaseURL = "https://api.openai.com/v1"

// Config is where a model is reached. The zero Config is OpenAI itself without a key.
type Config struct {
	BaseURL string        // with /v1; "" is https://api.openai.com/v1
	Key     string        // "" sends none: local servers want none
	Idle    time.Duration // silence that ends a call; 0 is 10 minutes before the answer, 5 within it
	Marks   bool          // the server takes explicit cache marks; api.openai.com decides by the model
	Llama   bool          // the server is a llama-server: id_slot and speculative options reach it
	Slots   int           // of a llama-server with --slot-save-path: how many to save and restore, 0 for none

	KeyFrom string             // the variable that the key comes from, for messages; "" is not known
	Account *ratelimit.Account // whose limits hold; nil has none
}

// Model implements llms.Model.
type Model struct {
	name, id string
	url, key string
	official bool
	nine     bool // the server takes ids of calls with nine letters and digits alone
	marks    bool
	keyed    bool // requests carry prompt_cache_key
	llama    bool
	slots    *slotCache // nil for none
	idle     time.Duration
	keyFrom  string
	account  *ratelimit.Account
}

// Open makes a model named openai/MODEL from OPENAI_BASE_URL and OPENAI_API_KEY. With neither
// it is an error wrapping protocol.ErrModel that says what to do.
func Open(name string) (*Model, error) {
	base, key, err := wire.FromEnvironment("OPENAI", "model "+name, "of your own, for example http://127.0.0.1:8080/v1", "another model with --model")
	if err != nil {
		return nil, err
	}
	return New(name, strings.TrimPrefix(name, Prefix), Config{BaseURL: base, Key: key, KeyFrom: "OPENAI_API_KEY"})
}

// New makes a model: name is what wf calls it, id what the server does.
func New(name, id string, c Config) (*Model, error) {
	roles.Conceal("model key", c.Key)
	base := cmp.Or(c.BaseURL, BaseURL)
	u, err := wire.Base("model "+name, base, "https://HOST/v1", "OPENAI_BASE_URL")
	if err != nil {
		return nil, err
	}
	m := &Model{name: name, id: id, url: wire.Below(u, "chat/completions"), key: c.Key, idle: c.Idle, account: c.Account, keyFrom: c.KeyFrom}
	m.llama, m.marks = c.Llama, c.Marks
	if c.Llama && c.Slots > 0 {
		m.slots = &slotCache{root: strings.TrimSuffix(strings.TrimRight(base, "/"), "/v1"), key: c.Key, account: c.Account, all: make([]slot, c.Slots)}
	}
	m.official = u.Hostname() == "api.openai.com"
	m.nine = strings.HasSuffix(u.Hostname(), ".mistral.ai") // "Tool call id … must be a-z, A-Z, 0-9, with a length of 9"
	m.keyed = m.official || m.marks || loopback(u.Hostname())
	return m, nil
}

// loopback reports whether a host is this machine: its engines pass over what they do not know,
// and a proxy hands it on. Elsewhere there are servers that refuse it.
func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// self names the address and the model that what was said belongs to, without telling where that is.
func (m *Model) self() string { return wire.Self(m.url, m.id) }

// Sources are the address, and what the server calls the model. Which files a server has behind that name it does not tell.
func (m *Model) Sources(model.Request) []model.Source {
	return []model.Source{{Name: "endpoint", Value: wire.Public(m.url)}, {Name: "name of the model at its endpoint", Value: m.id}}
}

// Call is the older form of GenerateContent.
func (m *Model) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, m, prompt, options...)
}

// GenerateContent makes one streamed request. Failures are *model.Error, but for that of ctx,
// which is returned as it is; with one, the response is what was used of an answer that had begun.
func (m *Model) GenerateContent(ctx context.Context, messages []llms.MessageContent, options ...llms.CallOption) (res *llms.ContentResponse, err error) {
	opts := model.OptionsOf(options)
	request, _ := model.RequestFrom(ctx)
	body, prefixes, err := m.body(messages, opts, request)
	if err != nil {
		return nil, &model.Error{Class: model.Invalid, Message: fmt.Sprintf("model %s: %v", m.name, err), Err: err}
	}

	s := &stream{name: m.name, self: m.self(), opts: opts}
	if len(prefixes) > 0 {
		h := m.slots.take(ctx, prefixes)
		defer func() { m.slots.give(context.WithoutCancel(ctx), h, err == nil) }()
		if h != nil {
			body = append(body[:len(body)-1], fmt.Sprintf(`,"id_slot":%d}`, h.id)...)
		}
	}
	header := map[string]string{"Authorization": wire.Bearer(m.key), "Accept": "text/event-stream"}
	call := wire.Call{Name: m.name, URL: m.url, Header: header, Body: body, Idle: m.idle, KeyFrom: m.keyFrom,
		Account: m.account, Used: func() int64 { return s.counts().Tokens() }, Clock: &s.clock}
	if m.account != nil {
		call.Most = mostOf(body)
	}
	if err := call.Do(ctx, s.read); err != nil {
		return model.Begun(s.counts(), &s.clock), err
	}
	return s.response(), nil
}

// body is the request, in a fixed order: the same call gives the same bytes. prefixes are what
// a slot of the server may hold of it; none where the server, or the params, choose the slot.
func (m *Model) body(conversation []llms.MessageContent, opts *llms.CallOptions, r model.Request) (body []byte, prefixes []string, err error) {
	messages, prompt, err := wireMessages(conversation, r, server{self: m.self(), nine: m.nine})
	if err != nil {
		return nil, nil, err
	}
	params, err := wire.ParamsOf(opts, r, "model", "messages", "tools", "stream", "stream_options", "prompt_cache_key")
	if err != nil {
		return nil, nil, err
	}
	foreignParams(params, opts, r)
	own, err := params.TakeEngine()
	if err != nil {
		return nil, nil, err
	}
	choice, err := params.TakeToolChoice(opts)
	if err != nil {
		return nil, nil, err
	}
	if r.Summary && len(opts.Tools) > 0 {
		choice = wire.ToolChoice{Mode: "none"} // here the choice is no part of the cached prefix
	}
	if m.slots != nil && own["id_slot"] == nil {
		if prefixes, err = prefixesOf(m.id, opts.Tools, messages[:prompt]); err != nil {
			return nil, nil, err
		}
	}
	if m.marked() {
		mark(messages[:prompt])
	}
	var o wire.Object
	o.Add("model", m.id)
	o.Add("messages", messages)
	if len(opts.Tools) > 0 {
		o.Add("tools", opts.Tools)
	}
	if c := toolChoice(choice); c != nil {
		o.Add("tool_choice", c)
	}
	params.AddTo(&o)
	if m.llama {
		own.AddTo(&o)
	}
	if m.keyed && r.CacheKey != "" {
		o.Add("prompt_cache_key", r.CacheKey)
	}
	o.Add("stream", true)
	o.Add("stream_options", json.RawMessage(`{"include_usage":true}`))
	body, err = o.Bytes()
	return body, prefixes, err
}

// mostOf is how many tokens the answer to a request has at most, 0 where it does not say.
func mostOf(body []byte) int64 {
	var bounds struct {
		Tokens     int64 `json:"max_tokens"`
		Completion int64 `json:"max_completion_tokens"`
	}
	if json.Unmarshal(body, &bounds) != nil {
		return 0 // the server will say what is wrong with it
	}
	return max(bounds.Tokens, bounds.Completion)
}

// marking are the models of OpenAI that read a prefix only up to a mark.
var marking = lazy.Regexp(`^gpt-(5\.([6-9]|[1-9][0-9])|[6-9]|[1-9][0-9])`)

// marked reports whether the server takes explicit cache marks.
func (m *Model) marked() bool { return m.marks || m.official && marking().MatchString(m.id) }

// mark ends a reusable prefix at the system message and at every U_i: the marks of earlier
// visits stay where they were.
func mark(prompt []message) {
	for i := range prompt {
		text, ok := prompt[i].Content.(string)
		if ok && text != "" && (prompt[i].Role == "system" || prompt[i].Role == "user") {
			prompt[i].Content = []part{{Type: "text", Text: text, Mark: &breakpoint{"explicit"}}}
		}
	}
}
