package prompt

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wf/agentkit/prompt/prompttest"
	"wf/protocol"
)

// Within a limit the messages are those of an agent where they fit; else the newest of them, and it is known how many are missing.
func TestF502MessagesWithinALimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawDAG(t)
		past := (*protocol.Records)(nil).With(list...)
		limit := rapid.SampledFrom([]int{0, 100, 300, 1000, 1 << 20}).Draw(t, "limit")
		for _, visit := range rapid.Permutation(list).Draw(t, "order") {
			h := protocol.History{Format: 2, Role: visit.Role, System: "s", Inputs: protocol.JSON(`{"x":"1"}`), Visit: visit, Records: past}
			all, err := BuildMessages(h)
			if err != nil {
				t.Fatal(err)
			}
			told, err := Within(h, limit)
			if err != nil {
				t.Fatal(err)
			}
			if limit == 1<<20 {
				if d := cmp.Diff(protocol.Told{Messages: all, Earlier: told.Earlier}, told); d != "" {
					t.Fatal(d)
				}
			}
			n := len(told.Messages) - 1
			if n+2*told.Omitted != len(all)-1 || !slices.EqualFunc(told.Messages[1:n], all[1+2*told.Omitted:len(all)-1], func(a, b protocol.Message) bool { return cmp.Equal(a, b) }) {
				t.Fatalf("%d of %d messages, %d visits omitted:\n%v\n%v", len(told.Messages), len(all), told.Omitted, told.Messages, all)
			}
			own := h
			own.Records, own.Visit.Resumes = nil, protocol.Link{}
			if !visit.Resumes.Defined() { // else the inputs were told before
				alone, err := BuildMessages(own)
				if err != nil {
					t.Fatal(err)
				}
				if more := jsonSize(told.Messages...) - jsonSize(alone...); more > limit+200 {
					t.Fatalf("%d bytes of the past, at most %d", more, limit)
				}
			}
			if got, want := past.Above(visit.Parents), len(above(list, visit)); got != want {
				t.Fatalf("%d steps above %s, want %d", got, visit.CID, want)
			}
			d, err := formats[2].dialogue(&h)
			if err != nil {
				t.Fatal(err)
			}
			asked := 0
			u := d.partsOf(&visit, func(*protocol.Past) bool { asked++; return asked <= limit/100 })
			whole, _ := d.since(&visit, nil)
			if len(u.since)+u.older != len(whole) || u.newest == nil != (u.older == 0) {
				t.Fatalf("%d steps and %d older ones, want %d", len(u.since), u.older, len(whole))
			}
		}
	})
}

// Behind a fan-out of any size the message stays within the limit, and says how many items it leaves out.
func TestF502TheMessageSaysHowManyStepsItLeavesOut(t *testing.T) {
	for char, kept := range map[string]int{"x": 31, `"`: 15} { // as JSON the latter takes two bytes
		var list []protocol.Past
		names := make([]string, 300)
		for i := range names {
			names[i] = protocol.StepID{Role: "item", N: 1, Index: i}.String()
			list = append(list, prompttest.Step(names[i], strings.Repeat(char, 2000), "START"))
		}
		told, err := Within(protocol.History{Format: 2, Role: "report", Visit: prompttest.Step("report#1", "", names...), Past: list}, 64<<10)
		if err != nil {
			t.Fatal(err)
		}
		text, is := told.Messages[0].Content, told.Earlier
		if items := strings.Count(text, "### item#1["); is > 64<<10 || items != kept || !strings.Contains(text, "### item#1[299]") {
			t.Errorf("%d bytes of %d items, want %d: %.300s", is, items, kept, text)
		}
		if more := moreV1(300-kept, prompttest.Link(names[299-kept])); !strings.Contains(text, more) {
			t.Errorf("%.300s lacks %s", text, more)
		}
	}
}
