package pgstore

import (
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"time"

	"wf/cas"
	"wf/postgres"
	"wf/protocol"
)

// A group is one transaction, of which every statement is sent before the first answer:
//
//	makeHeads  rows for names that have none, so that each head can be locked
//	lockHeads  in the order of names; what they hold comes back
//	commit     each batch is compared on its own, and all of it is written, or nothing
//	touch      where the outcome of an earlier try is unclear: see settle
//
// Locks in another order would deadlock: two groups, each with a row that the other one waits for.
const (
	makeHeads = `insert into wf.heads(name) select t.name from unnest($1::text[]) t(name) where (select true from wf.heads h where h.name = t.name) is null order by t.name on conflict do nothing` // a conflict takes a number
	lockHeads = `select name, cid, gone, token, worker from wf.heads where name = any($1::text[]) order by name for no key update`
	touch     = `update wf.heads set n = n where name = any($1::text[])`
	storeSome = `insert into wf.blocks(cid, data, used)
	select distinct on (cid) cid, data, (extract(epoch from statement_timestamp()) / 86400)::int from unnest($1::bytea[], $2::bytea[]) t(cid, data) order by cid
	on conflict (cid) do update set used = excluded.used where blocks.used < excluded.used - 1`
)

// Blocks of a batch that has more than groupSize of them go ahead of it, in transactions of at most aheadSize bytes or one block.
// The heads move last, so nothing leads to them before.
const aheadSize = 8 << 20

// drain is the committer: one transaction for all that wait, until none does.
func (s *Store) drain() {
	for {
		group := s.queue.take()
		if group == nil {
			return
		}
		s.writeGroup(group, false)
		s.follows.signal()
	}
}

// Between tries to reach a lost database.
const (
	pauseFirst = 20 * time.Millisecond
	pauseMost  = time.Second
)

// writeGroup writes a group and answers its callers. It tries again for as long as that may help: the same bytes are sent, and
// unclear is that an earlier try may have been committed.
func (s *Store) writeGroup(group []*request, unclear bool) {
	pause, tries := pauseFirst, 0
	for {
		if group = slices.DeleteFunc(group, func(r *request) bool { return !r.send() }); len(group) == 0 {
			return
		}
		if s.life.Err() != nil && !errors.Is(context.Cause(s.life), errClosed) { // refused; what waits when it is closed is still written
			s.fail(group, unclear, context.Cause(s.life))
			return
		}
		maybe, err := s.try(group, unclear)
		unclear = unclear || maybe
		switch {
		case err == nil:
			s.outage.note(&s.outage.commits, nil)
			return
		case postgres.Deadlocked(err):
			if tries++; tries < 3 {
				continue
			}
			if len(group) == 1 {
				break // later, it waits for others
			}
			fallthrough
		case !maybe && !errors.Is(classify(context.Background(), err), protocol.ErrUnreachable) && len(group) > 1:
			for _, r := range group {
				s.writeGroup([]*request{r}, unclear)
			}
			return
		case !maybe && !errors.Is(classify(context.Background(), err), protocol.ErrUnreachable):
			s.fail(group, unclear, err)
			return
		}
		s.dropWriter()
		if pause > pauseFirst { // not for a connection that was cut alone
			s.outage.note(&s.outage.commits, fmt.Errorf("%s: %w: %w", s.a.Shown, protocol.ErrUnreachable, err))
		}
		for _, r := range group {
			r.hold()
			if !unclear {
				r.unsend()
			}
		}
		select {
		case <-time.After(pause/2 + mathrand.N(pause)):
		case <-s.life.Done():
			s.fail(group, unclear, context.Cause(s.life))
			return
		}
		pause = min(2*pause, pauseMost)
	}
}

// fail answers all of a group with an error.
func (s *Store) fail(group []*request, unclear bool, err error) {
	err = classify(context.Background(), err)
	if unclear {
		err = fmt.Errorf("whether it was stored is not known: %w: %w", protocol.ErrUnreachable, err)
	}
	for _, r := range group {
		r.done <- fmt.Errorf("commit to %s: %w", s.a.Shown, err)
	}
}

// unsend is that nothing of a batch can be stored: its caller may leave.
func (r *request) unsend() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = false
}

func (s *Store) dropWriter() {
	if s.write != nil {
		s.write.close()
		s.write = nil
	}
}

