package config

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"wf/agentkit/internal/wire"
)

// Loopback are the servers on this machine that a probe asks: llama-server, Ollama, LM Studio,
// vLLM, by their usual ports.
var Loopback = []string{
	"http://127.0.0.1:8080/v1", "http://127.0.0.1:8081/v1", "http://127.0.0.1:11434/v1",
	"http://127.0.0.1:1234/v1", "http://127.0.0.1:8000/v1",
}

// Found is a server that answered.
type Found struct {
	BaseURL string   `json:"base_url"`
	Models  []string `json:"models"`
}

// Probe asks servers which models they have, all at once, without a key. Those that do not
// answer in time are left out: a probe only suggests.
func Probe(ctx context.Context, bases []string, patience time.Duration) []Found {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	found := make([]*Found, len(bases))
	var wg sync.WaitGroup
	for i, base := range bases {
		wg.Go(func() {
			if models, err := modelsOf(ctx, base); err == nil {
				found[i] = &Found{base, models}
			}
		})
	}
	wg.Wait()
	out := []Found{}
	for _, f := range found {
		if f != nil {
			out = append(out, *f)
		}
	}
	return out
}

// modelsOf lists the models of a server on OpenAI's wire.
func modelsOf(ctx context.Context, base string) ([]string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(base, "/")+"/models", nil)
	if err != nil {
		return nil, err
	}
	res, err := wire.Client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	const most = 1 << 20
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: status %d", base, res.StatusCode)
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, most)).Decode(&list); err != nil {
		return nil, fmt.Errorf("%s: %w", base, err)
	}
	models := []string{}
	for _, m := range list.Data {
		models = append(models, m.ID)
	}
	return models, nil
}
