package engine_test

import (
	"strings"
	"testing"

	"wf/engine"
	"wf/protocol"
)

func TestALongEdgePromptIsReadOncePerVisit(t *testing.T) {
	b := newBench(t)
	id, v := b.run("wf: 1\nname: long\nroles:\n  a: {run: \"true\"}\n  b: {run: \"true\"}\nedges:\n  - {from: START, to: a}\n"+
		"  - {from: a, to: b, prompt: "+strings.Repeat("x", protocol.InlineMax+1)+"}\n  - {from: b, to: END}\n", nil)
	if v.Status != protocol.Done {
		t.Fatalf("%s: %s", v.Status, v.Reason)
	}
	if n, err := engine.PromptReads(t.Context(), b.e, id, "b#1"); err != nil || n != 1 {
		t.Errorf("%d reads, %v", n, err)
	}
}
