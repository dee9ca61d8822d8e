package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/agentkit/modeltest"
	"wf/agentkit/script"
	"wf/api"
	"wf/engine/lang"
	"wf/workflows"
)

// place is a directory with a store of its own, in which wf is run.
type place struct {
	t   *testing.T
	dir string
	env []string
}

func newPlace(t *testing.T, env ...string) place {
	t.Helper()
	dir := t.TempDir()
	return place{t, dir, append([]string{"HOME=" + t.TempDir(), "XDG_STATE_HOME=", "XDG_DATA_HOME=", "XDG_CONFIG_HOME=",
		"XDG_CACHE_HOME=", "WF_STORE=" + filepath.Join(dir, ".wf"), "ANTHROPIC_API_KEY=k", "OPENAI_API_KEY=k"}, env...)}
}

// killed starts wf and kills it -9 once there is something to receive, with which it is gone.
func (p place) killed(at <-chan struct{}, args ...string) {
	p.t.Helper()
	cmd := exec.Command("wf", args...)
	cmd.Dir, cmd.Env = p.dir, append(os.Environ(), p.env...)
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-at:
	case err := <-ended:
		p.t.Fatalf("the run ended before it was killed: %v\n%s", err, &said)
	}
	if err := cmd.Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
	<-ended
}

// wf runs a command, checks its exit status, and gives its stdout.
func (p place) wf(exit int, args ...string) []byte {
	p.t.Helper()
	cmd := exec.Command("wf", args...)
	cmd.Dir, cmd.Env = p.dir, append(os.Environ(), p.env...)
	out, err := cmd.Output()
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended) && ended.ExitCode() == exit:
	case errors.As(err, &ended):
		p.t.Fatalf("wf %s: %v, want exit %d\n%s\n%s", strings.Join(args, " "), err, exit, out, ended.Stderr)
	case err != nil:
		p.t.Fatal(err)
	case exit != 0:
		p.t.Fatalf("wf %s: exit 0, want %d\n%s", strings.Join(args, " "), exit, out)
	}
	return out
}

// read runs a command that answers in JSON.
func (p place) read(into any, args ...string) {
	p.t.Helper()
	if err := json.Unmarshal(p.wf(0, append(args, "-o", "json")...), into); err != nil {
		p.t.Fatalf("wf %s: %v", strings.Join(args, " "), err)
	}
}

// prove checks the newest run: its bytes, its decisions and prompts, and that each prompt
// begins with the one before.
func (p place) prove() api.Cache {
	p.t.Helper()
	p.wf(0, "verify", "-1")
	p.wf(0, "replay", "-1", "--check")
	var c api.Cache
	p.read(&c, "cache", "-1", "--min-prefix", "1.0")
	if c.MinPrefix != 1 {
		p.t.Errorf("the shared prefix is %v", c.MinPrefix)
	}
	return c
}

// demoPlace is the project of wf demo, with what its model says, call for call.
func demoPlace(t *testing.T, env ...string) place {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no go in the PATH")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	if set := os.Getenv("GOCACHE"); set != "" {
		cache = set
	} else {
		cache = filepath.Join(cache, "go-build")
	}
	p := newPlace(t, append(env, "GOCACHE="+cache)...)
	if err := workflows.WriteDemo(p.dir, lang.JSONSchema()); err != nil {
		t.Fatal(err)
	}
	return p
}

