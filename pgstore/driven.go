package pgstore

import (
	"context"
	"strings"
	"time"

	"wf/cas"
	"wf/protocol"
)

const readClaim = `select h.worker, coalesce(w.beat, -1), coalesce(w.host, ''), coalesce(w.pid, 0)::bigint,
	coalesce((extract(epoch from statement_timestamp() - w.at) * 1000)::bigint, -1), coalesce(w.lease, 0)::bigint
	from wf.heads h left join wf.workers w on w.id = h.worker
	where h.name = coalesce((select root from wf.heads where name = $1), $1) and h.worker is not null`

// Driven reports whether a process drives a run, or another one of its tree, be it this process. One that is no longer heard of does, until this process
// has listened for a whole lease.
func (s *Store) Driven(ctx context.Context, run protocol.RunID) (bool, error) {
	by, err := s.driver(ctx, run)
	return by != "", err
}

// Undriven is nil where no process drives a run, else an error that wraps protocol.ErrRunLive and names it.
func (s *Store) Undriven(ctx context.Context, run protocol.RunID) error {
	by, err := s.driver(ctx, run)
	if err == nil && by != "" {
		err = live(protocol.RunHead(run), by)
	}
	return err
}

// driver names the process that drives a run; "" where none does.
func (s *Store) driver(ctx context.Context, run protocol.RunID) (string, error) {
	if err := cas.CheckRunID(run); err != nil {
		return "", err
	}
	began := time.Now()
	got, err := s.query(ctx, readClaim, text(protocol.RunHead(run)))
	if err != nil || len(got) == 0 {
		return "", err
	}
	h := s.worker.holderOf(began, got[0])
	if s.worker.dead(h.id, h.beat) {
		return "", nil
	}
	return h.name, nil
}

// DropLock does nothing: a claim is a part of the row of the head, and gone when it is released.
func (s *Store) DropLock(context.Context, protocol.RunID) error { return nil }

// holder is the worker that has a claim.
type holder struct {
	id, name string
	beat     int64
	quiet    time.Duration // since its last beat by the clock of the database, which only says whether to wait for it
}

// holderOf reads a row of readClaim, and notes the beat in it.
func (w *worker) holderOf(began time.Time, r [][]byte) holder {
	h := holder{id: string(r[0]), beat: readLong(r[1]), name: nameWorker(string(r[2]), readLong(r[3])), quiet: time.Duration(readLong(r[4])) * time.Millisecond}
	if h.beat == none {
		h.quiet = w.lease
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(h.id, h.beat, time.Duration(readLong(r[5]))*time.Millisecond, began)
	return h
}

// live is the error of what another process has.
func live(name, by string) error {
	if strings.HasPrefix(name, protocol.RunHead("")) {
		return protocol.ErrRunLive.With("", "run %s is driven by %s", protocol.RunOf(name), by)
	}
	return protocol.ErrRunLive.With("wait for it, or end it", "%s is held by %s", name, by)
}
