package main

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"wf/agentkit/modeltest"
)

// The primary endpoint is down: the local one answers, and the journal says so.
func TestK15APrimaryThatIsDownFallsBackToALocalEndpoint(t *testing.T) {
	t.Parallel()
	local := modeltest.Start(t, modeltest.Text("A quick turn."), modeltest.Text("Another one."))
	busy := modeltest.Start(t, modeltest.Answer{Status: http.StatusServiceUnavailable, Header: map[string]string{"Retry-After": "600"}})
	dir := t.TempDir()
	write(t, dir, "quick.yaml", `wf: 1
name: quick
roles:
  a: {prompt: Answer., model: [down/big, local/small]}
  b: {prompt: Answer., model: [busy/big, local/small]}
`)
	if err := os.Mkdir(filepath.Join(dir, ".wf"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, dir, ".wf/config.yaml", `providers:
  down: {wire: anthropic, base_url: "http://127.0.0.1:1"}
  busy: {wire: openai, base_url: "`+busy.URL+`"}
  local: {wire: openai, base_url: "`+local.URL+`", engine: llama-server, prices: {input: 0, output: 0}}
`)
	wf := func(args ...string) []byte {
		t.Helper()
		cmd := exec.Command("wf", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_STATE_HOME=", "XDG_DATA_HOME=", "XDG_CONFIG_HOME=", "WF_STORE=")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("wf %v: %v\n%s", args, err, out)
		}
		return out
	}
	wf("trust", "--yes")
	var run struct {
		Status  string   `json:"status"`
		CostUSD *float64 `json:"cost_usd"`
	}
	if err := json.Unmarshal(wf("run", "quick.yaml", "-q", "-o", "json"), &run); err != nil || run.Status != "done" {
		t.Fatalf("got %+v, %v", run, err)
	}
	var fallbacks []string
	for line := range strings.Lines(string(wf("replay", "-1", "-o", "jsonl"))) {
		var e struct {
			Type string `json:"type"`
			Step string `json:"step"`
			Data struct{ From, To, Reason string }
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if e.Type == "model_fallback" {
			fallbacks = append(fallbacks, e.Step+" "+e.Data.From+" "+e.Data.To+" "+e.Data.Reason)
		}
	}
	if got := strings.Join(fallbacks, "; "); got != "a#1 down/big local/small unavailable; b#1 busy/big local/small server_error" {
		t.Errorf("the journal tells of %q", got)
	}
	if run.CostUSD == nil || *run.CostUSD != 0 {
		t.Errorf("only the local endpoint told tokens, which are free; the cost is %v", run.CostUSD)
	}
}
