package compose

import (
	"cmp"
	"context"
	"maps"
	"os"
	"slices"
	"strings"

	"wf/agentkit/config"
	"wf/api"
	"wf/engine/lang"
)

// Models is where models come from, and, with a program, which ones each of its agents would use. With probe the
// servers on this machine are asked, and those of the configs that want no key.
func (u *Setup) Models(ctx context.Context, p *lang.Program, probe bool) (*api.Models, error) {
	c, err := u.Config()
	if err != nil {
		return nil, err
	}
	out := &api.Models{Schema: "wf.models/v1", Providers: Providers(c), Default: append([]string{}, c.Model...), Roles: []api.RoleModels{},
		Prices: c.Table().Date, Found: []api.FoundModels{}}
	if p != nil {
		_, all, err := u.ResolveModels(ctx, p, nil)
		if err != nil {
			return nil, err
		}
		out.Workflow = p.Workflow.Name
		for _, r := range all {
			out.Roles = append(out.Roles, api.RoleModels{Role: r.Role, Models: r.Models, Source: string(r.Source), Detail: r.Detail, Text: r.String()})
		}
	}
	if probe {
		bases := config.Loopback
		for _, p := range out.Providers {
			if p.From != "" && p.KeyEnv == "" && p.Wire == config.WireOpenAI && p.BaseURL != "" && p.Blocked == "" {
				bases = append([]string{p.BaseURL}, bases...)
			}
		}
		for _, f := range config.Probe(ctx, unique(bases), ProbeTime) {
			out.Found = append(out.Found, api.FoundModels(f))
		}
	}
	return out, nil
}

// Providers are those of this binary, then those of the configs.
func Providers(c *config.Loaded) []api.Provider {
	isSet := func(name string) bool { return name != "" && os.Getenv(name) != "" }
	out := []api.Provider{}
	for _, p := range []api.Provider{
		{Name: "anthropic", Wire: config.WireAnthropic, BaseURL: cmp.Or(os.Getenv("ANTHROPIC_BASE_URL"), "https://api.anthropic.com"), KeyEnv: "ANTHROPIC_API_KEY"},
		{Name: "openai", Wire: config.WireOpenAI, BaseURL: cmp.Or(os.Getenv("OPENAI_BASE_URL"), "https://api.openai.com/v1"), KeyEnv: "OPENAI_API_KEY"},
	} {
		if _, replaced := c.Providers[p.Name]; !replaced {
			p.KeySet = isSet(p.KeyEnv)
			out = append(out, p)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Providers)) {
		p := c.Providers[name]
		out = append(out, api.Provider{Name: name, Wire: p.Wire, BaseURL: p.BaseURL, KeyEnv: p.KeyEnv, KeySet: isSet(p.KeyEnv),
			Context: p.Context, Engine: p.Engine, From: p.From, Blocked: c.Blocked(name)})
	}
	return out
}

func unique(list []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, s := range list {
		if s = strings.TrimSuffix(s, "/"); !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}
