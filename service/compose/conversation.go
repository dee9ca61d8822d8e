package compose

import (
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"wf/protocol"
)

// conversationKeeps are the parts of a workflow that a conversation with one of its roles keeps.
var conversationKeeps = []string{"inputs", "secrets", "mcp", "defaults"}

// Conversation makes the workflow in which a person and one role of another workflow, that of path, take turns.
func Conversation(source []byte, role, path string) ([]byte, error) {
	var doc struct {
		Rest  map[string]yaml.Node `yaml:",inline"`
		Roles map[string]yaml.Node `yaml:"roles"`
	}
	if err := yaml.Unmarshal(source, &doc); err != nil {
		return nil, protocol.ErrInvalid.With("wf validate "+protocol.ShellWord(path), "%s: %v", path, err)
	}
	r, ok := doc.Roles[role]
	var act map[string]any
	if ok {
		if err := r.Decode(&act); err != nil || act["prompt"] == nil {
			ok = false
		}
	}
	if !ok {
		return nil, protocol.ErrUsage.With("", "%s has no agent %q; its roles are %s", path, role, strings.Join(slices.Sorted(maps.Keys(doc.Roles)), ", "))
	}
	const turns = 1_000_000
	person := "you"
	if role == person {
		person = "person"
	}
	out := map[string]any{
		"wf": 1, "name": "chat-" + role, "description": "A person and " + role + " of " + filepath.Base(path) + " in turn",
		"limits": map[string]int{"steps": turns},
		"roles":  map[string]any{person: map[string]string{"ask": ""}, role: &r},
		"edges": []map[string]any{
			{"from": "START", "to": person},
			{"from": person, "to": "END", "when": "output.text == " + strconv.Quote("/end")},
			{"from": person, "to": role, "prompt": "${{ output.text }}"},
			{"from": role, "to": person, "limit": turns},
		},
	}
	for _, key := range conversationKeeps {
		if n, ok := doc.Rest[key]; ok {
			out[key] = &n // the encoder takes nodes by pointer alone
		}
	}
	return yaml.Marshal(out)
}
