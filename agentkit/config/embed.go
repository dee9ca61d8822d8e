package config

import (
	"fmt"
	"os"
	"strings"

	"wf/agentkit/embed"
	"wf/agentkit/model"
	"wf/protocol"
	"wf/roles"
)

// Embedder opens an embedding model: one of package embed, or that of a provider on the wire
// openai. One that cannot be reached is a *model.Error of class unavailable that says what to
// do.
func (l *Loaded) Embedder(name string) (embed.Embedder, error) {
	provider, id, _ := strings.Cut(name, "/")
	p, ok := l.Providers[provider]
	if !ok {
		return embed.Open(name)
	}
	unavailable := func(format string, args ...any) error {
		return &model.Error{Class: model.Unavailable, Message: fmt.Sprintf("embedding model %s: ", name) + fmt.Sprintf(format, args...), Err: protocol.ErrModel}
	}
	if why := l.blocked[provider]; why != "" {
		return nil, unavailable("the config %s is not trusted: %s. Fix: look at it, then wf trust", p.From, why)
	}
	if p.Wire != WireOpenAI {
		return nil, unavailable("%s is on the wire %s, which has no embeddings. Fix: name a provider on the wire openai, or %s", provider, p.Wire, embed.LexicalName)
	}
	key := ""
	if p.KeyEnv != "" {
		if key = os.Getenv(p.KeyEnv); key == "" {
			return nil, unavailable("%s names the variable %s for its key, which is not set. Fix: export %s=…", p.From, p.KeyEnv, p.KeyEnv)
		}
		roles.Conceal(p.KeyEnv, key)
	}
	return embed.NewOpenAI(name, id, embed.Config{BaseURL: p.BaseURL, Key: key})
}
