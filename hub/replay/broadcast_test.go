package replay

import (
	"strings"
	"testing"

	"wf/protocol"
)

func heard(b *Broadcast) (out []string) {
	b.Subscribe("R", func(d protocol.LiveDelta) { out = append(out, d.Step+" "+d.Delta.Kind+": "+d.Delta.Text) })()
	return out
}

func TestALateClientHearsWhatIsBeingSaid(t *testing.T) {
	var b Broadcast
	say := func(step, kind, text string) { b.Delta("R", step, protocol.Delta{Kind: kind, Text: text}) }
	event := func(step string, seq protocol.Seq) {
		b.Event("R", &protocol.Event{Step: &step, Seq: seq, Type: protocol.EvText})
	}
	event("b#1", 1)
	say("b#1", "thinking", "hm")
	say("b#1", "text", "half a ")
	say("a#1", "text", "other")
	say("b#1", "text", "sentence")
	if got, want := strings.Join(heard(&b), "\n"), "a#1 text: other\nb#1 thinking: hm\nb#1 text: half a sentence"; got != want {
		t.Errorf("heard\n%s\nwant\n%s", got, want)
	}
	event("b#1", 2) // the journal has it now
	if got := strings.Join(heard(&b), "\n"); got != "a#1 text: other" {
		t.Errorf("after the event: %s", got)
	}
	b.End("R")
	if got := heard(&b); got != nil {
		t.Errorf("after the end: %s", got)
	}
}

func TestOfALongSayingTheEndIsKept(t *testing.T) {
	var b Broadcast
	for range 100_000 {
		b.Delta("R", "a#1", protocol.Delta{Kind: "text", Text: "äö"})
	}
	b.Delta("R", "a#1", protocol.Delta{Kind: "text", Text: "end"})
	got := heard(&b)[0]
	if len(got) > 3*openMax || len(got) < openMax || !strings.HasSuffix(got, "äöend") || strings.ContainsRune(got, '\uFFFD') {
		t.Errorf("%d bytes, %q…%q", len(got), got[:20], got[len(got)-20:])
	}
}
