package pgstore

import (
	"context"
	"errors"

	"wf/cas"
	"wf/protocol"
)

// togetherBytes is how much is worth one answer.
const togetherBytes = 8 << 20

// storedTogether gives what may hold blocks, see heldBlocks: of a list those at its beginning that have most bytes, and the one
// that goes beyond.
func (s *Store) storedTogether(ctx context.Context, links []protocol.Link, most int64) (rows, error) {
	return s.query(ctx, `select cid, data, packed from (select x.*, sum(length(data)) over (order by i, packed) - length(data) as before
		from (`+heldBlocks+`) x) x where before < $2`, names(links), long(most))
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
		data, err := unpacked(l, r[1], yes(r[2]))
		if err == nil && (len(out) == 0 || out[len(out)-1].Link != l) { // else Block says what is wrong
			out = append(out, cas.Block{Link: l, Data: data})
		}
	}
	return out, nil
}

// A block that nothing leads to is taken for fresh when it is asked for, as it is when it is stored again: the caller is about to lead
// to it. Rows are locked in the order of their names, as by a commit, and lines in that of theirs.
const (
	refresh = `with old as (select cid from wf.blocks where cid = any($1) and used < (extract(epoch from statement_timestamp()) / 86400)::int - 1 order by cid for no key update)
	update wf.blocks b set used = (extract(epoch from statement_timestamp()) / 86400)::int from old where b.cid = old.cid`
	staleLines = `select distinct p.head, p.seq, p.n from unnest($1::bytea[]) t(cid), lateral (select p.head, p.seq, p.n, p.used from wf.packed p where p.key = substr(t.cid, 5, 7) offset 0) p
		where p.used < (extract(epoch from statement_timestamp()) / 86400)::int - 1`
	refreshLines = `with k as materialized (select l.head, l.seq, l.n from unnest($1::int[], $2::int[], $3::bigint[]) t(head, seq, n) join wf.reflog l using (head, seq, n)
		where l.data is not null order by l.head, l.seq, l.n for no key update of l)
	update wf.reflog l set used = (extract(epoch from statement_timestamp()) / 86400)::int from k where l.head = k.head and l.seq = k.seq and l.n = k.n`
	// A line may be that of another block.
	present = `select cid, case when packed then data end from (` + heldBlocks + `) x`
)

// Lacks gives those of the blocks that are not there; see cas.Keeper.
func (s *Store) Lacks(ctx context.Context, links []protocol.Link) (out []protocol.Link, err error) {
	cids := names(links)
	if _, err := s.query(ctx, refresh, cids); err != nil {
		return nil, err
	}
	stale, err := s.query(ctx, staleLines, cids)
	if err == nil && len(stale) > 0 {
		ids := make([]lineID, len(stale))
		for i, r := range stale {
			ids[i] = lineIDOf(r)
		}
		_, err = s.query(ctx, refreshLines, lineIDs(ids)...)
	}
	if err != nil {
		return nil, err
	}
	have := make(map[string]bool, len(links))
	err = s.each(ctx, func(row [][]byte) error {
		l, err := protocol.CastLink(row[0])
		if err == nil && row[1] != nil {
			_, err = unpacked(l, row[1], true)
		}
		if err == nil {
			have[string(row[0])] = true
		}
		return nil // what cannot be read is lacking: another copy of it is of use
	}, present, cids)
	if err != nil {
		return nil, err
	}
	for _, l := range links {
		if !have[string(l.Bytes())] {
			out = append(out, l)
		}
	}
	return out, nil
}
