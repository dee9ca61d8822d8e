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
	add := func(l protocol.Link) {
		if strings.HasPrefix(l.String()[7:], part) {
			out = append(out, l)
		}
	}
	for _, span := range cas.FindRanges(part) {
		got, err := s.query(ctx, `select cid from wf.blocks where cid between $1 and $2`, bytea(span.Low), bytea(span.High))
		if err != nil {
			return nil, err
		}
		for _, r := range got {
			if l, err := protocol.CastLink(r[0]); err == nil {
				add(l)
			}
		}
		// Lines hold blocks of both codecs, and are looked up once.
		got, err = s.query(ctx, `select data from wf.packed where key between substr($1, 5, 7) and substr($2, 5, 7) and get_byte($1, 1) = 113`, bytea(span.Low), bytea(span.High))
		if err != nil {
			return nil, err
		}
		for _, r := range got {
			blocks, err := cas.UnpackBlocks(r[0])
			if err != nil {
				continue // a verification tells of it
			}
			for _, b := range blocks {
				add(b.Link)
			}
		}
	}
	slices.SortFunc(out, func(a, b protocol.Link) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(out), nil
}
