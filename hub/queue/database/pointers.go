package database

import (
	"context"
	"fmt"

	"wf/hub/queue"
	"wf/postgres"
	"wf/protocol"
)

// Pointers is a queue.Pointers.
type Pointers struct{ s *Store }

const (
	readPointer = `select worker, epoch, seq, head, revision from wfhub.pointers where run = $1`
	// What workers say of their own runs is not waited for.
	swapPointer = `with old as (select worker, epoch from wfhub.pointers where run = $1), new as (
	insert into wfhub.pointers as p (run, worker, epoch, seq, head, revision) select $1, $2, $3, $4, $5, 1 where $6::bigint = 0
	on conflict do nothing returning revision
), moved as (
	update wfhub.pointers set worker = $2, epoch = $3, seq = $4, head = $5, revision = revision + 1 where run = $1 and revision = $6 returning revision
) select revision, set_config('synchronous_commit', case when coalesce((select epoch = $3 and worker = $2 from old), $3 = 0) then 'off' else 'on' end, true)
	from (select revision from new union all select revision from moved) as r`
)

// Get reads a pointer.
func (p *Pointers) Get(ctx context.Context, run protocol.RunID) (queue.Pointer, error) {
	got, err := p.s.query(ctx, readPointer, postgres.Text(string(run)))
	if err == nil && len(got) == 0 {
		err = protocol.ErrUnknownRun
	}
	if err != nil {
		return queue.Pointer{}, fmt.Errorf("run %s: %w", run, err)
	}
	r := got[0]
	return queue.Pointer{Run: run, Worker: string(r[0]), Epoch: uint64(postgres.ReadLong(r[1])), Seq: protocol.Seq(postgres.ReadLong(r[2])), Head: string(r[3]), Revision: uint64(postgres.ReadLong(r[4]))}, nil
}

// Swap writes a pointer that still has its revision.
func (p *Pointers) Swap(ctx context.Context, x queue.Pointer) (queue.Pointer, error) {
	got, err := p.s.query(ctx, swapPointer, postgres.Text(string(x.Run)), postgres.Text(x.Worker), postgres.Long(int64(x.Epoch)), postgres.Long(int64(x.Seq)), postgres.Text(x.Head), postgres.Long(int64(x.Revision)))
	if err == nil && len(got) == 0 {
		err = fmt.Errorf("it has no longer the revision %d: %w", x.Revision, queue.ErrSwapped)
	}
	if err != nil {
		return x, fmt.Errorf("pointer of run %s: %w", x.Run, err)
	}
	x.Revision = uint64(postgres.ReadLong(got[0][0]))
	return x, nil
}
