package agentkit

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"wf/protocol"
)

// A Builder writes each prompt of a run as it is written alone, compactions included.
func TestABuilderWritesWhatIsWrittenAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := compactAt(t, drawDAG(t))
		var b Builder
		for _, p := range list {
			if p.Compaction != nil {
				continue
			}
			h := protocol.History{Format: 1, Role: p.Role, System: "s", Tools: tools, Inputs: protocol.JSON(`{"x":"1"}`), Visit: p, Past: list}
			messages, err := BuildMessages(h)
			if err != nil {
				t.Fatal(err)
			}
			got, err := b.Prompt(h)
			if err != nil {
				t.Fatal(err)
			}
			if want := PromptBytes(h.Tools, messages); !bytes.Equal(got, want) {
				t.Fatalf("the prompt of %s#%d\n%s\nalone:\n%s", p.Role, p.Visit, got, want)
			}
		}
	})
}
