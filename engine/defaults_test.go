package engine_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"wf/agentkit/embed"
	"wf/agentkit/memory"
	"wf/agentkit/prompt"
	"wf/engine/lang"
	"wf/engine/rules"
	"wf/protocol"
)

func keysByPath() map[string]lang.Entry {
	out := map[string]lang.Entry{}
	for _, e := range lang.Reference() {
		out[e.Path] = e
	}
	return out
}

// Numbers that the page of the language names are those of the code.
func TestTheDefaultsOfTheReferenceAreThoseOfTheEngine(t *testing.T) {
	keys := keysByPath()
	if got, want := keys["limits.steps"].Default, strconv.Itoa(protocol.DefaultSteps); got != want {
		t.Errorf("limits.steps: %s, want %s", got, want)
	}
	pause := func(attempt int) (least, most time.Duration) { // of all that chance gives
		least = math.MaxInt64
		for _, chance := range []float64{0, 0.5, 1} {
			due, _ := rules.RetryAt(&protocol.Retry{Attempts: 100}, "timeout", attempt, 0, chance)
			d := time.Duration(due) * time.Microsecond
			least, most = min(least, d), max(most, d)
		}
		return least, most
	}
	delay, err := time.ParseDuration(keys["roles.*.retry.delay"].Default)
	if err != nil {
		t.Fatal(err)
	}
	bound, err := time.ParseDuration(keys["roles.*.retry.max_delay"].Default)
	if err != nil {
		t.Fatal(err)
	}
	factor, err := strconv.Atoi(keys["roles.*.retry.factor"].Default)
	if err != nil {
		t.Fatal(err)
	}
	for attempt, want := range map[int]time.Duration{1: delay, 2: delay * time.Duration(factor), 3: delay * time.Duration(factor*factor), 50: bound} {
		least, most := pause(attempt)
		if least < want*8/10 || most > want*12/10 || least > want || most < want {
			t.Errorf("the pause after attempt %d is from %v to %v, want %v give or take a fifth", attempt, least, most, want)
		}
	}
}

// A loop whose bound is reached ends as on_limit says; without the key as with its default.
func TestTheDefaultOfOnLimitIsThatOfTheReference(t *testing.T) {
	word := keysByPath()["edges.*.on_limit"].Default
	outcome := func(key string) string {
		b := newBench(t)
		_, v := b.run("wf: 1\nname: t\nroles:\n  a: {set: {x: 1}}\n  b: {set: {x: 2}}\nedges:\n  - {from: START, to: a}\n"+
			"  - {from: a, to: b}\n  - {from: b, to: END, when: output.x > 2}\n  - {from: b, to: a, limit: 2"+key+"}\n", nil)
		return fmt.Sprint(v.Status, steps(v))
	}
	without, with := outcome(""), outcome(", on_limit: "+word)
	if without != with || !strings.HasPrefix(without, string(protocol.Suspended)) {
		t.Errorf("%s without the key, %s with %s", without, with, word)
	}
}

func TestTheDefaultsOfTheReferenceAreThoseOfAgents(t *testing.T) {
	keys := keysByPath()
	for path, want := range map[string]int{
		"roles.*.max_turns": prompt.DefaultTurns, "roles.*.compaction.keep": prompt.DefaultKeep, "roles.*.memory.top_k": memory.DefaultTopK,
	} {
		if got := keys[path].Default; got != strconv.Itoa(want) {
			t.Errorf("%s: %s, want %d", path, got, want)
		}
	}
	for path, words := range map[string][]string{
		"roles.*.max_turns":            {fmt.Sprint(prompt.DefaultTaskTurns)},
		"roles.*.compaction.watermark": {fmt.Sprint(prompt.DefaultWatermark)},
		"roles.*.memory.distance":      {fmt.Sprint(embed.Near("openai/x")), fmt.Sprint(embed.Near(embed.LexicalName))},
		"roles.*.memory.embed":         {embed.LexicalName},
		"limits":                       {fmt.Sprint(protocol.DefaultSteps)},
	} {
		for _, word := range words {
			if !strings.Contains(keys[path].Without, word) {
				t.Errorf("%s: %q does not name %s", path, keys[path].Without, word)
			}
		}
	}
}
