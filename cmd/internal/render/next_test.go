package render

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/api"
	"wf/protocol"
)

// What is suggested is what the question marks as primary, so that a command that may have acted
// is not suggested to be run again; of unmarked choices it is the first.
func TestTheSuggestedAnswerIsThePrimaryOne(t *testing.T) {
	ask := func(choices ...protocol.Choice) *api.Run {
		return &api.Run{ID: "RUN", Status: protocol.Waiting, Waiting: []api.Waiting{{Step: "a#1", Kind: protocol.WaitChoice, Choices: choices}}}
	}
	for want, v := range map[string]*api.Run{
		"wf answer 'RUN:a#1' --choice fail":       ask(protocol.Choice{Value: "again"}, protocol.Choice{Value: "fail", Primary: true}),
		"wf answer 'RUN:a#1' --choice again":      ask(protocol.Choice{Value: "again"}, protocol.Choice{Value: "fail"}),
		"wf answer 'RUN:a#1' --choice 'not that'": ask(protocol.Choice{Value: "not that"}),
	} {
		if got := Next(v); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// A run keeps its definition: where its file is here, the command is suggested that goes on under a corrected one.
func TestACorrectedFileIsGoneOnWith(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("my flow.yaml", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const plain = "wf log RUN · wf resume RUN"
	for want, v := range map[string]*api.Run{
		plain + " · correct 'my flow.yaml', then wf fork RUN --with 'my flow.yaml' --run": {Suspended: protocol.ByError, Info: api.RunInfo{File: filepath.Join(dir, "my flow.yaml")}},
		plain: {Suspended: protocol.ByError, Info: api.RunInfo{File: filepath.Join(dir, "elsewhere.yaml")}},
	} {
		v.ID, v.Status = "RUN", protocol.Suspended
		if got := Next(v); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		v.Suspended = protocol.ByInterrupt
		if got := Next(v); got != plain {
			t.Errorf("of an interrupted run: %s", got)
		}
	}
}

// F-07: the command that is suggested for a form has values that the form takes; where none are known, the command asks for them.
func TestTheSuggestedFieldsFitTheForm(t *testing.T) {
	for form, want := range map[string]string{
		`{"type":"object","required":["b","a"],"properties":{"a":{"type":"integer","minimum":18},"b":{"type":"string","minLength":3}}}`:         " --field b=……… --field a=18",
		`{"type":"object","required":["age","who"],"properties":{"age":{"type":"integer","default":36},"who":{"enum":["x y","z"]},"c":{}}}`:     ` --field age=36 --field 'who=x y'`,
		`{"type":"object","properties":{"tea":{"type":"boolean"},"when":{"type":"string"}}}`:                                                    " --field tea=true",
		`{"type":"object","required":["list"],"properties":{"list":{"type":"array","minItems":1,"items":{"type":"string"}}}}`:                   ` --field 'list=["…"]'`,
		`{"type":"object","required":["code"],"properties":{"code":{"type":"string","pattern":"^[A-Z]{3}$"}}}`:                                  "",
		`{"type":"object","required":["n","code"],"properties":{"n":{"type":"integer","multipleOf":10,"minimum":15},"code":{"type":"string"}}}`: " --field n=100 --field code=…",
	} {
		v := &api.Run{ID: "RUN", Status: protocol.Waiting, Waiting: []api.Waiting{{Step: "a#1", Kind: protocol.WaitQuestion, Form: protocol.JSON(form)}}}
		if got := Next(v); got != "wf answer 'RUN:a#1'"+want {
			t.Errorf("%s: %s", form, got)
		}
		v.Waiting[0].Choices = []protocol.Choice{{Value: "yes"}}
		choose := " --choice yes"
		if want == "" {
			choose = ""
		}
		if got := Next(v); got != "wf answer 'RUN:a#1'"+choose+want {
			t.Errorf("%s with choices: %s", form, got)
		}
	}
}

// Inputs are cut by letters, of however many bytes.
func TestInputsAreCutWhereTheyAreLong(t *testing.T) {
	for _, letter := range []string{"x", "漢"} {
		for n, cut := range map[int]bool{inputsMax - 1: false, inputsMax: false, inputsMax + 1: true} {
			text := strings.Repeat(letter, n)
			if got := inputs(text); (got != text) != cut || strings.Contains(got, "bytes; -o json has all of them") != cut {
				t.Errorf("%d of %s: cut %v", n, letter, got != text)
			}
		}
	}
}
