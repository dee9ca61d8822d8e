package prompt

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"wf/protocol"
)

// A Builder writes each prompt of a run as it is written alone, compactions included, also where
// all visits share the records and what was kept of earlier prompts.
func TestABuilderWritesWhatIsWrittenAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := compactAt(t, drawDAG(t))
		var b Builder
		var given [][]byte
		shared := (*protocol.Records)(nil).With(list...)
		for i := range rapid.IntRange(len(list), 2*len(list)).Draw(t, "prompts") {
			p := list[i%len(list)]
			if i >= len(list) { // once more, in any order
				p = rapid.SampledFrom(list).Draw(t, "visit")
			}
			if p.Compaction != nil {
				continue
			}
			h := protocol.History{Format: 1, Role: p.Role, System: "s", Tools: tools, Inputs: protocol.JSON(`{"x":"1"}`), Visit: p, Past: list}
			messages, err := BuildMessages(h)
			if err != nil {
				t.Fatal(err)
			}
			h.Past, h.Records = nil, shared
			got, err := b.Prompt(h)
			if err != nil {
				t.Fatal(err)
			}
			want := Bytes(h.Tools, messages)
			if !bytes.Equal(got, want) {
				t.Fatalf("the prompt of %s#%d\n%s\nalone:\n%s", p.Role, p.Visit, got, want)
			}
			given = append(given, got, want)
		}
		for i := 0; i < len(given); i += 2 {
			if !bytes.Equal(given[i], given[i+1]) {
				t.Fatalf("a prompt was altered after it had been given out:\n%s\nit was\n%s", given[i], given[i+1])
			}
		}
	})
}
