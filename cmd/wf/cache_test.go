package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wf/agentkit"
	"wf/agentkit/prompt"
	"wf/cas"
	"wf/engine"
	"wf/engine/lang"
	"wf/protocol"
	"wf/roles"
)

// Why a call read less from the cache than it could.
func TestMissesHaveALabel(t *testing.T) {
	n := func(v int64) *int64 { return &v }
	const minute = int64(time.Minute / time.Microsecond)
	whole := visitPrompt{size: 10_000, before: "a#1", prefix: prompt.Prefix{Shared: 8_000, Of: 8_000}}
	broken := whole
	broken.prefix, broken.part = prompt.Prefix{Shared: 10, Of: 8_000, Part: "system"}, "system"
	again := whole
	again.fresh = true
	first := callCache{Step: "a#1", Model: "m", Input: n(2_000), at: 0}
	for name, c := range map[string]struct {
		before *callCache
		prompt visitPrompt
		usage  protocol.Usage
		at     int64
		step   string
		want   string
	}{
		"all of it was read":      {&first, whole, protocol.Usage{Model: "m", Input: n(2_500), Cached: n(1_990)}, minute, "a#2", ""},
		"nobody told":             {&first, whole, protocol.Usage{Model: "m", Input: n(2_500)}, minute, "a#2", ""},
		"nothing was sent before": {nil, visitPrompt{}, protocol.Usage{Model: "m", Input: n(2_500), Cached: n(0)}, 0, "a#1", "cold"},
		"another model":           {&first, whole, protocol.Usage{Model: "o", Input: n(2_500), Cached: n(0)}, minute, "a#2", "model"},
		"too late":                {&first, whole, protocol.Usage{Model: "m", Input: n(2_500), Cached: n(0)}, 6 * minute, "a#2", "ttl"},
		"the provider's doing":    {&first, whole, protocol.Usage{Model: "m", Input: n(2_500), Cached: n(0)}, minute, "a#2", "provider"},
		"too short to be cached":  {&first, whole, protocol.Usage{Model: "m", Input: n(1_200), Cached: n(0)}, minute, "a#2", "short"},
		"within a visit":          {&first, whole, protocol.Usage{Model: "m", Input: n(2_500), Cached: n(0)}, minute, "a#1", "provider"},
		"an attempt began anew":   {&first, again, protocol.Usage{Model: "m", Input: n(2_500), Cached: n(0)}, minute, "a#1", "attempt"},
	} {
		r := newCacheReader(nil)
		if c.before != nil {
			r.newest["a#1"] = c.before
		}
		p := c.prompt
		if got := r.call(c.step, &p, c.usage, c.at); got.Miss != c.want {
			t.Errorf("%s: %q, want %q", name, got.Miss, c.want)
		}
	}
	r := newCacheReader(nil)
	r.newest["a#1"] = &first
	got := r.call("a#2", &broken, protocol.Usage{Model: "m", Input: n(2_500), Cached: n(2)}, minute)
	if got.Differs == nil || *got.Differs != 10 || got.Part != "system" || got.Ratio >= 1 {
		t.Errorf("a prompt that broke in its system message: %+v", got)
	}
}

