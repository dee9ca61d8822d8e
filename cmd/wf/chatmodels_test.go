package main

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"wf/cmd/internal/chat"
)

// The models are those that can be used: of the config, of the servers that answer, and the priced ones of providers with a key.
func TestTheModelsOfAChat(t *testing.T) {
	a, _ := atHomeWithoutKeys(t)
	if err := os.MkdirAll("config/wf", 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "config"))
	t.Setenv("ANTHROPIC_API_KEY", "k")
	write(t, "config/wf", "config.yaml", "model: [local/tiny, far/big]\nproviders:\n  local: {wire: openai, base_url: \"http://127.0.0.1:9/v1\", context: 4096}\n  far: {wire: openai, base_url: \"http://127.0.0.1:9/v1\", key_env: FAR_KEY}\n"+
		"prices: {local/tiny: {input: 250000, output: 1500000}, far/other: {input: 1, output: 1}}\n")
	rows, err := a.chatModels(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]string{}
	for _, r := range rows {
		if _, twice := by[r.Value]; twice {
			t.Errorf("%s is there twice", r.Value)
		}
		by[r.Value] = strings.Join(strings.Fields(strings.TrimPrefix(r.Text, r.Value)), " ")
	}
	if rows[0].Value != "local/tiny" || by["local/tiny"] != "$0.25 in, $1.5 out per million tokens, default" || by["far/big"] != chat.Unpriced+", default" ||
		by["anthropic/claude-opus-4-5"] != "$5 in, $25 out per million tokens" {
		t.Errorf("the models are %v", rows)
	}
	for _, name := range []string{"openai/gpt-5", "far/other", "script/*"} { // no key is set for the first two
		if _, there := by[name]; there {
			t.Errorf("%s is among them", name)
		}
	}
}

// A model with a price is offered where the provider's server is the one that has it. Another server has what it lists, and
// what the config has a price of.
func TestTheModelsOfAServerAreItsOwn(t *testing.T) {
	lists := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" || r.Header.Get("Authorization") != "" {
			t.Errorf("%s is asked, with %q", r.URL, r.Header.Get("Authorization"))
		}
		_, _ = w.Write([]byte(`{"data": [{"id": "tiny"}]}`))
	}))
	defer lists.Close()
	here := lists.URL + "/v1"
	for name, x := range map[string]struct {
		environment map[string]string
		config      string
		are, lacks  []string
	}{
		"the maker's":                         {map[string]string{"OPENAI_API_KEY": "k"}, "", []string{"openai/gpt-5"}, []string{"openai/deepseek-chat", "openai/tiny"}},
		"a server that the environment names": {map[string]string{"OPENAI_BASE_URL": here + "/"}, "", []string{"openai/tiny"}, []string{"openai/gpt-4o", "openai/deepseek-chat"}},
		"with a key":                          {map[string]string{"OPENAI_BASE_URL": here, "OPENAI_API_KEY": "k"}, "", []string{"openai/tiny"}, []string{"openai/gpt-4o"}},
		"another maker's":                     {map[string]string{"OPENAI_BASE_URL": "https://api.deepseek.com/v1", "OPENAI_API_KEY": "k"}, "", []string{"openai/deepseek-chat"}, []string{"openai/gpt-4o"}},
		"a server of the config": {nil, "providers: {openai: {wire: openai, base_url: \"" + here + "\"}}\nprices: {openai/big: {input: 1, output: 1}}\n",
			[]string{"openai/tiny", "openai/big"}, []string{"openai/gpt-4o", "openai/deepseek-chat"}},
		"the maker's by the config": {map[string]string{"MINE": "k"}, "providers: {anthropic: {wire: anthropic, key_env: MINE}}\n", []string{"anthropic/claude-opus-4-5"}, []string{"openai/gpt-5"}},
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := atHomeWithoutKeys(t)
			dir := t.TempDir()
			t.Setenv("XDG_CONFIG_HOME", dir)
			for key, value := range x.environment {
				t.Setenv(key, value)
			}
			if err := os.MkdirAll(filepath.Join(dir, "wf"), 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "wf"), "config.yaml", x.config)
			rows, err := a.chatModels(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			offered := map[string]bool{}
			for _, r := range rows {
				offered[r.Value] = true
			}
			for _, name := range x.are {
				if !offered[name] {
					t.Errorf("%s is not among %v", name, slices.Sorted(maps.Keys(offered)))
				}
			}
			for _, name := range x.lacks {
				if offered[name] {
					t.Errorf("%s is among them", name)
				}
			}
		})
	}
}
