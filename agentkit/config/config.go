// Package config reads what a person and a project say about models: providers, the default
// model, prices, programs that offer tools.
//
//	$XDG_CONFIG_HOME/wf/config.yaml ──┐
//	nearest .wf/config.yaml upwards ──┴─► Load ─► Config ─► Registry, Resolve, Prices
//
// The project's file takes precedence, entry by entry.
//
// # Trust
//
// A project comes from anywhere. Until its config is trusted (wf trust), it can name
// models and servers that want no key, at a literal address of this machine; it can neither send
// prompts anywhere else, nor send a key of the user to a server
// of its own choice, nor replace a provider the user has, nor set prices, nor start programs, nor open the
// sandbox of agents any further. Trust is in each entry by its own CID (Wants): a change of one asks for that
// one again, and a comment for none. It is kept as a set of Grants in the state directory of the user. A .wf
// directory of another user is refused.
//
// # Not here
//
// Secrets: a config names the variable that holds a key, never the key.
package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"wf/agentkit/price"
	"wf/agentkit/ratelimit"
	"wf/protocol"
	"wf/roles/frontmatter"
)

// ErrConfig is a config that cannot be used; nothing ran.
var ErrConfig = &protocol.Error{Code: "invalid_config", Message: "the config is not valid", Hint: "put it right, or move it away"}

// Config is what one file says, or several together.
type Config struct {
	Model     Models                     `json:"model"` // of roles that name none, tried in order
	Providers map[string]Provider        `json:"providers"`
	Prices    map[string]price.Price     `json:"prices"` // by whole name of a model, or prefix*
	MCP       map[string]json.RawMessage `json:"mcp"`    // servers that offer tools, by name
	Sandbox   Sandbox                    `json:"sandbox"`
	// AllowModels are models that clients of a daemon other than its owner may choose, by whole name or
	// prefix*: besides those that the workflow names, and the default.
	AllowModels []string `json:"allow_models"`
	Defaults    Defaults `json:"defaults"`
	Notify      []Sink   `json:"notify"` // where notifications about runs go

	// ContainerIsSandbox says that this machine is a container with nothing of the user's in it, so that
	// commands may run as they are where they cannot be confined. Only the user can say so.
	ContainerIsSandbox bool `json:"container_is_sandbox"`
	// Retention says after how long runs are deleted. Only the user can say so.
	Retention *Retention `json:"retention"`
	// Store is the store of all projects: an absolute directory, or postgres://…. Only the user can say so.
	Store string `json:"store"`
}

// Defaults are what roles have that say nothing else.
type Defaults struct {
	Sandbox string `json:"sandbox"` // "on" confines the commands of run roles in every workflow
}

// Models is a list that may be written as one name.
type Models []string

// UnmarshalJSON reads a name or a list of names.
func (m *Models) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*m = Models{one}
		return nil
	}
	if json.Unmarshal(b, (*[]string)(m)) != nil {
		return errors.New("model wants the name of a model, or a list of them")
	}
	return nil
}

// Provider is a server of models, NAME/any-model.
type Provider struct {
	Wire     string       `json:"wire"`              // openai or anthropic
	BaseURL  string       `json:"base_url"`          // "" is that of the wire's maker
	KeyEnv   string       `json:"key_env"`           // variable that holds the key, "" is none
	Context  int          `json:"context"`           // window in tokens, 0 is not known
	Engine   string       `json:"engine"`            // llama-server, or "" for no extras
	TTL      string       `json:"cache_ttl"`         // of cache marks on the wire anthropic: 5m (default) or 1h
	Marks    bool         `json:"cache_breakpoints"` // the wire openai takes explicit cache marks
	Idle     Span         `json:"idle_timeout"`      // silence that ends a call, as 90s or 5m; 0 is 10 minutes before an answer, 5 within it
	Patience *Patience    `json:"patience"`          // for which a call waits for a server that is down or busy; missing is 10m
	Slots    int          `json:"slots"`             // of a llama-server with --slot-save-path: save and restore that many
	Price    *price.Price `json:"prices"`            // of all its models

	// Limits hold for all processes of this user on this machine that use its account: its key at its URL.
	Limits ratelimit.Limits `json:"limits"`

	From string `json:"-"` // path of the file
}

// BuiltIn reports whether an entry is of a provider of this binary, which the environment reaches, and gives it limits
// and patience alone.
func (p Provider) BuiltIn() bool { return p.Wire == "" }

// Span is a time that is written as 90s or 5m.
type Span time.Duration

// UnmarshalJSON reads a time of more than nothing.
func (s *Span) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return fmt.Errorf("a time is written as 90s or 5m, not %s", b)
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return fmt.Errorf("%q is no time (want one like 90s or 5m)", text)
	}
	*s = Span(d)
	return nil
}

