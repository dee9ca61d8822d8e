package engine_test

import (
	"context"
	"errors"
	"testing"

	"wf/engine"
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
	if _, err := engine.Fold(&engine.Library{}, forged, read); !errors.Is(err, protocol.ErrCorrupt) {
		t.Errorf("%v, want a journal that is corrupt", err)
	}
}