// demoAnswers are the replies of the demo's script, as a server gives them.
func demoAnswers(t *testing.T) []modeltest.Answer {
	t.Helper()
	text, err := workflows.Files.ReadFile("demo/replies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	replies, err := script.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	var out []modeltest.Answer
	for _, visit := range []string{"coder#1", "coder#2", "reviewer#1"} {
		for _, r := range replies[visit] {
			if r.Text != nil {
				out = append(out, modeltest.Text(*r.Text))
				continue
			}
			var calls []modeltest.Call
			for _, c := range r.Tools {
				calls = append(calls, modeltest.Call{ID: fmt.Sprintf("call_%d_%d", len(out), len(calls)), Name: c.Tool, Args: string(c.Args)})
			}
			out = append(out, modeltest.Calls(calls...))
		}
	}
	return out
}

// The demo's workflow, as it is, repairs the module with models of either wire just as it does
// with its script: the same steps conclude the same.
func TestTheDemoRunsUnchangedOnBothWires(t *testing.T) {
	oneAfterAnother(t)
	t.Parallel()
	scripted := demoPlace(t)
	scripted.wf(0, "run", workflows.DemoWorkflow, "-q")
	var want api.Run
	scripted.read(&want, "show", "-1")
	for _, wire := range wires {
		t.Run(wire.name, func(t *testing.T) {
			answers := demoAnswers(t)
			s := modeltest.Start(t, answers...)
			p := demoPlace(t, wire.env(s))
			p.wf(0, "run", workflows.DemoWorkflow, "--model", wire.model, "-q")
			var got api.Run
			p.read(&got, "show", "-1")
			if d := cmp.Diff(concluded(want), concluded(got)); d != "" {
				t.Errorf("concluded (-script +%s):\n%s", wire.name, d)
			}
			if want.Result == nil || got.Result == nil || *want.Result != *got.Result {
				t.Errorf("result %v, with the script it is %v", got.Result, want.Result)
			}
			c := p.prove()
			if len(c.Items) != len(answers) {
				t.Errorf("%d calls, want %d", len(c.Items), len(answers))
			}
			checkVisits(t, c.Items, 1, 1)
		})
	}
}

// concluded is what a run came to, without how and when.
func concluded(v api.Run) (out []string) {
	for _, s := range v.Steps {
		cid := "open"
		if s.CID != nil {
			cid = *s.CID
		}
		out = append(out, s.ID+" "+s.Status+" "+cid)
	}
	return append(out, string(v.Status), string(v.Outputs))
}

// checkVisits checks, for every visit that goes on with another one and is at least the
// from-th of its role, that its first request read from the cache what the other one's first
// request sent.
func checkVisits(t *testing.T, calls []*api.CacheCall, from int, slack int64) {
	t.Helper()
	var firsts []*api.CacheCall
	for _, c := range calls {
		if c.Call == 1 && c.Input != nil {
			firsts = append(firsts, c)
		}
	}
	checkCached(t, firsts, from, slack)
}

// withoutSchema is the demo's workflow for a model that keeps no schema: the output of its
// agents is whatever they say, and no edge asks for a field of it.
func withoutSchema(t *testing.T, text string) string {
	t.Helper()
	for _, cut := range []struct {
		pattern, instead string
		times            int
	}{
		{`(?m)^    output:.*\n(?:      .*\n)+`, "", 2},
		{`, when: output\.(?:status|verdict) == "\w+"`, "", 2},
		{`(?m)^  - \{from: (?:coder, to: gate|reviewer, to: coder).*\n`, "", 2},
		{`steps\.coder\?\.output\.summary`, "steps.coder?.status", 2},
		{`steps\.reviewer\?\.output\.reason`, "steps.reviewer?.text", 1},
	} {
		re := regexp.MustCompile(cut.pattern)
		if n := len(re.FindAllString(text, -1)); n != cut.times {
			t.Fatalf("%s is there %d times, want %d:\n%s", cut.pattern, n, cut.times, text)
		}
		text = re.ReplaceAllString(text, cut.instead)
	}
	return text
}

// A model of random weights repairs nothing: the coder is entered until its bound, a person
// lets it try once more, and every prompt is read from the engine's cache as far as the one
// before it went.
func TestTheDemoRunsOnALlamaServer(t *testing.T) {
	t.Parallel()
	oneAfterAnother(t)
	// Random weights may never come to an end by themselves.
	base := modeltest.Llama(t, "-n", "48")
	p := demoPlace(t, "OPENAI_BASE_URL="+base)
	file := filepath.Join(p.dir, filepath.FromSlash(workflows.DemoWorkflow))
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, p.dir, "schemaless.yaml", withoutSchema(t, string(text)))

	p.wf(8, "run", "schemaless.yaml", "--model", "openai/tiny", "-q")
	checkVisits(t, p.prove().Items, 2, 1)
	p.wf(8, "answer", "-1", "--choice", "retry")
	c := p.prove()
	checkVisits(t, c.Items, 2, 1)
	visits := 0
	for _, i := range c.Items {
		if i.Call == 1 && strings.HasPrefix(i.Step, "coder#") {
			visits++
		}
	}
	if visits != 4 {
		t.Errorf("the coder was entered %d times, want 4", visits)
	}
}
