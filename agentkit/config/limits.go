package config

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"wf/agentkit/anthropic"
	"wf/agentkit/openai"
	"wf/agentkit/ratelimit"
	"wf/roles"
)

// base is the URL that requests go below.
func (p Provider) base() string {
	if p.Wire == WireAnthropic {
		return cmp.Or(p.BaseURL, anthropic.BaseURL)
	}
	return cmp.Or(p.BaseURL, openai.BaseURL)
}

// environment is where the environment says that a provider of this binary is reached; set is that it says anything.
func environment(name string) (s server, set bool) {
	prefix := map[string]string{WireOpenAI: "OPENAI", WireAnthropic: "ANTHROPIC"}[name]
	s = server{Provider{Wire: name, KeyEnv: prefix + "_API_KEY"}, os.Getenv(prefix + "_BASE_URL"), os.Getenv(prefix + "_API_KEY")}
	roles.Conceal(prefix+"_API_KEY", s.key)
	return s, s.at != "" || s.key != ""
}

// reached names the account of a provider; set is that its key is there, where it has one.
func (p Provider) reached(name string) (id string, set bool) {
	if p.BuiltIn() {
		s, set := environment(name)
		return ratelimit.Fingerprint(cmp.Or(s.at, s.base()), s.key), set
	}
	key := os.Getenv(p.KeyEnv)
	return ratelimit.Fingerprint(p.base(), key), p.KeyEnv == "" || key != ""
}

// limited is where a provider of this binary is reached, and its account: nil where it has no limits, or cannot be
// reached.
func (l *Loaded) limited(name string) (server, *ratelimit.Account, error) {
	s, set := environment(name)
	if !set {
		return s, nil, nil
	}
	a, err := l.account(name, cmp.Or(s.at, s.base()), s.key)
	return s, a, err
}

// account is the account of a key at a URL, with the lowest limits of all providers that use it; nil for one without.
// So a project, whatever it calls the account, stays within the limits that its user has set, and may set lower ones
// for itself.
func (l *Loaded) account(provider, base, key string) (*ratelimit.Account, error) {
	id, limits := ratelimit.Fingerprint(base, key), ratelimit.Limits{}
	for name, p := range l.user.Providers {
		if same, _ := p.reached(name); same == id {
			limits = limits.Lowest(p.Limits)
		}
	}
	for name, p := range l.Providers {
		if same, _ := p.reached(name); same == id && l.blocked[name] == "" {
			limits = limits.Lowest(p.Limits)
		}
	}
	if limits.None() {
		return nil, nil
	}
	if l.places.State == "" {
		return nil, fmt.Errorf("the limits of the provider %s: %w", provider, ErrConfig.With("set HOME or XDG_STATE_HOME", "there is no state directory to keep them in"))
	}
	return ratelimit.Open(filepath.Join(l.places.State, "limits"), provider, id, limits), nil
}

// Account is the account of a provider, as the environment stands: nil where it has no limits, or cannot be reached.
func (l *Loaded) Account(name string) (*ratelimit.Account, error) {
	p, ok := l.Providers[name]
	if !ok || p.BuiltIn() {
		_, a, err := l.limited(name)
		return a, err
	}
	if _, set := p.reached(name); !set || l.blocked[name] != "" {
		return nil, nil
	}
	return l.account(name, p.base(), os.Getenv(p.KeyEnv))
}
