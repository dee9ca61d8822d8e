package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"wf/agentkit/modeltest"
	"wf/api"
	"wf/protocol"
)

const mysteryYAML = `wf: 1
name: spend
limits: {cost_usd: 1.50}
roles:
  first: {run: "echo >began", timeout: 1m}
  second: {prompt: Say it., model: mystery/new, timeout: 1m}
`

// A mystery is a directory with a workflow whose model works and has no known price.
type mystery struct {
	t      *testing.T
	dir    string
	config string // without a price
}

func newMystery(t *testing.T) *mystery {
	server := modeltest.Serve(t, func(modeltest.Request) modeltest.Answer { return modeltest.Text("Said.") })
	m := &mystery{t: t, dir: t.TempDir(), config: "providers:\n  mystery: {wire: openai, base_url: \"" + server.URL + "\"}\n"}
	m.write("spend.yaml", mysteryYAML)
	if err := os.Mkdir(filepath.Join(m.dir, ".wf"), 0o700); err != nil {
		t.Fatal(err)
	}
	m.write(".wf/config.yaml", m.config)
	return m
}

func (m *mystery) write(name, text string) {
	m.t.Helper()
	write(m.t, m.dir, name, text)
}

// wf runs a command and gives its exit status and what it wrote.
func (m *mystery) wf(args ...string) (status int, out string) {
	m.t.Helper()
	b, err := wfIn(m.dir, args...).CombinedOutput()
	return exitOf(m.t, err), string(b)
}

func (m *mystery) must(args ...string) string {
	m.t.Helper()
	status, out := m.wf(args...)
	if status != 0 {
		m.t.Fatalf("wf %v: exit %d\n%s", args, status, out)
	}
	return out
}

// refused checks that a command is refused for want of a price, and gives the two ways out.
func (m *mystery) refused(args ...string) (prices, tokens string) {
	m.t.Helper()
	status, out := m.wf(args...)
	if status != 3 || !strings.Contains(out, "cannot hold: the price of mystery/new is unknown") {
		m.t.Fatalf("wf %v: exit %d\n%s", args, status, out)
	}
	prices = regexp.MustCompile(`(?s) +prices:\n.*?\n\n`).FindString(out)
	tokens = regexp.MustCompile(`in place of money: (.*)`).FindStringSubmatch(out)[1]
	return prices, tokens
}

func (m *mystery) runs() int {
	m.t.Helper()
	var list struct{ Items []api.Row }
	if err := json.Unmarshal([]byte(m.must("ls", "--all", "-q", "-o", "json")), &list); err != nil {
		m.t.Fatal(err)
	}
	return len(list.Items)
}

// trusted writes the config and trusts it.
func (m *mystery) trusted(config string) {
	m.t.Helper()
	m.write(".wf/config.yaml", config)
	m.must("trust", "--yes")
}

// unindented is a piece of YAML as it goes into a file of its own.
func unindented(text string) string {
	indent := regexp.MustCompile(`^ *`).FindString(text)
	return strings.ReplaceAll("\n"+text, "\n"+indent, "\n")
}

func TestALimitOfCostThatCannotHoldIsRefusedBeforeTheRun(t *testing.T) {
	t.Parallel()
	m := newMystery(t)
	prices, tokens := m.refused("run", "spend.yaml")
	if m.runs() != 0 || isFile(filepath.Join(m.dir, "began")) {
		t.Error("something was begun")
	}
	m.refused("run", "spend.yaml", "--detach")
	if m.runs() != 0 {
		t.Error("something was begun in the background")
	}

	// One way out: the price, as it is shown.
	m.trusted(m.config + unindented(prices))
	m.must("run", "spend.yaml", "-q")
	m.write(".wf/config.yaml", m.config)

	// The other: tokens in place of money.
	limits := strings.TrimSuffix(tokens, " in the workflow")
	m.write("spend.yaml", strings.Replace(mysteryYAML, "limits: {cost_usd: 1.50}", limits, 1))
	m.must("run", "spend.yaml", "-q")
	m.write("spend.yaml", strings.Replace(mysteryYAML, "{cost_usd: 1.50}", "{cost_usd: 1.50, tokens: 90000}", 1))
	if out := m.must("run", "spend.yaml"); !strings.Contains(out, "limits.cost_usd does not count mystery/new") {
		t.Errorf("nothing is said of the price: %s", out)
	}

	// A model that costs nothing, and one that is named to answer from a file.
	m.write("spend.yaml", mysteryYAML)
	m.trusted(strings.Replace(m.config, "wire:", "prices: {input: 0, output: 0}, wire:", 1))
	m.must("run", "spend.yaml", "-q")
	m.write(".wf/config.yaml", m.config)
	m.write("said.yaml", "second#1: [{text: Said.}]\n")
	m.must("run", "spend.yaml", "-q", "--model", "script/said.yaml")
}

