package pgstore

import (
	"context"
	"slices"
	"strings"

	"wf/cas"
	"wf/protocol"
)

// Find lists the stored blocks with a CID that goes on with part; see cas.Store.Find.
func (s *Store) Find(ctx context.Context, part string) (out []protocol.Link, err error) {
	for _, span := range cas.FindRanges(part) {
		got, err := s.query(ctx, `select cid from wf.blocks where cid between $1 and $2`, bytea(span.Low), bytea(span.High))
		if err != nil {
			return nil, err
		}
		for _, r := range got {
			if l, err := protocol.CastLink(r[0]); err == nil && strings.HasPrefix(l.String()[7:], part) {
				out = append(out, l)
			}
		}
	}
	slices.SortFunc(out, func(a, b protocol.Link) int { return strings.Compare(a.String(), b.String()) })
	return out, nil
}
