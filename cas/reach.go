package cas

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/ipfs/go-cid"
	bolt "go.etcd.io/bbolt"

	"wf/protocol"
	"wf/protocol/dagcbor"
)

// Reach is how many bytes the blocks have that event seq of a run leads to, each counted once.
func (s *Store) Reach(ctx context.Context, run protocol.RunID, seq protocol.Seq) (size int64, err error) {
	var todo []blockName
	for e, err := range s.After(ctx, run, seq-1) {
		if err != nil {
			return 0, err
		}
		if n, ok := nameOf(e.CID); ok {
			todo = append(todo, n)
		}
		break
	}
	seen := map[blockName]bool{}
	for len(todo) > 0 {
		err := s.view(ctx, func(tx *bolt.Tx) error {
			lk := s.newLookup(tx)
			for begun := time.Now(); len(todo) > 0 && time.Since(begun) < readTime; {
				n := todo[len(todo)-1]
				todo = todo[:len(todo)-1]
				if seen[n] {
					continue
				}
				data, err := lk.block(n.link())
				if err != nil {
					return fmt.Errorf("run %s: %w", run, lost(err))
				}
				seen[n] = true
				size += int64(len(data))
				links, err := linksIn(n.codec, data)
				if err != nil {
					return fmt.Errorf("run %s: block %s: %w", run, n, err)
				}
				for _, l := range links {
					todo = append(todo, l.to)
				}
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	return size, nil
}

// linksIn are the links of a block to blocks that a store can hold, one that follows itself once. A block that is not strict DAG-CBOR is an error.
func linksIn(codec byte, data []byte) (out []ref, err error) {
	if codec != cid.DagCBOR || !bytes.Contains(data, linkHead) {
		return nil, nil
	}
	s := dagcbor.Scan{Walk: dagcbor.Walk{B: data}, OnLink: func(c []byte, at int) {
		if to, ok := nameIn(c); ok && (len(out) == 0 || out[len(out)-1].to != to) {
			out = append(out, ref{to, at})
		}
	}}
	return out, s.Run()
}
