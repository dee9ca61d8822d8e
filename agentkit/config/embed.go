package config

import (
	"strings"

	"wf/agentkit/embed"
	"wf/agentkit/model"
)

// Embedder opens an embedding model: one of package embed, or that of a provider on the wire
// openai. One that cannot be reached is a *model.Error of class unavailable that says what to
// do.
func (l *Loaded) Embedder(name string) (embed.Embedder, error) {
	provider, id, _ := strings.Cut(name, "/")
	p, ok := l.Providers[provider]
	if !ok || p.BuiltIn() {
		if provider != WireOpenAI {
			return embed.Open(name)
		}
		at, account, err := l.limited(provider)
		switch {
		case err != nil:
			return nil, err
		case account == nil:
			return embed.Open(name)
		}
		return embed.NewOpenAI(name, id, embed.Config{BaseURL: at.at, Key: at.key, Account: account})
	}
	what := "embedding model " + name
	if p.Wire != WireOpenAI {
		return nil, model.Unusable(what, "%s is on the wire %s, which has no embeddings. Fix: name a provider on the wire openai, or %s", provider, p.Wire, embed.LexicalName)
	}
	key, err := l.reach(what, provider, p)
	if err != nil {
		return nil, err
	}
	account, err := l.account(provider, p.base(), key)
	if err != nil {
		return nil, err
	}
	return embed.NewOpenAI(name, id, embed.Config{BaseURL: p.BaseURL, Key: key, Account: account})
}
