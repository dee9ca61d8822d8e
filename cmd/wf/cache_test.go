package main

import (
	"testing"
	"time"

	"wf/agentkit"
	"wf/protocol"
)

// Why a call read less from the cache than it could.
func TestMissesHaveALabel(t *testing.T) {
	n := func(v int64) *int64 { return &v }
	const minute = int64(time.Minute / time.Microsecond)
	whole := visitPrompt{bytes: make([]byte, 10_000), before: "a#1", prefix: agentkit.Prefix{Shared: 8_000, Of: 8_000}}
	broken := whole
	broken.prefix, broken.part = agentkit.Prefix{Shared: 10, Of: 8_000, Part: "system"}, "system"
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
		r := cacheReader{newest: map[string]*callCache{}}
		if c.before != nil {
			r.newest["a#1"] = c.before
		}
		p := c.prompt
		if got := r.call(c.step, &p, c.usage, c.at); got.Miss != c.want {
			t.Errorf("%s: %q, want %q", name, got.Miss, c.want)
		}
	}
	r := cacheReader{newest: map[string]*callCache{"a#1": &first}}
	got := r.call("a#2", &broken, protocol.Usage{Model: "m", Input: n(2_500), Cached: n(2)}, minute)
	if got.Differs == nil || *got.Differs != 10 || got.Part != "system" || got.Ratio >= 1 {
		t.Errorf("a prompt that broke in its system message: %+v", got)
	}
}
