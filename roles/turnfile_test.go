package roles

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"wf/protocol"
)

// readBack is a turn as a command reads it.
type readBack struct {
	EdgePrompt string `json:"edgePrompt"`
	History    []struct {
		CID  string `json:"cid"`
		Text string `json:"text"`
	} `json:"history"`
	Omitted *omittedJSON `json:"omitted"`
}

func readTurn(t interface{ Fatal(...any) }, turn protocol.Turn, messages Messages) (out readBack, size int) {
	rendered, err := newTurnJSON(turn, messages)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := rendered.write(&b); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(b.String()), &out); err != nil {
		t.Fatal(err)
	}
	return out, b.Len()
}

// everyAncestor lists all steps before one, depth first, each after its parents.
func everyAncestor(of protocol.Past, all map[protocol.Link]protocol.Past, seen map[protocol.Link]bool) (out []string) {
	for _, l := range of.Parents {
		if p, ok := all[l]; ok && !seen[l] {
			seen[l] = true
			out = append(append(out, everyAncestor(p, all, seen)...), l.String())
		}
	}
	return out
}

// A turn has whatever the visit is given itself, and of what came before the newest whole steps, in the order of all of them; it says
// how many it leaves out.
func TestF502ATurnHasTheNewestOfWhatCameBefore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := map[protocol.Link]protocol.Past{}
		var list []protocol.Past
		for i := range rapid.IntRange(1, 40).Draw(t, "steps") {
			p := protocol.Past{CID: protocol.RawLink(fmt.Append(nil, i)), Role: "a", Visit: i, Text: strings.Repeat("x", rapid.SampledFrom([]int{0, 10, 3000, 30_000}).Draw(t, "size"))}
			for range min(i, rapid.IntRange(1, 3).Draw(t, "parents")) {
				p.Parents = append(p.Parents, list[rapid.IntRange(max(0, i-4), i-1).Draw(t, "parent")].CID)
			}
			list, all[p.CID] = append(list, p), p
		}
		records := (*protocol.Records)(nil).With(list...)
		said := protocol.Told{Earlier: rapid.IntRange(0, HistoryMax).Draw(t, "messages"), Omitted: rapid.IntRange(0, 1).Draw(t, "omitted")}
		for _, visit := range list[max(0, len(list)-2):] {
			turn := protocol.Turn{Step: protocol.StepID{Role: "a", N: 1, Index: -1}, EdgePrompt: strings.Repeat("e", 2*HistoryMax), History: protocol.History{Visit: visit, Records: records}}
			got, size := readTurn(t, turn, func(protocol.History, int) (protocol.Told, error) { return said, nil })
			turn.History.Visit.Parents = nil
			_, own := readTurn(t, turn, nil)
			if len(got.EdgePrompt) != 2*HistoryMax || size-own > HistoryMax-said.Earlier+len(`,"omitted":{"history":10000,"messages":10000}`) {
				t.Fatalf("%d bytes more than without what came before, and %d of messages", size-own, said.Earlier)
			}
			want := everyAncestor(visit, all, map[protocol.Link]bool{})
			omitted := omittedJSON{}
			if got.Omitted != nil {
				omitted = *got.Omitted
			}
			if len(got.History)+omitted.History != len(want) || omitted.Messages != said.Omitted || omitted.History == 0 && said.Omitted == 0 && got.Omitted != nil {
				t.Fatalf("%d steps and %+v omitted, of %d", len(got.History), omitted, len(want))
			}
			for _, p := range got.History {
				at := slices.Index(want, p.CID)
				if at < 0 {
					t.Fatalf("%s is not in order, or no ancestor", p.CID)
				}
				if want = want[at+1:]; len(p.Text) != len(all[linkOf(t, p.CID)].Text) {
					t.Fatalf("%s is cut", p.CID)
				}
			}
		}
	})
}

func linkOf(t interface{ Fatal(...any) }, s string) protocol.Link {
	l, err := protocol.ParseLink(s)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// The key of a result has what the command can see: two runs that differ in what both turns leave out share it, and one that left
// nothing out is another.
func TestF502TheKeyOfAResultFollowsFromTheTurn(t *testing.T) {
	key := func(texts ...string) string {
		visit := protocol.Past{Role: "a"}
		var list []protocol.Past
		for i, text := range texts {
			list = append(list, protocol.Past{CID: protocol.RawLink(fmt.Append(nil, i, text)), Role: "a", Visit: i, Text: text, Parents: visit.Parents})
			visit.Parents = []protocol.Link{list[i].CID}
		}
		turn := protocol.Turn{Step: protocol.StepID{Role: "a", N: 1, Index: -1}, History: protocol.History{Visit: visit, Past: list}}
		var out strings.Builder
		if err := (&Run{}).turnParts(turn, func(name string, value []byte) { fmt.Fprintf(&out, "%s %x\n", name, value) }); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	long := strings.Repeat("x", HistoryMax-1000)
	first := key("old", "some "+long, "new")
	for name, other := range map[string]string{"nothing omitted": key("some "+long, "new"), "more omitted": key("old", "old", "some "+long, "new"),
		"another new": key("old", "some "+long, "neu")} {
		if other == first {
			t.Errorf("%s: the same key", name)
		}
	}
	wide := strings.Repeat("x", HistoryMax)
	if key("old", wide, "new") != key("other", wide+"!", "new") {
		t.Error("what no turn has is in the key")
	}
}
