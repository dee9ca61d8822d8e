package lang_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/engine/lang"
	"wf/protocol"
)

func remembering(memory string) string {
	return "wf: 1\nname: x\nroles:\n  coder:\n    prompt: You code.\n" + memory + "edges:\n  - {from: START, to: coder}\n  - {from: coder, to: END}\n"
}

func TestMemoryOfARole(t *testing.T) {
	for _, c := range []struct {
		name, yaml string
		want       *protocol.MemorySpec
	}{
		{"none", "", nil},
		{"refused", "    memory: false\n", nil},
		{"that of the role", "    memory: true\n", &protocol.MemorySpec{}},
		{"that of the role, said in full", "    memory: {scope: role, recall: true}\n", &protocol.MemorySpec{}},
		{"shared, all of it", "    memory: {scope: notes, recall: false, top_k: 5, distance: 0.50, embed: local/nomic}\n",
			&protocol.MemorySpec{Scope: "notes", NoRecall: true, TopK: 5, Distance: "0.5", Embed: "local/nomic"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := load(t, remembering(c.yaml))
			if d := cmp.Diff(c.want, p.Workflow.Roles[0].Memory); d != "" {
				t.Error(d)
			}
		})
	}
}

// A definition that says nothing of a memory keeps the CID it had before there were any.
func TestADefinitionWithoutMemoryDoesNotTellOfIt(t *testing.T) {
	block := func(memory string) string {
		b, err := load(t, remembering(memory)).Block()
		if err != nil {
			t.Fatal(err)
		}
		if has := strings.Contains(string(b.Data), "memory"); has != (strings.Contains(memory, "true")) {
			t.Errorf("%q: told of: %v", memory, has)
		}
		return b.Link.String()
	}
	if without, refused, with := block(""), block("    memory: false\n"), block("    memory: true\n"); without != refused || with == without {
		t.Error(without, refused, with)
	}
}

func TestMistakesInAMemory(t *testing.T) {
	for yaml, want := range map[string]string{
		"    memory: {scope: a/b}\n":      "the name of a shared memory",
		"    memory: {distance: 3}\n":     "above 0, up to 2",
		"    memory: {top_k: 0}\n":        "top_k",
		"    memory: {remember: true}\n":  "remember",
		"    memory: often\n":             "wants true or false, got a string",
		"    memory: {recall: perhaps}\n": "true or false",
	} {
		_, diags := lang.Load([]byte(remembering(yaml)), lang.Options{File: "x.yaml"})
		var told []string
		for _, d := range diags {
			told = append(told, d.Message)
		}
		if len(diags) == 0 || !strings.Contains(strings.Join(told, "\n"), want) {
			t.Errorf("%s: %q", yaml, told)
		}
	}
}
