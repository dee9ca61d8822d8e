package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"wf/agentkit/anthropic"
	"wf/agentkit/config"
	"wf/agentkit/openai"
	"wf/agentkit/price"
	"wf/api"
	"wf/cmd/internal/chat"
	"wf/cmd/internal/plain"
)

// makers are the addresses of the servers that have the models of price.Standard, by what the names of these begin with.
var makers = []struct{ name, base string }{
	{"anthropic/", anthropic.BaseURL},
	{"openai/deepseek-", "https://api.deepseek.com"},
	{"openai/", openai.BaseURL},
}

// atMaker reports whether the address of a provider is that of the maker of a model; "" is the one of the wire's maker.
func atMaker(name string, p api.Provider) bool {
	for _, m := range makers {
		if strings.HasPrefix(name, m.name) {
			return bare(m.base) == bare(cmp.Or(p.BaseURL, map[string]string{config.WireAnthropic: anthropic.BaseURL, config.WireOpenAI: openai.BaseURL}[p.Wire]))
		}
	}
	return false
}

// bare is an address without the end that may be left out.
func bare(base string) string { return strings.TrimSuffix(strings.TrimSuffix(base, "/"), "/v1") }

// usable reports whether a provider can be used. One of this binary needs no key where the environment names another
// server.
func usable(p api.Provider) bool {
	elsewhere := p.From == "" && !atMaker(p.Name+"/", p)
	return p.Blocked == "" && (p.KeyEnv == "" || p.KeySet || elsewhere)
}

// chatModels are the models that can be used as the configs and the environment are: the default ones, those of the
// servers that answer, and of each provider those with a price that the configs have, or that its address is known to have, with
// the price of each.
func (a *app) chatModels(ctx context.Context) ([]chat.Row, error) {
	m, err := a.Models(ctx, nil, true)
	if err != nil {
		return nil, err
	}
	prices, err := a.Prices()
	if err != nil {
		return nil, err
	}
	c, err := a.Config()
	if err != nil {
		return nil, err
	}
	names := slices.Clone(m.Default)
	providers, served := map[string]api.Provider{}, map[string][]string{}
	for _, p := range m.Providers {
		if usable(p) {
			providers[p.Name] = p
			at := strings.TrimSuffix(p.BaseURL, "/")
			served[at] = append(served[at], p.Name)
		}
	}
	for _, f := range m.Found {
		for _, provider := range served[strings.TrimSuffix(f.BaseURL, "/")] {
			for _, id := range f.Models {
				names = append(names, provider+"/"+id)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(prices.Prices)) {
		provider, _, _ := strings.Cut(name, "/")
		p, is := providers[provider]
		if _, own := c.Prices[name]; is && !strings.HasSuffix(name, "*") && (own || atMaker(name, p)) {
			names = append(names, name)
		}
	}
	return modelRows(names, m.Default, prices), nil
}

// modelRows are models in columns, each once.
func modelRows(names, standard []string, prices price.Table) []chat.Row {
	var once []string
	width, seen := 0, map[string]bool{} // a server may name any number
	for _, name := range names {
		if !seen[name] {
			seen[name] = true
			once, width = append(once, name), max(width, plain.Width(name))
		}
	}
	rows := make([]chat.Row, len(once))
	for i, name := range once {
		text := plain.Pad(name, width) + "  " + chat.Unpriced
		if p, ok := prices.Of(name); ok {
			text = fmt.Sprintf("%s  $%s in, $%s out per million tokens", plain.Pad(name, width), perMillion(p.Input), perMillion(p.Output))
		}
		if slices.Contains(standard, name) {
			text += ", default"
		}
		rows[i] = chat.Row{Value: name, Text: text}
	}
	return rows
}

// perMillion is a price in dollars: 3, 0.25.
func perMillion(micro int64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.6f", float64(micro)/1e6), "0"), ".")
}
