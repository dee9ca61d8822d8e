package pgstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"wf/cas"
	"wf/protocol"
)

// Verify reads the store again and holds everything against its hash and its place, as cas.Verify does for a directory: heads,
// the moves of each, the chain of each run with its records, and with no run named every block. It reads by pages, each one
// statement, and others may use the store meanwhile. An error means that it could not be read at all; faults are in the report.
//
// Memory is bounded by the longest run and by the number of heads.
func Verify(ctx context.Context, s *Store, o cas.VerifyOptions) (cas.Report, error) {
	e := &evidence{Store: s, moved: map[string]int64{}}
	e.v = cas.NewVerifier(o, e)
	var names []string
	if o.Run != "" {
		names = []string{protocol.RunHead(o.Run), protocol.FilesHead(o.Run), protocol.DeletedHead(o.Run)}
	}
	err := e.heads(ctx, names)
	if err == nil {
		err = e.lost(ctx, names)
	}
	if err == nil && e.v.All() {
		err = e.blocks(ctx)
	}
	if err == nil && e.v.All() {
		err = e.packed(ctx)
	}
	var r cas.Report
	if err == nil {
		r, err = e.v.Judge(ctx)
	}
	if err != nil {
		return cas.Report{}, fmt.Errorf("verify %s: %w", s.Dir(), err)
	}
	return r, nil
}

// evidence is a store as a verification met it.
type evidence struct {
	*Store
	v     *cas.Verifier
	moved map[string]int64 // how often each head had moved
}

// Bounds of a page: rows, and bytes of what may be long in them. One row is read whatever its length.
const (
	pageRows  = 1000
	pageBytes = "8388608"
)

// A head is read together with its newest move: so that what is written meanwhile is none of it.
const headsPage = `select h.name, h.cid, h.seq, h.ts, greatest(h.n, coalesce(l.n, 0))
	from wf.heads h left join lateral (select r.n from wf.reflog r where r.head = h.id order by r.seq desc, r.n desc limit 1) l on true
	where h.name > $1 and h.cid is not null and ($2::text[] is null or h.name = any($2)) order by h.name limit $3`

func (e *evidence) heads(ctx context.Context, names []string) error {
	for after := ""; ; {
		got, err := e.query(ctx, headsPage, text(after), orAll(names), long(pageRows))
		if err != nil {
			return err
		}
		for _, r := range got {
			after = string(r[0])
			h, err := headOf(r)
			if err != nil {
				e.v.Fault("head_form", after, 0, "head", "a head", fmt.Sprintf("% x", r[1]))
				continue
			}
			e.moved[after] = readLong(r[4])
			e.v.Head(h)
		}
		if len(got) < pageRows {
			return nil
		}
	}
}

// orAll is a list of names, NULL for all.
func orAll(names []string) param {
	if names == nil {
		return param{OID: oidTexts}
	}
	return texts(names)
}

// The heads in the reflog are found one by one, each by its first row, where its name is. A head that was dropped has counted that, and has no row of it.
const lostPage = `with recursive t(head) as (
		(select head from wf.reflog where head > $1 order by head limit 1)
		union all select (select r.head from wf.reflog r where r.head > t.head order by r.head limit 1) from t where t.head is not null)
	select t.head, coalesce(h.name, (select r.name from wf.reflog r where r.head = t.head and r.name <> '' order by r.seq, r.n limit 1), '#' || t.head), l.new, l.seq,
		h.name is null or h.cid is null and h.n = l.n, l.data
	from (select head from t where head is not null limit $2) t left join wf.heads h on h.id = t.head,
	lateral (select r.seq, r.n, r.new, r.data from wf.reflog r where r.head = t.head order by r.seq desc, r.n desc limit 1) l order by t.head`

// lost tells of the heads that moves are noted of and that are not there.
func (e *evidence) lost(ctx context.Context, names []string) error {
	for after := int32(-1); ; {
		got, err := e.query(ctx, lostPage, integer(after), long(pageRows))
		if err != nil {
			return err
		}
		for _, r := range got {
			after = readInt(r[0])
			name := string(r[1])
			l, err := protocol.CastLink(r[2])
			if in, bad := cas.UnpackBlocks(r[5]); bad == nil {
				l, err = in[len(in)-1].Link, nil
			}
			if err == nil && yes(r[4]) && (names == nil || slices.Contains(names, name)) {
				e.v.Lost(name, cas.Seen{Head: l, Seq: protocol.Seq(readInt(r[3]))})
			}
		}
		if len(got) < pageRows {
			return nil
		}
	}
}

