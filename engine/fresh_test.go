package engine

import (
	"bytes"
	"testing"

	"wf/cas"
	"wf/protocol"
)

// Blocks are dropped beyond the bound, and not at it; those on their way stay.
func TestFreshBlocksAreBounded(t *testing.T) {
	asked := 0
	var f freshBlocks
	read := f.before(func(protocol.Link) ([]byte, error) { asked++; return nil, protocol.ErrNotFound })
	there := func(b cas.Block) bool { got, err := read(b.Link); return err == nil && bytes.Equal(got, b.Data) }
	old, more := cas.Raw(make([]byte, maxFresh-1)), cas.Raw([]byte("x"))
	onTheirWay := func() []*batch { return []*batch{{blocks: []cas.Block{more}}} }
	f.add([]cas.Block{old, more, more}) // as many bytes as may be kept: one that is known counts once
	f.trim(onTheirWay)
	if !there(old) || !there(more) || asked != 0 {
		t.Errorf("at the bound blocks are dropped: %d were asked for", asked)
	}
	beyond := cas.Raw([]byte("y"))
	f.add([]cas.Block{beyond})
	f.trim(onTheirWay)
	if there(old) || there(beyond) || !there(more) || asked != 2 {
		t.Errorf("beyond the bound those on their way alone are kept: %d were asked for", asked)
	}
}
