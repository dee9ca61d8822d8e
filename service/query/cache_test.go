package query

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wf/agentkit"
	"wf/agentkit/prompt"
	"wf/api"
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
	first := cacheCall{CacheCall: &api.CacheCall{Step: "a#1", Model: "m", Input: n(2_000)}}
	for name, c := range map[string]struct {
		before *cacheCall
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
	compacting, err := os.ReadFile("testdata/compacting.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, diags := lang.Load(compacting, lang.Options{File: "compacting.yaml"})
	if p == nil {
		t.Fatal(diags)
	}
	s, err := cas.Open(t.Context(), filepath.Join(t.TempDir(), ".wf"), cas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	e := &engine.Engine{Store: s, Performers: map[protocol.Action]roles.Performer{protocol.ActPrompt: agentkit.Agent{}, protocol.ActSet: roles.Set{}}}
	file, err := filepath.Abs("testdata/compacting.yaml")
	if err != nil {
		t.Fatal(err)
	}
	id, _, err := e.Begin(t.Context(), engine.Launch{Program: p, Inputs: protocol.JSON("{}"), Workspace: t.TempDir(), File: file})
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
