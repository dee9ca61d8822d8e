package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"wf/agentkit/modeltest"
	"wf/api"
	"wf/protocol"
)

// sweptYAML has a coder that is to put right what a test found; how is in the prompt of the edge that leads back.
const sweptYAML = `wf: 1
name: swept
defaults: {timeout: 1m}
roles:
  coder: {prompt: "You code. ` + "%s" + `", tools: [write_file], params: {max_tokens: 24, temperature: 0.0}}
  test: {run: "grep -q good answer.txt", continue_on_error: true}
edges:
  - {from: START, to: coder, prompt: Begin.}
  - {from: coder, to: test}
  - {from: test, to: coder, when: "output.exit_code != 0", limit: 1, on_limit: END, prompt: "` + "%s" + `"}
  - {from: test, to: END}
`

// sweptModel answers as the coder: model a puts it right where it is told to be careful, model b always.
type sweptModel struct {
	mu       sync.Mutex
	t        *testing.T
	begun    bool            // the trials have
	answered map[string]bool // models that have, once, in a trial
	seen     map[string]int  // their requests in trials
	keys     map[string]bool // of the provider's cache, in all requests
	hold     func(model string, n int) func()

	flying, most int // requests of trials side by side
}

func (m *sweptModel) answer(r modeltest.Request) modeltest.Answer {
	var body struct {
		Model string
		Key   string `json:"prompt_cache_key"`
	}
	if err := json.Unmarshal(r.Body, &body); err != nil {
		m.t.Error(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keys[body.Key] = true
	a := modeltest.Text("It is written.")
	if r.Results() == 0 {
		what := "bad"
		if m.begun && (body.Model == "b" || strings.Contains(string(r.Body), "carefully")) {
			what = "good"
		}
		a = modeltest.Calls(modeltest.Call{ID: "call_1", Name: "write_file", Args: fmt.Sprintf(`{"path":"answer.txt","content":"%s\n"}`, what)})
	}
	if !m.begun {
		return a
	}
	m.seen[body.Model]++
	if m.seen[body.Model] > 1 && !m.answered[body.Model] {
		m.t.Errorf("request %d to model %s goes beside the first", m.seen[body.Model], body.Model)
	}
	m.flying++
	m.most = max(m.most, m.flying)
	n, held := m.seen[body.Model], func() {}
	if m.hold != nil {
		held = m.hold(body.Model, n)
	}
	a.Before = func() {
		held()
		m.mu.Lock()
		defer m.mu.Unlock()
		m.flying--
		m.answered[body.Model] = true
	}
	return a
}

// saw is how many cache keys the requests had, and how many requests of trials came side by side at most.
func (m *sweptModel) saw() (keys, most int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.keys), m.most
}

// sweptPlace is a run that failed its test, with prices for its models, and three definitions.
func sweptPlace(t *testing.T) (place, *sweptModel, *modeltest.Server) {
	t.Helper()
	m := &sweptModel{t: t, answered: map[string]bool{}, seen: map[string]int{}, keys: map[string]bool{}}
	s := modeltest.Serve(t, m.answer)
	p := newPlace(t, "OPENAI_BASE_URL="+s.URL)
	home := strings.TrimPrefix(p.env[0], "HOME=")
	if err := os.MkdirAll(filepath.Join(home, ".config", "wf"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(home, ".config", "wf"), "config.yaml", "prices:\n  openai/a: {input: 1000000, output: 2000000}\n  openai/b: {input: 3000000, output: 6000000}\n")
	for name, how := range map[string]string{"v1": "Put it right.", "v2": "Put it right, carefully.", "v3": "Put it right, quickly."} {
		write(t, p.dir, name+".yaml", fmt.Sprintf(sweptYAML, "Be brief.", how))
	}
	p.wf(0, "run", "v1.yaml", "--model", "openai/a", "-q")
	m.mu.Lock()
	m.begun = true
	m.mu.Unlock()
	return p, m, s
}

// Two models and three definitions fill a table: each trial is a fork in files of its own. What they pass, cost and read is told
// apart from what they share; the first request of a model goes before the others, and all have the cache key of the origin.
func TestM03TwoModelsAndThreeDefinitionsFillATable(t *testing.T) {
	t.Parallel()
	p, m, server := sweptPlace(t)
	write(t, p.dir, "answer.txt", "of the user\n")
	var origin api.Run
	p.read(&origin, "show", "-1")
	var s api.Sweep
	p.read(&s, "sweep", "-1:coder#2", "--model", "openai/a,openai/b", "--with", "v1.yaml,v2.yaml,v3.yaml", "-n", "2", "--max-cost", "5",
		"--check", "grep -q good answer.txt && echo score: 0.5", "--parallel", "6")
	if !s.Complete || len(s.Cells) != 6 || len(s.Trials) != 12 || s.Performed != 12 {
		t.Fatalf("%d cells, %d trials, %d performed, complete %v", len(s.Cells), len(s.Trials), s.Performed, s.Complete)
	}
	for i, want := range []int{0, 2, 0, 2, 2, 2} {
		c := s.Cells[i]
		model, price := "openai/a", 1.0
		if i >= 3 {
			model, price = "openai/b", 3.0
		}
		if c.Models[""] != model || c.Definition != i%3 || c.Pass.N != 2 || c.Pass.Passed != want || c.Pass.Low != nil || c.Errors+c.Cut+c.Open != 0 {
			t.Errorf("cell %d: %+v", i, c)
		}
		if cost := price * (float64(c.Usage.Input) + 2*float64(c.Usage.Output)) / 1e6; c.Usage.Calls != 4 || math.Abs(*c.Usage.CostUSD-cost) > 1e-12 {
			t.Errorf("cell %d: %d calls, %v dollars, want %v", i, c.Usage.Calls, *c.Usage.CostUSD, cost)
		}
		if scored := c.Score != nil && *c.Score == 0.5; scored != (want > 0) {
			t.Errorf("cell %d: score %v", i, c.Score)
		}
	}
	if s.Of.Shared.Calls != 2 || s.Usage.Calls != 24 {
		t.Errorf("%d calls are shared, the trials made %d", s.Of.Shared.Calls, s.Usage.Calls)
	}
	if keys, _ := m.saw(); keys != 1 {
		t.Errorf("the forks and their origin have %d cache keys", keys)
	}
	if text, err := os.ReadFile(filepath.Join(p.dir, "answer.txt")); err != nil || string(text) != "of the user\n" {
		t.Errorf("the workspace has %q (%v)", text, err)
	}
	var runs api.Page
	p.read(&runs, "ls", "--tag", s.Tag, "--all")
	if len(runs.Items) != 12 {
		t.Errorf("%d runs have the tag %s", len(runs.Items), s.Tag)
	}
	for _, x := range s.Trials {
		p.wf(0, "verify", string(x.Run))
	}
	asked := len(server.Requests())
	var again api.Sweep
	p.read(&again, "sweep", string(origin.ID)+":coder#2", "--model", "openai/a,openai/b", "--with", "v1.yaml,v2.yaml,v3.yaml", "-n", "2", "--max-cost", "5",
		"--check", "grep -q good answer.txt && echo score: 0.5", "--parallel", "6")
	if again.Performed != 0 || len(server.Requests()) != asked || *again.Usage.CostUSD != *s.Usage.CostUSD {
		t.Errorf("the same command performed %d trials", again.Performed)
	}
	// One more of each is four more to reserve for: the share of each is smaller, and still enough.
	p.read(&again, "sweep", string(origin.ID)+":coder#2", "--model", "openai/a,openai/b", "--with", "v1.yaml,v2.yaml,v3.yaml", "-n", "5", "--max-cost", "5",
		"--check", "grep -q good answer.txt && echo score: 0.5")
	if again.Performed != 18 || again.Cells[4].Pass.N != 5 || again.Cells[4].Pass.Low == nil || math.Abs(*again.Cells[4].Pass.Low-0.5655) > 0.001 {
		t.Errorf("with five of each %d trials were performed, %+v", again.Performed, again.Cells[4].Pass)
	}
}

// A sweep that is killed goes on by the same command: no trial is begun twice, no request that was answered is made again, and
// each run is checked once.
func TestM03AKilledSweepGoesOn(t *testing.T) {
	t.Parallel()
	p, m, server := sweptPlace(t)
	killed, asked := make(chan struct{}), make(chan struct{}, 1)
	m.hold = func(model string, n int) func() {
		if model != "a" || n != 4 { // the second request of the second trial of a
			return func() {}
		}
		return func() {
			select {
			case asked <- struct{}{}:
				<-killed
			default:
			}
		}
	}
	log := filepath.Join(p.dir, "checks")
	command := []string{"sweep", "-1:coder#2", "--model", "openai/a", "-n", "3", "--parallel", "1", "--check-sandbox", "off", "--check", `echo "$WF_RUN" >> ` + log + `; grep -q good answer.txt`}
	var origin api.Run
	p.read(&origin, "show", "-1")
	command[1] = string(origin.ID) + ":coder#2"
	before := len(server.Requests())
	p.killed(asked, command...)
	close(killed)
	var s api.Sweep
	p.read(&s, command...)
	if !s.Complete || s.Performed != 2 || !s.Trials[0].Remembered || s.Trials[1].Remembered {
		t.Errorf("complete %v, performed %d, %+v", s.Complete, s.Performed, s.Trials)
	}
	if made := len(server.Requests()) - before; made != 7 {
		t.Errorf("%d requests, want two for each of three trials, and the one that was cut off again", made)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	checks := strings.Fields(string(text))
	if slices.Sort(checks); len(checks) != 3 || len(slices.Compact(checks)) != 3 {
		t.Errorf("checked were %v", checks)
	}
	var runs api.Page
	p.read(&runs, "ls", "--tag", s.Tag, "--all")
	if len(runs.Items) != 3 {
		t.Errorf("there are %d runs", len(runs.Items))
	}
	for _, r := range runs.Items {
		if r.Status != protocol.Done {
			t.Errorf("run %s is %s", r.ID, r.Status)
		}
	}
}

// Money that is left for one trial lets one begin; the others are cut, and go on with more. A model without a price needs a bound of
// tokens.
func TestM03TheMoneyOfASweep(t *testing.T) {
	t.Parallel()
	p, m, server := sweptPlace(t)
	var origin api.Run
	p.read(&origin, "show", "-1")
	command := func(more ...string) []string {
		return append([]string{"sweep", string(origin.ID) + ":coder#2", "-n", "3", "--check", "grep -q good answer.txt", "-o", "json"}, more...)
	}
	before := len(server.Requests())
	p.wf(3, command("--model", "openai/free", "--max-cost", "1")...)
	p.wf(3, command("--model", "openai/a,openai/free", "--trial-cost", "1")...)
	if len(server.Requests()) != before {
		t.Error("a model without a price was asked")
	}
	var s api.Sweep
	read := func(exit int, more ...string) {
		t.Helper()
		s = api.Sweep{}
		if err := json.Unmarshal(p.wf(exit, command(more...)...), &s); err != nil {
			t.Fatal(err)
		}
	}
	read(0, "--model", "openai/a", "--trial-cost", "1", "--max-cost", "1.5")
	if _, most := m.saw(); s.Cells[0].Pass.N != 3 || most != 1 {
		t.Errorf("with money for one at a time: %+v, and %d requests side by side", s.Cells[0], most)
	}
	read(6, "--model", "openai/a", "--trial-cost", "1", "--max-cost", "0.999999", "--anew")
	if c := s.Cells[0]; c.Pass.N != 0 || c.Cut != 3 || s.Performed != 0 {
		t.Errorf("with less money than one may cost: %+v", c)
	}
	read(6, "--model", "openai/a", "--trial-cost", "0.000001")
	if c := s.Cells[0]; c.Pass.N != 0 || c.Cut != 3 || s.Trials[0].Run == "" {
		t.Errorf("with a limit that each reaches: %+v", c)
	}
	cut := s.Trials[0].Run
	read(0, "--model", "openai/a", "--trial-cost", "1")
	if c := s.Cells[0]; c.Pass.N != 3 || c.Cut != 0 || s.Trials[0].Run != cut {
		t.Errorf("with a higher limit: %+v", c)
	}
	read(0, "--model", "openai/free", "--max-cost", "1", "--trial-tokens", "100000")
	if c := s.Cells[0]; c.Pass.N != 3 || c.Usage.CostUSD != nil {
		t.Errorf("without a price, and with a bound of tokens: %+v", c)
	}
	read(6, "--model", "openai/free", "--trial-tokens", "1", "--anew")
	if c := s.Cells[0]; c.Cut != 3 {
		t.Errorf("with a bound of one token: %+v", c)
	}
}

// Forks of one state read what they share from the cache of a real server, one after another: 0.95 of it at least.
func TestM03TheTrialsOfASweepReadTheirPrefixFromTheCache(t *testing.T) {
	t.Parallel()
	base := modeltest.Llama(t)
	p := newPlace(t, "OPENAI_BASE_URL="+base, "OPENAI_API_KEY=")
	write(t, p.dir, "ping.yaml", strings.Replace(fmt.Sprintf(pingPong, strings.Repeat("It is a long rally. ", 60)), "roles:", "workspace: {track: true}\nroles:", 1))
	p.wf(0, "run", "ping.yaml", "--model", "openai/tiny", "-q")
	var origin api.Run
	p.read(&origin, "show", "-1")
	var of api.Cache
	p.read(&of, "cache", string(origin.ID))
	shared := int64(0) // what ping#4 sent: all of it is in the prompt of ping#5
	for _, c := range of.Items {
		if c.Step == "ping#4" {
			shared = *c.Input
		}
	}
	var s api.Sweep
	p.read(&s, "sweep", string(origin.ID)+":ping#5", "-n", "5", "--parallel", "1")
	if !s.Complete || len(s.Trials) != 5 || s.Cells[0].Pass.Low == nil {
		t.Fatalf("complete %v, %+v", s.Complete, s.Cells)
	}
	for _, x := range s.Trials {
		var c api.Cache
		p.read(&c, "cache", string(x.Run))
		for _, call := range c.Items {
			if call.Step == "ping#5" {
				t.Logf("trial %d: prompt %d, cached %d, shared %d", x.N, *call.Input, *call.Cached, shared)
				if float64(*call.Cached) < 0.95*float64(shared) {
					t.Errorf("trial %d read %d tokens from the cache, and shares %d", x.N, *call.Cached, shared)
				}
			}
		}
	}
	if s.Usage.Cached == 0 || s.Of.Shared.Input < shared {
		t.Errorf("the sweep tells of %d cached and %d shared", s.Usage.Cached, s.Of.Shared.Input)
	}
}
