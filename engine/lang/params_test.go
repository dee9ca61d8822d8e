package lang_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"wf/engine/lang"
	"wf/protocol"
)

func withParams(params string) (*lang.Program, []lang.Diagnostic, string) {
	src := "wf: 1\nlimits: {duration: 1m, cost_usd: 1}\nroles:\n  a:\n    prompt: Hi\n    params: " + params + "\n"
	p, ds := lang.Load([]byte(src), lang.Options{File: "t.yaml"})
	return p, ds, src
}

// meant are the params of a definition as a model is sent them.
func meant(t interface{ Fatal(...any) }, r *protocol.Role) string {
	var v any
	d := json.NewDecoder(strings.NewReader(r.Params))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return canonical(t, protocol.MapParams(v, func(at string, v any) any {
		if s, ok := v.(string); ok && protocol.DecimalParam(s, at, r.ParamsTexts) {
			return json.Number(s)
		}
		return v
	}))
}

func canonical(t interface{ Fatal(...any) }, v any) string {
	b, err := protocol.CanonicalJSON(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestF113ParamsAreWhatTheFileSays makes params of all shapes: texts, also those that look like numbers, stay texts, and
// numbers numbers; and a definition that is written as a file and read again is the same.
func TestF113ParamsAreWhatTheFileSays(t *testing.T) {
	scalar := rapid.Custom(func(t *rapid.T) any {
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0:
			return rapid.SampledFrom([]string{"1.5", "-0.25", "1.0", "2", "1.50", "1.5e3", ".5", "x", "", "001.5"}).Draw(t, "text")
		case 1:
			return rapid.IntRange(-9, 9).Draw(t, "int")
		case 2:
			return float64(rapid.IntRange(-99, 99).Draw(t, "hundredths")) / 100
		case 3:
			return rapid.Bool().Draw(t, "bool")
		}
		return rapid.StringMatching(`-?[0-9]{1,2}\.[0-9]{1,2}`).Draw(t, "decimal")
	})
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		if depth == 0 {
			return scalar
		}
		return rapid.OneOf(scalar, rapid.Map(rapid.SliceOfN(value(depth-1), 0, 3), func(s []any) any { return s }),
			rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"a/b", "c~d", "enum", "0"}), value(depth-1), 0, 3), func(m map[string]any) any { return m }))
	}
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.MapOfN(rapid.SampledFrom([]string{"stop", "response_format", "seed", "x/y"}), value(3), 1, 4).Draw(t, "params")
		text := canonical(t, want)
		p, ds, _ := withParams(text)
		if p == nil {
			t.Fatal(text, ds)
		}
		role := &p.Workflow.Roles[0]
		if got := meant(t, role); got != text {
			t.Fatalf("%s is sent as %s", text, got)
		}
		if again, ds := lang.Reload(p.Workflow, nil, lang.Options{}); again == nil {
			t.Fatalf("%s, texts %q, is not read again: %v", role.Params, role.ParamsTexts, ds)
		}
	})
}

// TestF113ParamsKeepTheirOldDefinitions holds that what has no such texts has the definition that it had.
func TestF113ParamsKeepTheirOldDefinitions(t *testing.T) {
	for given, want := range map[string]string{
		`{temperature: 0.70, top_p: 1.0, stop: ["END"], seed: 7}`: `{"seed":7,"stop":["END"],"temperature":"0.7","top_p":1}`,
		`{temperature: "0.7", top_p: "1"}`:                        `{"temperature":"0.7","top_p":"1"}`, // numbers to every provider
	} {
		p, ds, _ := withParams(given)
		if p == nil {
			t.Error(given, ds)
		} else if r := p.Workflow.Roles[0]; r.Params != want || r.ParamsTexts != nil {
			t.Errorf("%s: %s, texts %q; want %s", given, r.Params, r.ParamsTexts, want)
		}
	}
}

// TestF113ParamsThatCannotBeAreRefusedAtTheirPlace holds that a model is asked in vain for none of them.
func TestF113ParamsThatCannotBeAreRefusedAtTheirPlace(t *testing.T) {
	type refused struct{ params, want string }
	table := []refused{
		{"{temperature: hot}", "6:27: error[WF002]: params.temperature wants a number, got hot"},
		{"{temperature: inf}", "params.temperature wants a number, got inf"},
		{"{temperature: 'nan'}", "params.temperature wants a number, got nan"},
		{"{temperature: '1e-1'}", "params.temperature wants a number, got 1e-1"}, // it would be sent as a text
		{"{temperature: '.5'}", "params.temperature wants a number, got .5"},
		{"{temperature: .inf}", ".inf is no JSON number"},
		{"{temperature: true}", "params.temperature wants a number, got true"},
		{"{top_p: [1]}", "6:21: error[WF002]: params.top_p wants a number, got a list"},
		{"{max_tokens: 1.5}", "6:26: error[WF002]: params.max_tokens wants an integer, at least 1, got 1.5"},
		{"{max_completion_tokens: -1}", "params.max_completion_tokens wants an integer, at least 1, got -1"},
		{"{betas: x}", "params.betas wants a list of texts, got x"},
		{"{betas: [1]}", "params.betas wants a list of texts, got a list"},
		{"{cache_ttl: 3m}", `params.cache_ttl wants "5m" or "1h", got 3m`},
		{"{tool_choice: 5}", "params.tool_choice wants auto, none, required, the name of a tool, or a mapping, got 5"},
		{"{speculative: true}", "params.speculative wants a mapping, got true"},
		{"{seed: 1e20}", "params.seed: 1e+20 lies beyond ±(2^53−1)"},
		{"{seed: 9007199254740993}", "9007199254740993 is not an integer within ±(2^53−1)"},
	}
	for name, key := range protocol.ReservedParams {
		hint := "= remove it\n"
		if key != "" {
			hint = "= say it by " + key + ", a key of the role\n"
		}
		table = append(table, refused{"{" + name + ": x}", "6:14: error[WF002]: params." + name + " is written by wf itself"}, refused{"{temperature: 1, " + name + ": [y]}", hint})
	}
	for _, c := range table {
		p, ds, src := withParams(c.params)
		var got strings.Builder
		lang.Render(&got, []byte(src), ds, false)
		if p != nil || !strings.Contains(got.String(), c.want) || !strings.Contains(got.String(), "\n1 error,") {
			t.Errorf("%s: want %s, got:\n%s", c.params, c.want, got.String())
		}
	}
	for _, fine := range []string{"{}", "{temperature: 0, max_tokens: 1, tool_choice: required, betas: [a], cache_ttl: 1h, seed: ~}", `{tool_choice: {type: tool, name: x}, streams: 1}`, "{max_tokens: 0x10}", "{top_k: 0x10, min_p: 1e-1, top_p: .5, temperature: '-0.5', presence_penalty: '1'}"} {
		if p, ds, _ := withParams(fine); p == nil {
			t.Errorf("%s: %v", fine, ds)
		}
	}
}
