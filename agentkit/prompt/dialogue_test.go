package prompt

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"wf/protocol"
)

// toldInTurn is what happened before each visit of a conversation, by the rule as it is written
// down: depth first over parents, and each step once in the whole conversation.
func toldInTurn(list []protocol.Past, covers *protocol.Past, visits []*protocol.Past) (since [][]protocol.Link) {
	byCID, seen := map[protocol.Link]protocol.Past{}, map[protocol.Link]bool{}
	for _, p := range list {
		byCID[p.CID] = p
	}
	var above func(p protocol.Past) []protocol.Link
	above = func(p protocol.Past) (out []protocol.Link) {
		for _, l := range p.Parents {
			if q, ok := byCID[l]; ok && !seen[l] {
				seen[l] = true
				out = append(append(out, above(q)...), l)
			}
		}
		return out
	}
	if covers != nil {
		above(*covers)
		seen[covers.CID] = true
	}
	for _, v := range visits {
		since = append(since, above(*v))
		seen[v.CID] = true
	}
	return since
}

func TestWhatHappenedSinceIsTheSameHoweverItIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := compactAt(t, drawDAG(t))
		past := (*protocol.Records)(nil).With(list...)
		visit := rapid.SampledFrom(list).Draw(t, "visit")
		if visit.Compaction != nil {
			return
		}
		c, err := conversationOf(past, &visit)
		if err != nil {
			t.Fatal(err)
		}
		visits := append(c.visits, &visit)
		want := toldInTurn(list, c.covers, visits)
		before := dialogue{format: formats[1], past: past, covers: c.covers}
		for i, v := range visits {
			var got []protocol.Link
			since, _ := before.since(v, nil)
			for _, p := range since {
				got = append(got, p.CID)
			}
			if !slices.Equal(got, want[i]) {
				t.Fatalf("before visit %d of %d happened %v, want %v", i+1, len(visits), got, want[i])
			}
			if i < len(c.visits) {
				if err := before.add(v); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// tasksOf is n tasks of a role, the last under way, with all records in one set.
func tasksOf(b *testing.B, n int) protocol.History {
	h := taskHistory(b, n)
	h.Format = protocol.Format
	h.Records, h.Past = (*protocol.Records)(nil).With(h.Past...), nil
	return h
}

// The prompt of a task shows the newest summaries, and costs what these cost: the task before it
// was built by the same process.
func BenchmarkTaskPrompt(b *testing.B) {
	for _, n := range []int{4, 1000} {
		b.Run(fmt.Sprint("task", n), func(b *testing.B) {
			h := tasksOf(b, n)
			if _, err := BuildMessages(h); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := BuildMessages(h); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
