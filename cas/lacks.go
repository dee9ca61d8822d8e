package cas

import (
	"context"
	"time"

	bolt "go.etcd.io/bbolt"

	"wf/protocol"
)

// Lacks gives those of the blocks that are not there, or are damaged; see Keeper.
func (s *Store) Lacks(ctx context.Context, links []protocol.Link) (out []protocol.Link, err error) {
	for len(links) > 0 {
		err := s.view(ctx, func(tx *bolt.Tx) error {
			lk := s.newLookup(tx)
			for begun := time.Now(); len(links) > 0 && time.Since(begun) < readTime; links = links[1:] {
				if n, ok := nameOf(links[0]); !ok || !lk.stored(n.sum) {
					out = append(out, links[0])
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}