// Calls before a compaction in the middle of a visit are compared by the prompt that they had,
// and those behind it by the one that follows: each is the one whose digest was recorded.
func TestEachCallIsComparedByThePromptThatItHad(t *testing.T) {
	p, diags := lang.Load([]byte(compactingYAML), lang.Options{File: "compacting.yaml"})
	if p == nil {
		t.Fatal(diags)
	}
	dir := t.TempDir()
	write(t, dir, "replies.yaml", compactingReplies)
	s, _ := dying(t, filepath.Join(dir, ".wf"), -1)
	e := &engine.Engine{Store: s, Performers: map[protocol.Action]roles.Performer{protocol.ActPrompt: agentkit.Agent{}, protocol.ActSet: roles.Set{}}}
	id, _, err := e.Begin(t.Context(), engine.Launch{Program: p, Inputs: protocol.JSON("{}"), Workspace: t.TempDir(), File: filepath.Join(dir, "compacting.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Drive(t.Context(), id, engine.DriveOptions{}); err != nil {
		t.Fatal(err)
	}
	r := newCacheReader(e.Histories(t.Context()))
	sent := map[string]string{} // digest of P_k, as recorded
	var parts []string
	for x, err := range s.After(t.Context(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if x.Type == protocol.EvPrompt {
			d, err := cas.DecodeData[protocol.PromptSent](&x.Event)
			if err != nil {
				t.Fatal(err)
			}
			sent[x.StepName()] = d.Digest
		}
		c, err := r.event(&x)
		if err != nil {
			t.Fatal(err)
		}
		if c == nil {
			continue
		}
		parts = append(parts, fmt.Sprintf("%s call %d %s", c.Step, c.Call, c.Part))
		want, known := sent[c.Step]
		if got := cas.Raw(r.prompts[c.Step].bytes).Link.String(); known && got != want {
			t.Errorf("%s, call %d: compared by the prompt %s, sent was %s", c.Step, c.Call, got, want)
		}
		if c.Part == "" && c.Ratio != 1 {
			t.Errorf("%s, call %d: %+v", c.Step, c.Call, c)
		}
	}
	if d := cmp.Diff([]string{
		"coder#1 call 1 ", "coder#2 call 1 ",
		"coder#3 call 1 ", "coder#3 call 2 compaction", "coder#3 call 3 compaction",
		"coder#4 call 1 ", "coder#4 call 2 ", "coder#4 call 3 ", "coder#4 call 4 compaction", "coder#4 call 5 compaction", "coder#4 call 6 compaction",
	}, parts); d != "" {
		t.Errorf("calls (-want +have):\n%s", d)
	}
}

// forgetful is an agent that offers other tools at each visit, as ours never does.
type forgetful struct{ agentkit.Agent }

func (f forgetful) Prepare(ctx context.Context, turn protocol.Turn) (roles.Preparation, error) {
	turn.Visit, turn.History.Tools = 1, ""
	if turn.EdgePrompt == "Again." {
		turn.Role.Tools = []string{"read_file", "write_file"}
	}
	return f.Agent.Prepare(ctx, turn)
}

// A tool list that changed between two visits fails the build with the first byte that differs.
func TestABrokenPrefixInTheToolsFailsTheCheck(t *testing.T) {
	p := newPlace(t)
	write(t, p.dir, "replies.yaml", "a#1: [{text: one}]\na#2: [{text: two}]\n")
	def, diags := lang.Load([]byte(`wf: 1
name: forgetful
roles:
  a: {prompt: Say it., model: script/replies.yaml, tools: [read_file], timeout: 1m}
edges:
  - {from: START, to: a}
  - {from: a, to: a, limit: 1, on_limit: END, prompt: Again.}
`), lang.Options{File: "forgetful.yaml"})
	if def == nil {
		t.Fatal(diags)
	}
	s, err := cas.Open(t.Context(), filepath.Join(p.dir, ".wf"), cas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e := &engine.Engine{Store: s, Performers: map[protocol.Action]roles.Performer{protocol.ActPrompt: forgetful{}}}
	id, _, err := e.Begin(t.Context(), engine.Launch{Program: def, Inputs: protocol.JSON("{}"), Workspace: p.dir, File: filepath.Join(p.dir, "forgetful.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Drive(t.Context(), id, engine.DriveOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var c cacheJSON
	if err := json.Unmarshal(p.wf(1, "cache", string(id), "--min-prefix", "1.0", "-o", "json"), &c); err != nil {
		t.Fatal(err)
	}
	last := c.Items[len(c.Items)-1]
	if last.Step != "a#2" || last.Part != "tools" || last.Differs == nil || *last.Differs == 0 || *last.Differs != last.Shared || last.Ratio >= 1 {
		t.Errorf("the broken call: %+v", last)
	}
	p.wf(0, "verify", string(id)) // that is no damage
}