// The length of a long value is read without the value.
const (
	blocksPage = `select cid, data from (select cid, data, sum(octet_length(data)) over (order by cid) - octet_length(data) as before
	from (select cid, data from wf.blocks where cid > $1 order by cid limit $2) p) x where before < ` + pageBytes + ` order by cid`
	namesPage = `select cid from wf.blocks where cid > $1 order by cid limit $2`
)

// blocks hashes every block.
func (e *evidence) blocks(ctx context.Context) error {
	for after := []byte{}; ; {
		got, err := e.query(ctx, blocksPage, bytea(after), long(pageRows))
		damaged := errors.Is(err, protocol.ErrCorrupt)
		if damaged { // a page of the database, or of its index: which blocks are in it is found one by one
			got, err = e.query(ctx, namesPage, bytea(after), long(pageRows))
		}
		if err != nil {
			return err
		}
		if len(got) == 0 {
			return nil
		}
		for _, r := range got {
			after = r[0]
			l, err := protocol.CastLink(r[0])
			if err != nil {
				e.v.Fault("corrupt", "wf.blocks", 0, fmt.Sprintf("%x", r[0]), "the CID of a block", err.Error())
				continue
			}
			var data []byte
			if damaged {
				data, err = e.Block(ctx, l)
			} else {
				data, err = cas.UnpackBlock(l, r[1])
			}
			switch mismatch, ok := errors.AsType[*cas.Mismatch](err); {
			case ok:
				e.v.Fault("corrupt", "wf.blocks", 0, l.String(), l.String(), mismatch.Actual.String())
			case errors.Is(err, protocol.ErrCorrupt):
				e.v.Fault("corrupt", "wf.blocks", 0, l.String(), l.String(), err.Error())
			case errors.Is(err, protocol.ErrNotFound): // collected since
			case err != nil:
				return err
			default:
				e.v.Block(l, data)
			}
		}
	}
}

const packedPage = `select head, seq, n, keys, data from (select *, sum(octet_length(data)) over (order by head, seq, n) - octet_length(data) as before
	from (select head, seq, n, keys, data from wf.reflog where (head, seq, n) > ($1, $2, $3) and data is not null order by head, seq, n limit $4) p) x
	where before < ` + pageBytes + ` order by head, seq, n`

// packed hashes the blocks that lie in lines.
func (e *evidence) packed(ctx context.Context) error {
	for last := (lineID{-1, -1, -1}); ; {
		got, err := e.query(ctx, packedPage, integer(last.head), integer(last.seq), long(last.n), long(pageRows))
		if err != nil || len(got) == 0 {
			return err
		}
		all := map[string]cas.Block{}
		for _, r := range got {
			last = lineIDOf(r)
			blocks, err := blocksIn(r[4], r[3])
			if err != nil {
				e.v.Fault("corrupt", "wf.reflog", protocol.Seq(last.seq), fmt.Sprintf("move %d of head %d", last.n, last.head), fmt.Sprintf("blocks with the keys %x", r[3]), err.Error())
				continue
			}
			for _, b := range blocks {
				all[string(b.Link.Bytes())] = b
			}
		}
		cids := make([][]byte, 0, len(all))
		for cid := range all {
			cids = append(cids, []byte(cid))
		}
		also, err := e.query(ctx, `select cid from wf.blocks where cid = any($1)`, byteas(cids))
		if err != nil {
			return err
		}
		for _, r := range also { // it was counted
			delete(all, string(r[0]))
		}
		for _, b := range all {
			e.v.Block(b.Link, b.Data)
		}
	}
}

// Moves are those of a head up to where the verification met it.
func (e *evidence) Moves(ctx context.Context, h cas.Head) (*cas.Moves, error) {
	n, ok := e.moved[h.Name]
	if !ok { // the base of a fork, which was deleted
		n = math.MaxInt64
	}
	return e.noted(ctx, h.Name, n, func(seq int64, actual string) {
		e.v.Fault("reflog_form", h.Name, protocol.Seq(seq), "reflog", "a move", actual)
	})
}

