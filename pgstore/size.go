package pgstore

import (
	"context"
	"fmt"
	"slices"

	"wf/cas"
	"wf/protocol"
)

// Size measures the store: Live are the bytes of the values in its tables, as they are stored, File what the tables and their indexes take on the
// disk of the server, Blobs 0. It reads all rows, but not the values themselves.
func (s *Store) Size(ctx context.Context) (out cas.Size, err error) {
	got, err := s.query(ctx, `select (select coalesce(sum(length(cid) + length(data)), 0) from wf.blocks)::bigint
		+ (select coalesce(sum(octet_length(key) + length(value)), 0) from wf.derived)::bigint
		+ (select coalesce(sum(octet_length(name) + octet_length(note) + length(new) + length(events) + length(keys) + coalesce(length(data), 0)), 0) from wf.reflog)::bigint
		+ (select coalesce(sum(octet_length(name) + coalesce(length(cid), 0)), 0) from wf.heads)::bigint`)
	if err == nil {
		out.Live = readLong(got[0][0])
		out.File, err = s.fileSize(ctx)
	}
	if err != nil {
		return cas.Size{}, fmt.Errorf("size of %s: %w", s.Dir(), err)
	}
	return out, nil
}

// fileSize is what the tables and their indexes take on the disk of the server, in bytes.
func (s *Store) fileSize(ctx context.Context) (int64, error) {
	got, err := s.query(ctx, `select coalesce(sum(pg_total_relation_size(oid)), 0)::bigint from pg_class where relnamespace = 'wf'::regnamespace and relkind = 'r'`)
	if err != nil {
		return 0, err
	}
	return readLong(got[0][0]), nil
}

// Uncollected are the runs that were deleted and whose newest event is still stored: later collections free their space.
func (s *Store) Uncollected(ctx context.Context) (n int, err error) {
	all, err := cas.Tombstones(ctx, s)
	if err != nil {
		return 0, err
	}
	for part := range slices.Chunk(all, walkBlocks) {
		cids := make([][]byte, len(part))
		for i, t := range part {
			l, err := protocol.ParseLink(t.Head)
			if err != nil {
				return 0, fmt.Errorf("the tombstone of run %s: %w", t.Run, err)
			}
			cids[i] = l.Bytes()
		}
		got, err := s.query(ctx, `select count(distinct cid) from (`+heldBlocks+`) x`, byteas(cids))
		if err != nil {
			return 0, err
		}
		n += int(readLong(got[0][0]))
	}
	return n, nil
}
