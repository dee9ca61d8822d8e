package pgstore

import (
	"context"
	"errors"

	"wf/cas"
	"wf/protocol"
)

// togetherBytes is how much is worth one answer.
const togetherBytes = 8 << 20

// storedTogether gives blocks in the form in which they are stored, of a list those at its beginning that have most bytes, and the one
// that goes beyond.
func (s *Store) storedTogether(ctx context.Context, links []protocol.Link, most int64) (rows, error) {
	return s.query(ctx, `select cid, data from (select b.cid, b.data, sum(length(b.data)) over (order by t.i) - length(b.data) as before
		from unnest($1::bytea[]) with ordinality t(cid, i) join wf.blocks b using (cid)) x where before < $2`, names(links), long(most))
}

// names are the CIDs of links.
func names(links []protocol.Link) param {
	return array(oidBytes, oidBytea, len(links), func(i int) []byte { return links[i].Bytes() })
}

// Blocks reads blocks together; see cas.Together.
func (s *Store) Blocks(ctx context.Context, links []protocol.Link) (out []cas.Block, err error) {
	got, err := s.storedTogether(ctx, links, togetherBytes)
	if err != nil && !errors.Is(err, protocol.ErrCorrupt) {
		return nil, err
	}
	for _, r := range got {
		l, err := protocol.CastLink(r[0])
		if err != nil {
			continue
		}
		if data, err := cas.UnpackBlock(l, r[1]); err == nil { // else Block says what is wrong
			out = append(out, cas.Block{Link: l, Data: data})
		}
	}
	return out, nil
}

// A block that nothing leads to is taken for fresh when it is asked for, as it is when it is stored again: the caller is about to lead
// to it. Rows are locked in the order of their names, as by a commit.
const (
	refresh = `with old as (select cid from wf.blocks where cid = any($1) and used < (extract(epoch from statement_timestamp()) / 86400)::int - 1 order by cid for no key update)
	update wf.blocks b set used = (extract(epoch from statement_timestamp()) / 86400)::int from old where b.cid = old.cid`
	present = `select cid from wf.blocks where cid = any($1)`
)

// Lacks gives those of the blocks that are not there; see cas.Keeper.
func (s *Store) Lacks(ctx context.Context, links []protocol.Link) (out []protocol.Link, err error) {
	cids := names(links)
	if _, err := s.query(ctx, refresh, cids); err != nil {
		return nil, err
	}
	got, err := s.query(ctx, present, cids)
	if err != nil {
		return nil, err
	}
	have := make(map[string]bool, len(got))
	for _, r := range got {
		have[string(r[0])] = true
	}
	for _, l := range links {
		if !have[string(l.Bytes())] {
			out = append(out, l)
		}
	}
	return out, nil
}
