package query

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/agentkit"
	"wf/cas"
	"wf/engine"
	"wf/engine/lang"
	"wf/protocol"
	"wf/roles"
)

// conversed is a run of one agent that was asked n times, seven events each.
func conversed(b *testing.B, n int) (*engine.Engine, protocol.RunID) {
	b.Helper()
	dir := b.TempDir()
	var replies strings.Builder
	for i := range n {
		fmt.Fprintf(&replies, "coder#%d: [{text: \"Change %d: I looked at the file and changed a line, then I ran the tests and they passed.\", usage: {input: %d}}]\n", i+1, i, 400+2*i)
	}
	if err := os.WriteFile(filepath.Join(dir, "replies.yaml"), []byte(replies.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	p, diags := lang.Load(fmt.Appendf(nil, `
wf: 1
name: talk
limits: {steps: %d}
roles:
  coder: {prompt: You write code., model: script/replies.yaml, compaction: {watermark: 1000000}}
  tick: {set: {n: "${{ (steps.tick?.output.n ?? 0) + 1 }}"}}
edges:
  - {from: START, to: coder, prompt: Begin.}
  - {from: coder, to: tick}
  - {from: tick, to: END, when: output.n >= %d}
  - {from: tick, to: coder, limit: %d, prompt: "Again ${{ output.n }}."}
`, 3*n, n, n), lang.Options{File: "talk.yaml"})
	if p == nil {
		b.Fatal(diags)
	}
	s, err := cas.Open(b.Context(), filepath.Join(dir, ".wf"), cas.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	e := &engine.Engine{Store: s, Performers: map[protocol.Action]roles.Performer{protocol.ActPrompt: agentkit.Agent{}, protocol.ActSet: roles.Set{}}}
	id, _, err := e.Begin(b.Context(), engine.Launch{Program: p, Inputs: protocol.JSON("{}"), Workspace: dir, File: filepath.Join(dir, "talk.yaml")})
	if err != nil {
		b.Fatal(err)
	}
	if st, err := e.Drive(b.Context(), id, engine.DriveOptions{}); err != nil || st.Status() != protocol.Done {
		b.Fatal(err, st.Status(), st.Reason())
	}
	return e, id
}

// Every prompt of a long conversation is built and compared again.
func BenchmarkCacheOfALongConversation(b *testing.B) {
	for _, n := range []int{186, 743} { // 1,300 and 5,200 events
		b.Run(fmt.Sprint(7*n, "events"), func(b *testing.B) {
			e, id := conversed(b, n)
			for b.Loop() {
				c, err := Cache(b.Context(), e, id)
				if err != nil {
					b.Fatal(err)
				}
				if len(c.Items) != n || c.MinPrefix != 1 {
					b.Fatalf("%d calls, a prefix of %v", len(c.Items), c.MinPrefix)
				}
			}
		})
	}
}