// A project's prices, also of models with a known price, are no way around a limit of its user.
func TestAProjectSetsNoPriceBeforeItIsTrusted(t *testing.T) {
	t.Parallel()
	m := newMystery(t)
	for name, config := range map[string]string{
		"of a model":    m.config + "prices: {mystery/new: {input: 0, output: 0}}\n",
		"of a provider": strings.Replace(m.config, "wire:", "prices: {input: 0, output: 0}, wire:", 1),
	} {
		m.write(".wf/config.yaml", config)
		if status, out := m.wf("run", "spend.yaml"); status != 3 || !strings.Contains(out, "names a price of mystery/new and is not trusted") || !strings.Contains(out, "wf trust") {
			t.Fatalf("a price %s: exit %d\n%s", name, status, out)
		}
	}
	if m.runs() != 0 {
		t.Error("something was begun")
	}
	m.must("trust", "--yes")
	m.must("run", "spend.yaml", "-q")

	// A known price holds on.
	if err := os.MkdirAll(filepath.Join(m.dir, ".config/wf"), 0o700); err != nil {
		t.Fatal(err)
	}
	m.write(".config/wf/config.yaml", "prices: {script/*: {input: 1000000, output: 1000000}}\n")
	m.write("said.yaml", "one#1: [{text: Said., usage: {input: 2000000, output: 1}}]\ntwo#1: [{text: Said.}]\n")
	m.write("spend.yaml", "wf: 1\nname: spend\ndefaults: {timeout: 1m}\nlimits: {cost_usd: 1.50}\nroles:\n  one: {prompt: Say it., model: script/said.yaml}\n  two: {prompt: Say it., model: script/said.yaml}\n")
	m.write(".wf/config.yaml", "prices: {script/*: {input: 0, output: 0}}\n")
	if status, out := m.wf("run", "spend.yaml"); status != 6 || !strings.Contains(out, "cost_usd") {
		t.Errorf("the limit of cost does not hold: exit %d\n%s", status, out)
	}
}

func TestALimitOfCostThatCannotHoldIsRefusedForSubWorkflows(t *testing.T) {
	t.Parallel()
	m := newMystery(t)
	m.write("child.yaml", strings.Replace(mysteryYAML, "limits: {cost_usd: 1.50}\n", "", 1))
	m.write("parent.yaml", "wf: 1\nname: parent\nlimits: {cost_usd: 1}\nroles: {sub: {workflow: child.yaml}}\n")
	m.refused("run", "parent.yaml")
	m.write("parent.yaml", "wf: 1\nname: parent\nroles: {sub: {workflow: spend.yaml}}\n")
	if _, way := m.refused("run", "parent.yaml"); way != "limits: {tokens: 500000} in the workflow of the sub-workflow spend" {
		t.Errorf("the way out is %q", way)
	}
	if m.runs() != 0 {
		t.Error("something was begun")
	}
}

