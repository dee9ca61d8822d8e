package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"wf/agentkit/price"
	"wf/cmd/internal/chat"
	"wf/cmd/internal/plain"
)

// chatModels are the models that can be used as the configs and the environment are: the default ones, those with a price of
// providers whose key is set, and those of the servers that answer, with the price of each.
func (a *app) chatModels(ctx context.Context) ([]chat.Row, error) {
	m, err := a.Models(ctx, nil, true)
	if err != nil {
		return nil, err
	}
	prices, err := a.Prices()
	if err != nil {
		return nil, err
	}
	names := slices.Clone(m.Default)
	usable, served := map[string]bool{}, map[string][]string{}
	for _, p := range m.Providers {
		if usable[p.Name] = p.Blocked == "" && (p.KeyEnv == "" || p.KeySet); usable[p.Name] {
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
		if provider, _, _ := strings.Cut(name, "/"); usable[provider] && !strings.HasSuffix(name, "*") {
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