// try sends a group once, and answers its callers where it is known what became of it. maybe is that it is not.
func (s *Store) try(group []*request, unclear bool) (maybe bool, err error) {
	if s.write == nil || s.write.Closed() {
		s.dropWriter()
		if s.write, err = s.writer(s.life); err != nil {
			s.write = nil
			return false, err
		}
	}
	for _, r := range group {
		if r.size > groupSize {
			if err := s.ahead(r); err != nil {
				return false, err // blocks alone: stored once more they do no harm
			}
		}
	}
	names := namesOf(group)
	all := []statement{{makeHeads, []param{names}}, {lockHeads, []param{names}}, {statementOf(group, unclear), s.params(group)}}
	if unclear {
		// A batch that turns out to be stored may be so on the primary alone, where its COMMIT was cut off while it waited for
		// the standby. This write to the same rows is behind it, and is acknowledged by both.
		all = append(all, statement{touch, []param{names}})
	}
	done := s.Measure(cas.OpCommit)
	out, maybe, err := s.write.transact(all...)
	done(err)
	if err != nil {
		return maybe, err
	}
	stored := make([]bool, len(group))
	for _, r := range out[2] {
		if i := readLong(r[0]); i >= 0 && int(i) < len(stored) {
			stored[i] = true
		}
	}
	heads := map[string]lockedHead{}
	for _, r := range out[1] {
		heads[string(r[0])] = lockedHead{cid: r[1], gone: len(r[2]) == 1 && r[2][0] == 1, token: r[3], worker: r[4]}
	}
	due := false
	s.seen.remember(group, stored)
	for i, r := range group {
		if stored[i] {
			due = due || r.makesDue()
			s.recent.add(r.small)
			r.done <- nil
		} else {
			r.done <- s.why(r, heads)
		}
	}
	if due {
		s.hint()
		s.ring()
	}
	return false, nil
}

// ahead stores the blocks of a large batch, those that are left of it.
func (s *Store) ahead(r *request) error {
	for len(r.blocks) > 0 {
		n, size := 0, 0
		for n < len(r.blocks) && (n == 0 || size+len(r.blocks[n].data) <= aheadSize) {
			size += len(r.blocks[n].data)
			n++
		}
		cids, datas := make([][]byte, n), make([][]byte, n)
		for i, b := range r.blocks[:n] {
			cids[i], datas[i] = b.cid, b.data
		}
		if _, maybe, err := s.write.transact(statement{storeSome, []param{byteas(cids), byteas(datas)}}); err != nil {
			if maybe {
				err = fmt.Errorf("%w: %w", protocol.ErrUnreachable, err)
			}
			return err
		}
		r.blocks, r.size = r.blocks[n:], r.size-size
	}
	return nil
}

// lockedHead is a head as a group found it.
type lockedHead struct {
	cid    []byte
	gone   bool
	token  []byte
	worker []byte
}

// why says why a batch was refused, by the heads that refused it.
func (s *Store) why(r *request, heads map[string]lockedHead) error {
	if r.fence != (cas.Fence{}) {
		if h := heads[protocol.RunHead(r.fence.Root)]; string(h.token) != string(r.fence.Token[:]) {
			return fmt.Errorf("commit under the claim of run %s: %w", r.fence.Root, s.taken(r.fence, h.worker))
		}
	}
	for _, x := range r.rows {
		h := heads[x.name]
		switch {
		case x.kind == drops, x.kind == guards:
		case h.gone, h.cid == nil && (x.kind == shares || x.kind == buries && x.old != nil):
			return s.refusedFor(x, h.gone)
		case x.kind != shares && string(h.cid) != string(x.old):
			return fmt.Errorf("commit to %s: its head is %s, not %s: %w", x.name, shown(h.cid), shown(x.old), protocol.ErrHeadMoved)
		}
	}
	return fmt.Errorf("commit: it was overtaken: %w", protocol.ErrHeadMoved)
}

// refusedFor says why a run that a batch needs is not there.
func (s *Store) refusedFor(x row, gone bool) error {
	err := s.absent(s.life, protocol.RunOf(x.name))
	if errors.Is(err, protocol.ErrUnreachable) || errors.Is(err, errClosed) { // the words of its tombstone are lost, not the outcome
		if err = protocol.ErrUnknownRun; gone {
			err = protocol.ErrRunDeleted
		}
	}
	return fmt.Errorf("commit to %s: %w", x.name, err)
}

func shown(cid []byte) string {
	if cid == nil {
		return "none"
	}
	l, err := protocol.CastLink(cid)
	if err != nil {
		return fmt.Sprintf("%x", cid)
	}
	return l.String()
}
