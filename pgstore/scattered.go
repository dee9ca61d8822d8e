package pgstore

import (
	"context"

	"wf/cas"
	"wf/protocol"
)

var _ cas.Scattered = (*Store)(nil)

// The line of each event is found by the index of its head.
const eventsAt = `select p.i, l.seq, l.moved, l.new, substr(l.events, (greatest(0, p.seq - 1 - l.seq + l.moved)*32 + 1)::int, 32), l.data, l.keys
	from unnest($1::text[], $2::bigint[]) with ordinality p(name, seq, i),
	lateral (select h.id from wf.heads h where h.name = p.name and h.cid is not null offset 0) h,
	lateral (select l.seq, l.moved, l.new, l.events, l.data, l.keys from wf.reflog l where l.head = h.id and l.seq >= p.seq order by l.seq, l.n limit 1) l
	where l.seq - l.moved < p.seq`

// EventsAt reads events of many journals together; see cas.Scattered.
func (s *Store) EventsAt(ctx context.Context, at []cas.EventAt) ([]protocol.Entry, error) {
	names := make([]string, len(at))
	for i, x := range at {
		names[i] = protocol.RunHead(x.Run)
	}
	got, err := s.query(ctx, eventsAt, texts(names), longs(len(at), func(i int) (int64, bool) { return int64(at[i].Seq), false }))
	if err != nil {
		return nil, err
	}
	var due []protocol.Entry
	var of []int
	for _, r := range got {
		i := int(readLong(r[0])) - 1
		had := len(due)
		if due, err = dueIn(due, r[1:], at[i].Seq-1, at[i].Seq); err != nil {
			due = due[:had] // After says what is wrong
		}
		for range due[had:] {
			of = append(of, i)
		}
	}
	if err := s.fill(ctx, due); err != nil {
		return nil, err
	}
	out := make([]protocol.Entry, len(at))
	for n, i := range of {
		if e := due[n]; e.Raw != nil && s.complete(ctx, &e, at[i].Seq) == nil {
			out[i] = e
		}
	}
	return out, nil
}
