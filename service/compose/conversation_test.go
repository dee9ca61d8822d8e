package compose

import (
	"strings"
	"testing"

	"wf/engine/lang"
)

// A conversation with a role of a file is a workflow that loads, with the role, defaults and inputs of the file as they
// were written.
func TestAConversationWithARoleOfAFileLoads(t *testing.T) {
	const source = `wf: 1
name: review
inputs: {topic: {type: string, default: "yes"}} # a text
defaults: {model: openai/test, timeout: 1m}
roles:
  critic:
    prompt: |
      You judge: ${{ inputs.topic }}
    tools: [read_file, {shell: ask}]
  check: {run: "true"}
`
	made, err := Conversation([]byte(source), "critic", "review.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, found := lang.Load(made, lang.Options{})
	if p == nil || len(p.Workflow.Roles) != 2 {
		t.Fatalf("%v\n%s", found, made)
	}
	for _, want := range []string{"You judge: ${{ inputs.topic }}", "openai/test", `default: "yes"`} {
		if !strings.Contains(string(made), want) {
			t.Errorf("no %q in\n%s", want, made)
		}
	}
	if _, err := Conversation([]byte(source), "check", "review.yaml"); err == nil || !strings.Contains(err.Error(), "critic") {
		t.Errorf("a command is talked with: %v", err)
	}
}
