package rules_test

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"wf/cas"
	"wf/engine/lang"
	"wf/engine/rules"
	"wf/engine/rules/rulestest"
	"wf/protocol"
)

// A journal from elsewhere may say anything: an item far beyond the fan-out is refused, and no
// room is made for it.
func TestAnItemBeyondItsFanOutIsRefused(t *testing.T) {
	w := newWorld(t, "wf: 1\nname: fan\nroles:\n  a: {set: {l: [1, 2]}}\n  w: {set: {n: \"${{ item }}\"}}\nedges:\n"+
		"  - {from: a, to: w, for_each: output.l}\n  - {from: w, to: END}\n", nil)
	w.play()
	for i := range w.journal {
		if w.journal[i].StepName() == "w#1[1]" {
			far := "w#1[2000000000]"
			w.journal[i].Step = &far
		}
	}
	if _, err := rules.Fold(w, each(w.journal)); !errors.Is(err, protocol.ErrCorrupt) {
		t.Errorf("%v, want a journal that is corrupt", err)
	}
}

// However a journal was cut, doubled or mixed up, folding it ends with a state or an error; as it was written it ends with a
// state, and without its beginning with an error.
func mixedUp(t *testing.T) func(*rapid.T) {
	return func(rt *rapid.T) {
		p, _ := lang.Load([]byte(rulestest.Closing(rt, rulestest.Flow(rt))), lang.Options{File: "random.yaml"})
		if p == nil {
			rt.Skip("lint refuses it")
		}
		w := worldOf(t, p, nil)
		w.conclude = drawn
		w.play()
		if _, err := rules.Fold(w, each(w.journal)); err != nil {
			rt.Fatal(err)
		}
		if _, err := rules.Fold(w, each(w.journal[1:])); err == nil {
			rt.Fatal("a journal without its first event was folded")
		}
		entries := slices.Clone(w.journal)
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
		s, err := rules.Fold(w, each(entries))
		if err != nil {
			return
		}
		if _, err := s.Next(); err != nil {
			return
		}
		_ = s.Reason()
		if _, err := cas.Marshal(s.Snapshot()); err != nil {
			rt.Fatal(err)
		}
	}
}

func TestAMixedUpJournalIsFoldedOrRefused(t *testing.T) { rapid.Check(t, mixedUp(t)) }

func FuzzMixedUpJournal(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		rapid.MakeFuzz(mixedUp(t))(t, data)
	})
}
