package price_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"wf/agentkit/price"
	"wf/protocol"
)

func n(v int64) *int64 { return &v }

func TestTheTableOfTheBinaryIsRead(t *testing.T) {
	if table := price.Standard(); len(table.Date) != 10 || len(table.Prices) < 20 {
		t.Errorf("got %+v", table)
	}
}

func TestAModelIsFoundByNameAndVersion(t *testing.T) {
	table := price.Standard().With(map[string]price.Price{"local/*": {Input: 1, Output: 2}, "local/big": {Input: 3}, "local/big*": {Input: 4}})
	for model, want := range map[string]int64{
		"anthropic/claude-sonnet-4-5":          3000000,
		"anthropic/claude-sonnet-4-5-20250929": 3000000,
		"anthropic/claude-opus-4-20250514":     15000000,
		"openai/gpt-5":                         1250000,
		"openai/gpt-5-2025-08-07":              1250000,
		"openai/gpt-5-mini":                    250000,
		"openai/gpt-5-mini-2025-08-07":         250000,
		"script/replies.yaml":                  0,
		"local/any":                            1,
		"local/big":                            3,
		"local/bigger":                         4,
	} {
		if p, ok := table.Of(model); !ok || p.Input != want {
			t.Errorf("%s costs %d, %v", model, p.Input, ok)
		}
	}
	for _, model := range []string{"openai/gpt-5.6", "openai/gpt-5-codex", "openai/gpt-55", "claude-sonnet-4-5", "anthropic/claude-sonnet-4-6", ""} {
		if p, ok := table.Of(model); ok {
			t.Errorf("%s costs %+v", model, p)
		}
	}
}

func TestCostCountsEachTokenOnce(t *testing.T) {
	table := price.Standard()
	for name, c := range map[string]struct {
		usage protocol.Usage
		want  int64 // micro-dollars; −1 is unknown
	}{
		"fresh, read, written, said": {protocol.Usage{Model: "anthropic/claude-sonnet-4-5", Input: n(1_000_000), Cached: n(600_000), CacheWrite5m: n(200_000), CacheWrite1h: n(100_000), Output: n(10_000)}, 300_000 + 180_000 + 750_000 + 600_000 + 150_000},
		"writes cost like input":     {protocol.Usage{Model: "openai/gpt-5", Input: n(1000), CacheWrite5m: n(1000), Output: n(0)}, 1250},
		"unknown model":              {protocol.Usage{Model: "local/x", Input: n(1)}, -1},
		"nothing told":               {protocol.Usage{Model: "openai/gpt-5"}, -1},
		"a script":                   {protocol.Usage{Model: "script/x", Input: n(7), Output: n(7)}, 0},
	} {
		got := table.Cost(c.usage)
		if c.want < 0 != (got == nil) || got != nil && *got != c.want*price.PerMicro {
			t.Errorf("%s: got %v, want %d", name, got, c.want)
		}
	}
}

// However calls are grouped, the sums agree; and no call makes a sum smaller.
func TestSumsAgree(t *testing.T) {
	table := price.Standard()
	rapid.Check(t, func(t *rapid.T) {
		var sum, least int64
		all := protocol.Usage{Model: "anthropic/claude-haiku-4-5", Input: n(0), Cached: n(0), CacheWrite5m: n(0), Output: n(0)}
		for range rapid.IntRange(1, 20).Draw(t, "calls") {
			input := rapid.Int64Range(0, 200_000).Draw(t, "input")
			cached := rapid.Int64Range(0, input).Draw(t, "cached")
			written := rapid.Int64Range(0, input-cached).Draw(t, "written")
			u := protocol.Usage{Model: all.Model, Input: n(input), Cached: n(cached), CacheWrite5m: n(written), Output: n(rapid.Int64Range(0, 9000).Draw(t, "output"))}
			sum += *table.Cost(u)
			if sum < least {
				t.Fatalf("fell from %d to %d", least, sum)
			}
			least = sum
			*all.Input += input
			*all.Cached += cached
			*all.CacheWrite5m += written
			*all.Output += *u.Output
		}
		if got := *table.Cost(all); got != sum {
			t.Fatalf("together %d, one by one %d", got, sum)
		}
	})
}

func TestBadTables(t *testing.T) {
	for text, want := range map[string]string{
		"date: \"2025-01-01\"\nprices: {a/b: {inptu: 3}}": "inptu",
		"prices: {a/b: {input: -3, output: 1}}":           "no price",
		"- a":                                             "",
	} {
		if _, err := price.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}