// Moves are all moves of a head; see cas.Evidence.
func (s *Store) Moves(ctx context.Context, h cas.Head) (*cas.Moves, error) {
	return s.noted(ctx, h.Name, math.MaxInt64, func(int64, string) {}) // Verify tells of it
}

const (
	basesOf   = `select base, shared from wf.heads where name = $1 and base is not null`
	movesPage = `select seq, n, name <> '', new, events, ts, note, moved, data, keys
	from (select *, sum(octet_length(events) + coalesce(octet_length(data), 0)) over (order by seq, n) - octet_length(events) - coalesce(octet_length(data), 0) as before
		from (select * from wf.reflog where head = (select id from wf.heads where name = $1) and (seq, n) > ($2, $3) and n <= $4 order by seq, n limit $5) p) x
	where before < ` + pageBytes + ` order by seq, n`
)

// noted are the moves of a head up to the nth. Of a head that was dropped and came again they are those since. bad is told of rows
// that are none.
func (s *Store) noted(ctx context.Context, name string, n int64, bad func(seq int64, actual string)) (*cas.Moves, error) {
	m := &cas.Moves{Events: map[protocol.Seq]protocol.Link{}, In: "the reflog", Fix: "put back a copy of the store that holds it", Whole: true}
	got, err := s.query(ctx, basesOf, text(name))
	if err != nil {
		return nil, err
	}
	if len(got) > 0 {
		m.Base, m.Shared = string(got[0][0]), protocol.Seq(readLong(got[0][1]))
	}
	for seq, last := int64(-1), int64(0); ; {
		got, err := s.query(ctx, movesPage, text(name), long(seq), long(last), long(n), long(pageRows))
		if err != nil {
			return nil, err
		}
		if len(got) == 0 {
			break
		}
		for _, r := range got {
			seq, last = int64(readInt(r[0])), readLong(r[1])
			line, events, err := lineOf(r)
			if err != nil {
				bad(seq, err.Error())
				continue
			}
			m.Lines = append(m.Lines, line)
			for i, l := range events {
				m.Events[line.Seq-protocol.Seq(len(events)-1-i)] = l
			}
		}
	}
	slices.SortFunc(m.Lines, func(a, b cas.ReflogLine) int { return cmp.Compare(a.N, b.N) })
	for i := range m.Lines {
		if l := &m.Lines[i]; l.Cut && i > 0 && m.Lines[i-1].N == l.N-1 {
			l.Old, l.Cut = m.Lines[i-1].New, false
		}
	}
	for i := len(m.Lines) - 1; i > 0; i-- {
		if l := m.Lines[i]; !l.Old.Defined() && !l.Cut && l.N > m.Lines[i-1].N+1 {
			m.Lines = m.Lines[i:]
			break
		}
	}
	return m, nil
}

// eventPrefix is what the CIDs of all events begin with.
const eventPrefix = "\x01\x71\x12\x20"

// lineOf is the move in a row of movesPage, with its events. Where it moved from is in the line before, unless it was from nothing: it is cut off of that.
func lineOf(r [][]byte) (l cas.ReflogLine, events []protocol.Link, err error) {
	l = cas.ReflogLine{Seq: protocol.Seq(readInt(r[0])), N: readLong(r[1]), Cut: !yes(r[2]), TS: readLong(r[5]), Note: string(r[6])}
	digests, moved := r[4], int(readInt(r[7]))
	if r[8] != nil && l.Seq > 0 {
		in, err := eventsIn(r[8], r[9], moved)
		for _, b := range in {
			events, l.New = append(events, b.Link), b.Link
		}
		return l, events, err
	}
	if l.New, err = protocol.CastLink(r[3]); err != nil {
		return l, nil, fmt.Errorf("a move to % x: %w", r[3], err)
	}
	if l.Seq == 0 || moved > 1 && len(digests) == 0 { // it was emptied
		return l, nil, nil
	}
	if moved < 1 || len(digests) != 32*(moved-1) {
		return l, nil, fmt.Errorf("%d events, with %d bytes of digests: %w", moved, len(digests), protocol.ErrCorrupt)
	}
	for ; len(digests) > 0; digests = digests[32:] {
		e, err := protocol.CastLink(append([]byte(eventPrefix), digests[:32]...))
		if err != nil {
			return l, nil, err
		}
		events = append(events, e)
	}
	return l, append(events, l.New), nil
}