func TestALimitOfCostThatCannotHoldIsRefusedLaterToo(t *testing.T) {
	t.Parallel()
	m := newMystery(t)
	priced := m.config + "prices: {mystery/new: {input: 0, output: 0}}\n"
	m.trusted(priced)
	m.write("spend.yaml", strings.Replace(mysteryYAML, "{cost_usd: 1.50}", "{cost_usd: 1.50, steps: 1}", 1))
	if status, out := m.wf("run", "spend.yaml", "-q"); status != 6 {
		t.Fatalf("exit %d: %s", status, out)
	}
	m.write(".wf/config.yaml", m.config)
	before := m.must("replay", "-1", "-o", "jsonl")
	_, tokens := m.refused("resume", "-1", "--limit", "steps=9")
	m.refused("resume", "-1", "--limit", "cost_usd=3")
	if m.must("replay", "-1", "-o", "jsonl") != before {
		t.Error("the refused resume is in the journal")
	}
	m.must(append(strings.Fields(strings.TrimPrefix(tokens, "wf ")), "--limit", "steps=9", "-q")...)

	m.write("spend.yaml", mysteryYAML)
	m.trusted(priced)
	m.must("run", "spend.yaml", "-q")
	m.write(".wf/config.yaml", m.config)
	runs := m.runs()
	_, tokens = m.refused("fork", "-1:second#1", "--run")
	if m.runs() != runs {
		t.Error("the refused fork is there")
	}
	m.must(append(strings.Fields(strings.Replace(strings.TrimPrefix(tokens, "wf "), "…", "-1:second#1", 1)), "--run", "-q")...)
}

func TestALimitOfCostThatCannotHoldIsRefusedByADaemon(t *testing.T) {
	t.Parallel()
	m := newMystery(t)
	s := startServe(t, m.dir, "--listen", "unix", "--workflows", m.dir)
	var problem struct{ Code, Message string }
	if status := s.call("POST", "/v1/runs", map[string]any{"workflow": "spend"}, &problem); status != http.StatusUnprocessableEntity || problem.Code != protocol.ErrPrice.Code {
		t.Errorf("start: %d %+v", status, problem)
	}
	var run struct{ ID protocol.RunID }
	m.write("said.yaml", "second#1: [{text: Said.}]\n")
	if status := s.call("POST", "/v1/runs", map[string]any{"workflow": "spend", "models": map[string]any{"second": "script/said.yaml"}}, &run); status != http.StatusCreated {
		t.Fatalf("start with a script: %d", status)
	}
	s.awaitStatus(run.ID, protocol.Done)
	fork := map[string]any{"step": "first#1", "after": true, "models": map[string]any{"second": "mystery/new"}}
	if status := s.call("POST", "/v1/runs/"+string(run.ID)+"/fork", fork, &problem); status != http.StatusUnprocessableEntity || problem.Code != protocol.ErrPrice.Code {
		t.Errorf("fork: %d %+v", status, problem)
	}
	if m.runs() != 1 {
		t.Error("something else was begun")
	}
}

// All agents without a key are named at once, before the first step, those of sub-workflows too.
func TestAMissingKeyIsFoundBeforeTheFirstStep(t *testing.T) {
	t.Parallel()
	m := newMystery(t)
	m.write(".wf/config.yaml", m.config+"  far: {wire: openai, base_url: \"http://127.0.0.1:1\", key_env: FAR_AWAY_KEY}\n")
	m.write("child.yaml", "wf: 1\nname: child\nroles: {inner: {prompt: Say it., model: far/one}}\n")
	m.write("keys.yaml", `wf: 1
name: keys
roles:
  first: {run: "echo >began", timeout: 1m}
  second: {prompt: Say it., model: far/two}
  third: {prompt: Say it., model: nowhere/three}
  fourth: {prompt: Say it., model: [far/two, mystery/new]}
  fifth: {prompt: Say it., model: script/said.yaml}
  sub: {workflow: child.yaml}
`)
	m.must("trust", "--yes")
	status, out := m.wf("run", "keys.yaml")
	if status != 4 || m.runs() != 0 || isFile(filepath.Join(m.dir, "began")) {
		t.Fatalf("exit %d, %d runs: %s", status, m.runs(), out)
	}
	for _, want := range []string{"second: model far/two: ", "FAR_AWAY_KEY", "third: no provider for the model \"nowhere/three\"", "sub/inner: model far/one: "} {
		if !strings.Contains(out, want) {
			t.Errorf("nothing of %q in %s", want, out)
		}
	}
	_, out, _ = strings.Cut(out, "error:")
	for _, no := range []string{"fourth", "fifth"} {
		if strings.Contains(out, no+":") {
			t.Errorf("%s has a model that can be used: %s", no, out)
		}
	}
}