// Patience is a time that is written as 90s or 5m, or 0.
type Patience time.Duration

// UnmarshalJSON reads a time, of nothing too.
func (p *Patience) UnmarshalJSON(b []byte) error {
	if text := string(b); text == "0" || text == `"0"` || text == `"0s"` {
		*p = 0
		return nil
	}
	return (*Span)(p).UnmarshalJSON(b)
}

// The wires and engines there are.
const (
	WireOpenAI    = "openai"
	WireAnthropic = "anthropic"
	EngineLlama   = "llama-server"
)

// Parse reads one file; name is for messages.
func Parse(name, text string) (Config, error) {
	bad := func(err error) error {
		return fmt.Errorf("%s: %w", name, ErrConfig.With("", "%v", err))
	}
	var c Config
	if strings.TrimSpace(text) == "" {
		return c, nil
	}
	raw, err := frontmatter.Fields(text)
	if err != nil {
		return c, bad(errors.New(strings.TrimPrefix(err.Error(), "the fields, ")))
	}
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		return c, bad(mistake(text, raw, err))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Prices)) {
		if err := c.Prices[name].Check(); err != nil {
			return c, bad(at(text, []string{"prices", name}, fmt.Errorf("prices.%s: %w", name, err)))
		}
	}
	if c.Defaults.Sandbox != "" && c.Defaults.Sandbox != protocol.SandboxOn {
		return c, bad(at(text, []string{"defaults", "sandbox"}, fmt.Errorf("defaults: sandbox: %q is not known (want on; a workflow says off, role by role)", c.Defaults.Sandbox)))
	}
	if err := c.Sandbox.check(); err != nil {
		return c, bad(fmt.Errorf("sandbox: %w", err))
	}
	if err := checkSinks(c.Notify); err != nil {
		return c, bad(err)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Providers)) {
		if err := c.Providers[name].check(name); err != nil {
			return c, bad(fmt.Errorf("providers: %s: %w", name, err))
		}
	}
	return c, nil
}

func (p Provider) check(name string) error {
	if name == "" || strings.ContainsAny(name, "/ ") {
		return errors.New("a name holds neither slash nor space")
	}
	if slices.Contains([]string{"script", "tape"}, name) {
		return errors.New("the name is taken")
	}
	if l := p.Limits; l.Requests < 0 || l.Tokens < 0 || l.InFlight < 0 {
		return errors.New("limits are whole numbers from 1")
	}
	if p.BuiltIn() && isBuiltIn(name) {
		if bounds := (Provider{Limits: p.Limits, Patience: p.Patience, From: p.From}); p != bounds || p.Limits.None() && p.Patience == nil {
			return errors.New("without wire this is the provider of wf itself, which can be given limits and patience alone")
		}
		return nil
	}
	if p.Wire != WireOpenAI && p.Wire != WireAnthropic {
		return fmt.Errorf("wire is %q (want openai or anthropic)", p.Wire)
	}
	if p.BaseURL != "" {
		u, err := url.Parse(p.BaseURL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return fmt.Errorf("base_url %q is none (want https://HOST/v1)", p.BaseURL)
		}
		if u.User != nil {
			return errors.New("base_url holds a password: name its variable as key_env")
		}
	}
	if p.Engine != "" && p.Engine != EngineLlama {
		return fmt.Errorf("engine is %q (want llama-server, or none)", p.Engine)
	}
	if p.TTL != "" && p.TTL != "5m" && p.TTL != "1h" {
		return fmt.Errorf("cache_ttl is %q (want 5m or 1h)", p.TTL)
	}
	if p.Slots < 0 || p.Slots > 0 && p.Engine != EngineLlama {
		return errors.New("slots are those of engine: llama-server")
	}
	if p.Price != nil {
		if err := p.Price.Check(); err != nil {
			return fmt.Errorf("prices: %w", err)
		}
	}
	return nil
}

// over puts a config over another, entry by entry.
func (c Config) over(under Config) Config {
	out := Config{Model: under.Model, Providers: map[string]Provider{}, Prices: map[string]price.Price{}, MCP: map[string]json.RawMessage{}}
	if len(c.Model) > 0 {
		out.Model = c.Model
	}
	for _, from := range []Config{under, c} {
		maps.Copy(out.Providers, from.Providers)
		maps.Copy(out.Prices, from.Prices)
		maps.Copy(out.MCP, from.MCP)
	}
	out.Sandbox = c.Sandbox.over(under.Sandbox)
	out.AllowModels = slices.Concat(under.AllowModels, c.AllowModels)
	out.Defaults.Sandbox = cmp.Or(c.Defaults.Sandbox, under.Defaults.Sandbox)
	out.ContainerIsSandbox = under.ContainerIsSandbox || c.ContainerIsSandbox
	out.Retention, out.Store = under.Retention, under.Store // a project has none
	return out
}
