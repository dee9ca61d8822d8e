package config

import (
	"cmp"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tmc/langchaingo/llms"

	"wf/agentkit"
	"wf/agentkit/anthropic"
	"wf/agentkit/mcp"
	"wf/agentkit/model"
	"wf/agentkit/openai"
	"wf/agentkit/price"
	"wf/agentkit/ratelimit"
	"wf/agentkit/script"
	"wf/agentkit/tape"
	"wf/protocol"
	"wf/roles"
)

func sorted[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// Registry is the models of this module, and those of the providers.
func (l *Loaded) Registry() agentkit.Registry {
	r := agentkit.Standard()
	for _, name := range []string{WireOpenAI, WireAnthropic} {
		standard := r[name]
		r[name] = func(model, dir string) (llms.Model, error) {
			at, account, err := l.limited(name)
			switch {
			case err != nil:
				return nil, err
			case account == nil:
				return standard(model, dir)
			}
			return at.open(model, strings.TrimPrefix(model, name+"/"), account)
		}
	}
	for name, p := range l.Providers {
		if p.BuiltIn() {
			continue
		}
		r[name] = func(model, _ string) (llms.Model, error) {
			return l.open(model, strings.TrimPrefix(model, name+"/"), name, p)
		}
	}
	return r
}

// open opens a model of a provider. One that the config may not reach, or without its key
// being set, is a *model.Error of class unavailable that says what to do.
func (l *Loaded) open(name, id, provider string, p Provider) (llms.Model, error) {
	key, err := l.reach("model "+name, provider, p)
	if err != nil {
		return nil, err
	}
	account, err := l.account(provider, p.base(), key)
	if err != nil {
		return nil, err
	}
	return server{p, p.BaseURL, key}.open(name, id, account)
}

// server is where a provider is reached.
type server struct {
	Provider
	at, key string
}

func (s server) open(name, id string, account *ratelimit.Account) (llms.Model, error) {
	if s.Wire == WireAnthropic {
		return agentkit.NonNil(anthropic.New(name, id, anthropic.Config{BaseURL: s.at, Key: s.key, TTL: s.TTL, Idle: time.Duration(s.Idle), KeyFrom: s.KeyEnv, Account: account}))
	}
	return agentkit.NonNil(openai.New(name, id, openai.Config{BaseURL: s.at, Key: s.key, Llama: s.Engine == EngineLlama, Marks: s.Marks, Slots: s.Slots, Idle: time.Duration(s.Idle), KeyFrom: s.KeyEnv, Account: account}))
}

// reach gives the key of a provider, "" for none. what is how a model of it is called.
func (l *Loaded) reach(what, provider string, p Provider) (key string, err error) {
	if why := l.blocked[provider]; why != "" {
		return "", model.Unusable(what, "the config %s is not trusted: %s. Fix: look at it, then wf trust", p.From, why)
	}
	if p.KeyEnv == "" {
		return "", nil
	}
	if key = os.Getenv(p.KeyEnv); key == "" {
		return "", model.Unusable(what, "%s names the variable %s for its key, which is not set. Fix: export %s=…", p.From, p.KeyEnv, p.KeyEnv)
	}
	roles.Conceal(p.KeyEnv, key)
	return key, nil
}

// Table is the prices of the binary with those of the config over them.
func (l *Loaded) Table() price.Table { return price.Standard().With(l.prices()) }

// Priced is how many prices come from the configs.
func (l *Loaded) Priced() int { return len(l.prices()) }

// Offered reports whether the project's config names a price of a model that does not count, because
// the config is not trusted.
func (l *Loaded) Offered(model string) bool {
	_, ok := l.offered.Of(model)
	return ok
}

// Unpriced is how many prices do not count, because the project's config is not trusted.
func (l *Loaded) Unpriced() int { return len(l.offered.Prices) }

// prices are those of models, and of all models of a provider.
func (c Config) prices() map[string]price.Price {
	out := map[string]price.Price{}
	for name, p := range c.Providers {
		if p.Price != nil {
			out[name+"/*"] = *p.Price
		}
	}
	maps.Copy(out, c.Prices)
	return out
}

// Window is how many tokens the context of a model holds, 0 where the config does not say.
func (l *Loaded) Window(model string) int {
	provider, _, _ := strings.Cut(model, "/")
	return l.Providers[provider].Context
}

// Blocked says why a provider cannot be used before the project's config is trusted, "" where
// it can.
func (l *Loaded) Blocked(provider string) string { return l.blocked[provider] }

// Local reports whether what is sent to a model stays on this machine: it answers from a file, or is one
// of a server that is named by its address, not by a name, and is sent no key.
func (l *Loaded) Local(model string) bool {
	if strings.HasPrefix(model, script.Prefix) || strings.HasPrefix(model, tape.Prefix) {
		return true
	}
	name, _, _ := strings.Cut(model, "/")
	p, ok := l.Providers[name]
	return ok && l.blocked[name] == "" && p.KeyEnv == "" && p.loopback()
}

// loopback reports whether the server is at an address of this machine that is written as one:
// what a name stands for, others may decide.
func (p Provider) loopback() bool { return mcp.Local(protocol.MCPServer{URL: p.BaseURL}) }
