package pgstore

import (
	"bytes"
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
	from wf.heads h left join lateral (select r.n from wf.reflog r where r.name = h.name order by r.seq desc, r.n desc limit 1) l on true
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

// The names in the reflog are found one by one, each by its first row. A head that was dropped has counted that, and has no row of it.
const lostPage = `with recursive t(name) as (
		(select name from wf.reflog where name > $1 order by name limit 1)
		union all select (select r.name from wf.reflog r where r.name > t.name order by r.name limit 1) from t where t.name is not null)
	select t.name, l.new, l.seq, h.name is null or h.cid is null and h.n = l.n
	from (select name from t where name is not null and ($2::text[] is null or name = any($2)) limit $3) t left join wf.heads h on h.name = t.name,
	lateral (select r.seq, r.n, r.new from wf.reflog r where r.name = t.name order by r.seq desc, r.n desc limit 1) l order by t.name`

// lost tells of the heads that moves are noted of and that are not there.
func (e *evidence) lost(ctx context.Context, names []string) error {
	for after := ""; ; {
		got, err := e.query(ctx, lostPage, text(after), orAll(names), long(pageRows))
		if err != nil {
			return err
		}
		for _, r := range got {
			after = string(r[0])
			l, err := protocol.CastLink(r[1])
			if err == nil && bytes.Equal(r[3], []byte{1}) {
				e.v.Lost(after, cas.Seen{Head: l, Seq: protocol.Seq(readLong(r[2]))})
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
	movesPage = `select seq, n, old, new, events, ts, note from (select *, sum(octet_length(events)) over (order by seq, n) - octet_length(events) as before
	from (select seq, n, old, new, events, ts, note from wf.reflog where name = $1 and (seq, n) > ($2, $3) and n <= $4 order by seq, n limit $5) p) x
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
			seq, last = readLong(r[0]), readLong(r[1])
			line, err := lineOf(r)
			if err != nil || len(r[4])%32 != 0 {
				bad(seq, fmt.Sprintf("from % x to % x, with %d bytes of digests", r[2], r[3], len(r[4])))
				continue
			}
			m.Lines = append(m.Lines, line)
			if seq == 0 {
				continue
			}
			m.Events[line.Seq] = line.New
			for at, all := line.Seq-protocol.Seq(len(r[4])/32), r[4]; len(all) > 0; at, all = at+1, all[32:] {
				if m.Events[at], err = protocol.CastLink(append([]byte(eventPrefix), all[:32]...)); err != nil {
					return nil, err
				}
			}
		}
	}
	slices.SortFunc(m.Lines, func(a, b cas.ReflogLine) int { return int(a.N - b.N) })
	for i := len(m.Lines) - 1; i > 0; i-- {
		if !m.Lines[i].Old.Defined() && m.Lines[i].N > m.Lines[i-1].N+1 {
			m.Lines = m.Lines[i:]
			break
		}
	}
	return m, nil
}

// eventPrefix is what the CIDs of all events begin with.
const eventPrefix = "\x01\x71\x12\x20"

// lineOf is the move in a row of movesPage.
func lineOf(r [][]byte) (l cas.ReflogLine, err error) {
	l = cas.ReflogLine{Seq: protocol.Seq(readLong(r[0])), N: readLong(r[1]), TS: readLong(r[5]), Note: string(r[6])}
	if l.New, err = protocol.CastLink(r[3]); err == nil && r[2] != nil {
		l.Old, err = protocol.CastLink(r[2])
	}
	return l, err
}
