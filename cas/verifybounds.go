package cas

import (
	"context"
	"fmt"

	"wf/protocol"
	filetree "wf/protocol/tree"
)

// What a few blocks can say is more than anyone can read: a tree whose directories name each other has as many entries
// as there are ways through it. Here such a thing is counted, not read.

// parts checks the parts of a payload in chunks, or of a long file, against what the record says of them. A part that cannot be
// read is a finding of its own.
func (v *Verifier) parts(ctx context.Context, n blockName, nd *node, where func() string) {
	bad := func(expected, actual string) {
		v.find(Finding{Kind: "record", Where: where(), Expected: expected, Actual: actual, Fix: restoreFix})
	}
	var size int64
	for i, r := range nd.links {
		part, err := v.g.get(ctx, r.to)
		if err != nil {
			return
		}
		want := int64(part.size)
		if nd.kind == protocol.KindChunks {
			want = max(0, protocol.ChunkLen(nd.chunked, i))
		}
		if int64(part.size) != want {
			bad(fmt.Sprintf("chunk %d of %d bytes", i+1, want), fmt.Sprintf("%d bytes in block %s", part.size, r.to))
			return
		}
		size += int64(part.size)
	}
	if size != nd.chunked {
		bad(fmt.Sprintf("parts of %d bytes in all", nd.chunked), fmt.Sprintf("%d bytes, in the parts that %s names", size, n))
	}
}

// weigh counts what a tree holds, each directory as often as it is named, and how many lie within each other. Each block is
// looked at once, and none of a tree that was weighed before.
func (v *Verifier) weigh(ctx context.Context, root *node) error {
	type level struct {
		nd   *node
		next int // link
	}
	const most = filetree.WalkMax + 1
	for todo := []level{{root, 0}}; len(todo) > 0; {
		at := &todo[len(todo)-1]
		var below *node
		for below == nil && at.next < len(at.nd.links) {
			nd, err := v.g.get(ctx, at.nd.links[at.next].to)
			if err != nil && v.ended(ctx) != nil {
				return v.ended(ctx)
			}
			if at.next++; err == nil && nd.kind == protocol.KindTree && nd.fault == nil { // what cannot be read is a finding elsewhere
				below = nd
			}
		}
		switch {
		case below == nil:
			at.nd.weight, at.nd.depth = min(at.nd.weight+at.nd.entries, most), at.nd.depth+at.nd.deeper()
			todo = todo[:len(todo)-1]
			if len(todo) > 0 {
				todo[len(todo)-1].nd.hold(at.nd)
			}
			at.nd.weighed = true
		case below.weighed:
			at.nd.hold(below)
		default:
			todo = append(todo, level{below, 0})
		}
	}
	return nil
}

// deeper is by how much a block of a tree lies around those it names: a directory by one, a list of its parts by none.
func (n *node) deeper() int32 {
	if n.entries == 0 && len(n.links) > 0 {
		return 0
	}
	return 1
}

// hold adds what a block of a tree names.
func (n *node) hold(below *node) {
	n.weight, n.depth = min(n.weight+below.weight, filetree.WalkMax+1), max(n.depth, below.depth)
}

// tree checks that a tree is one that can be read. Of trees within each other the outermost is told.
func (v *Verifier) tree(ctx context.Context, n blockName, where func() string) error {
	nd := v.g.nodes[n]
	if nd == nil || nd.kind != protocol.KindTree || nd.fault != nil || nd.weighed {
		return nil
	}
	if err := v.weigh(ctx, nd); err != nil {
		return err
	}
	bad := func(expected, actual string) {
		v.find(Finding{Kind: "record", Where: where(), Expected: expected, Actual: actual, Fix: restoreFix})
	}
	if nd.weight > filetree.WalkMax {
		bad(fmt.Sprintf("a tree of at most %d entries", filetree.WalkMax), fmt.Sprintf("more in tree %s, whose directories name each other again and again", n))
	}
	if nd.depth > filetree.DepthMax {
		bad(fmt.Sprintf("at most %d directories within each other", filetree.DepthMax), fmt.Sprintf("%d in tree %s", nd.depth, n))
	}
	return nil
}
