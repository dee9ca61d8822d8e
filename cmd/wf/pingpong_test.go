package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"wf/agentkit/modeltest"
	"wf/api"
	"wf/cmd/internal/render"
)

// pingPong enters two roles six times in turn. They have no schema: a model of random weights
// keeps none.
const pingPong = `wf: 1
name: ping-pong
roles:
  ping: {prompt: You serve. Say one sentence., params: {max_tokens: 24, temperature: 0.0}}
  pong: {prompt: You return. Say one sentence., params: {max_tokens: 24, temperature: 0.0}}
edges:
  - {from: START, to: ping, prompt: "Begin with a serve. ` + "%s" + `"}
  - {from: ping, to: pong, prompt: "The ball comes: ${{ output.text }}"}
  - {from: pong, to: ping, limit: 5, on_limit: END, prompt: "It comes back: ${{ output.text }}"}
`

// play runs the workflow against a server and gives the calls of wf cache.
func play(t *testing.T, model string, env ...string) []*api.CacheCall {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "ping.yaml", fmt.Sprintf(pingPong, strings.Repeat("It is a long rally. ", 30)))
	wf := func(args ...string) []byte {
		cmd := exec.Command("wf", args...)
		cmd.Dir = dir
		cmd.Env = append(append(os.Environ(), "HOME="+dir, "XDG_STATE_HOME=", "XDG_DATA_HOME=", "XDG_CONFIG_HOME=", "WF_STORE="+filepath.Join(dir, ".wf")), env...)
		out, err := cmd.Output()
		if err != nil {
			var exit *exec.ExitError
			if e, ok := err.(*exec.ExitError); ok {
				exit = e
				t.Fatalf("wf %s: %v\n%s\n%s", strings.Join(args, " "), err, out, exit.Stderr)
			}
			t.Fatal(err)
		}
		return out
	}
	wf("run", "ping.yaml", "--model", model, "-q")
	wf("replay", "-1", "--check")
	var c api.Cache
	if err := json.Unmarshal(wf("cache", "-1", "--min-prefix", "1.0", "-o", "json"), &c); err != nil {
		t.Fatal(err)
	}
	if len(c.Items) != 12 || c.MinPrefix != 1 {
		t.Errorf("%d calls, shared prefix %v", len(c.Items), c.MinPrefix)
	}
	return c.Items
}

// checkCached checks, for every k ≥ from, that visit k+1 read from the cache what visit k sent.
func checkCached(t *testing.T, calls []*api.CacheCall, from int, slack int64) {
	t.Helper()
	before := map[string]*api.CacheCall{}
	visits := map[string]int{}
	for _, c := range calls {
		role, _, _ := strings.Cut(c.Step, "#")
		visits[role]++
		t.Logf("%s: prompt %d, cached %d, written %s %s", c.Step, *c.Input, *c.Cached, render.Count(c.Written), c.Miss)
		if last := before[role]; last != nil && visits[role]-1 >= from && *c.Cached < *last.Input-slack {
			t.Errorf("%s read %d tokens from the cache, the visit before it sent %d", c.Step, *c.Cached, *last.Input)
		}
		before[role] = c
	}
}

func TestPingPongReadsWholePrefixesOnALlamaServer(t *testing.T) {
	t.Parallel()
	base := modeltest.Llama(t)
	checkCached(t, play(t, "openai/tiny", "OPENAI_BASE_URL="+base, "OPENAI_API_KEY="), 2, 1)
}

func rally() []modeltest.Answer {
	answers := make([]modeltest.Answer, 12)
	for i := range answers {
		answers[i] = modeltest.Text(fmt.Sprintf("Stroke %d crosses the net.", i))
	}
	return answers
}

func TestPingPongReadsWholePrefixesOnOpenAIsWire(t *testing.T) {
	t.Parallel()
	s := modeltest.Start(t, rally()...)
	checkCached(t, play(t, "openai/test", "OPENAI_BASE_URL="+s.URL, "OPENAI_API_KEY=k"), 1, 1)
}

func TestPingPongReadsWholePrefixesOnAnthropicsWire(t *testing.T) {
	t.Parallel()
	s := modeltest.Start(t, rally()...)
	checkCached(t, play(t, "anthropic/test", "ANTHROPIC_BASE_URL="+s.Root, "ANTHROPIC_API_KEY=k"), 1, 1)
}
