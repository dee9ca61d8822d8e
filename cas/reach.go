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
				todo = appendLinks(todo, n.codec, data)
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	return size, nil
}

// appendLinks adds the names that a block links to.
func appendLinks(to []blockName, codec byte, data []byte) []blockName {
	for _, l := range linksOf(codec, data) {
		to = append(to, l.to)
	}
	return to
}

// linksOf are the links of a block to blocks that a store can hold; none of one that is not strict DAG-CBOR.
func linksOf(codec byte, data []byte) (out []ref) {
	if codec != cid.DagCBOR || !bytes.Contains(data, linkHead) {
		return nil
	}
	s := dagcbor.Scan{Walk: dagcbor.Walk{B: data}, OnLink: func(c []byte, at int) {
		if to, ok := nameIn(c); ok {
			out = append(out, ref{to, at})
		}
	}}
	if s.Run() != nil {
		return nil
	}
	return out
}
