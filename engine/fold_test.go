package engine_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"wf/cas"
	"wf/engine"
	"wf/engine/lang"
	"wf/engine/rules"
	"wf/protocol"
)

// A journal from elsewhere may say anything: an item far beyond the fan-out is refused, and no
// room is made for it.
func TestAnItemBeyondItsFanOutIsRefused(t *testing.T) {
	b := newBench(t)
	id, _ := b.run("wf: 1\nname: fan\nroles:\n  a: {set: {l: [1, 2]}}\n  w: {set: {n: \"${{ item }}\"}}\nedges:\n"+
		"  - {from: a, to: w, for_each: output.l}\n  - {from: w, to: END}\n", nil)
	read := func(l protocol.Link) ([]byte, error) { return b.e.Store.Block(context.Background(), l) }
	forged := func(yield func(protocol.Entry, error) bool) {
		for _, x := range b.entries(id) {
			if x.StepName() == "w#1[1]" {
				far := "w#1[2000000000]"
				x.Step = &far
			}
			if !yield(x, nil) {
				return
			}
		}
	}
	if _, err := rules.Fold(engine.Records(read), forged); !errors.Is(err, protocol.ErrCorrupt) {
		t.Errorf("%v, want a journal that is corrupt", err)
	}
}

// However a journal was cut, doubled or mixed up, folding it ends with a state or an error.
func TestAMixedUpJournalIsFoldedOrRefused(t *testing.T) {
	refused, folded := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		p, _ := lang.Load([]byte(flow(rt)), lang.Options{File: "random.yaml"})
		if p == nil {
			rt.Skip("lint refuses it")
		}
		b := newBench(t)
		ctx := context.Background()
		id, _, err := b.e.Begin(ctx, engine.Launch{Program: p, Inputs: protocol.JSON("{}")})
		if err != nil {
			rt.Fatal(err)
		}
		b.drive(id)
		entries := b.entries(id)
		at := func(what string) int { return rapid.IntRange(0, len(entries)-1).Draw(rt, what) }
		for range rapid.IntRange(1, 3).Draw(rt, "changes") {
			switch i := at("where"); rapid.SampledFrom([]string{"drop", "double", "swap", "rename"}).Draw(rt, "change") {
			case "drop":
				entries = slices.Delete(entries, i, min(i+1, len(entries)-1))
			case "double":
				entries = slices.Insert(entries, at("to"), entries[i])
			case "swap":
				j := at("with")
				entries[i], entries[j] = entries[j], entries[i]
			case "rename":
				entries[i].Step = entries[at("as")].Step
			}
		}
		for i := range entries {
			entries[i].Seq = protocol.Seq(i + 1)
		}
		read := func(l protocol.Link) ([]byte, error) { return b.e.Store.Block(ctx, l) }
		s, err := rules.Fold(engine.Records(read), each(entries))
		if err != nil {
			refused++
			return
		}
		folded++
		if _, err := s.Next(); err != nil {
			return
		}
		_ = s.Reason()
		if _, err := cas.Marshal(s.Snapshot()); err != nil {
			rt.Fatal(err)
		}
	})
	t.Logf("%d were refused, %d folded", refused, folded)
}
