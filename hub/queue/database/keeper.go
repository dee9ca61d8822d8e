package database

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"wf/hub/queue/line"
	"wf/postgres"
	"wf/protocol"
)

// A keeper is a line.Keeper. The queue has one turn at a time.
type keeper struct {
	s       *Store
	version int64 // that was heard last
	known   bool  // all jobs up to it were heard
	at      time.Time
	heard   time.Time // when the clock of the server was at, by that of this process
}

// Now is the clock of the server, about.
func (k *keeper) Now() time.Time {
	if k.s.o.now != nil {
		return k.s.o.now()
	}
	return k.at.Add(time.Since(k.heard))
}

// turn is a turn of a keeper. In one that changes, the connection is in a transaction that has the row of meta.
type turn struct {
	*keeper
	ctx     context.Context
	stop    context.CancelFunc
	c       *postgres.Conn
	changes bool // and has not written yet
	now     time.Time
	last    struct{ number, epoch uint64 }
	news    []line.Record
	all     bool
}

const (
	readNews = `select ` + now + `, m.version, m.swept, m.number, m.epoch, j.id, j.number, j.job from wfhub.meta m left join wfhub.jobs j on j.version > $2`
	// A hub that hangs in its turn keeps the others from theirs for so long.
	beginTurn = `select set_config('idle_in_transaction_session_timeout', '5s', true)`
	lockMeta  = `select 1 from wfhub.meta for update`
)

// Begin reads what others have changed. An idle connection may have been ended by the server meanwhile: a turn then begins again over another one.
func (k *keeper) Begin(ctx context.Context, changes bool) (line.Turn, error) {
	for {
		t := &turn{keeper: k, changes: changes}
		t.ctx, t.stop = k.s.patiently(ctx)
		var fresh bool
		var err error
		if t.c, fresh, err = k.s.take(t.ctx); err != nil {
			t.stop()
			return nil, err
		}
		if fresh { // maybe of another server, which may lack what was heard
			k.known = false
		}
		if err = t.read(); err == nil {
			return t, nil
		}
		again := t.c.Closed() && !fresh && t.ctx.Err() == nil
		if err = t.leave(err); !again {
			return nil, err
		}
	}
}

func (t *turn) read() error {
	if t.changes {
		return t.hear(t.c.Begin, postgres.Statement{SQL: beginTurn}, postgres.Statement{SQL: lockMeta})
	}
	return t.hear(t.c.Pipeline)
}

// hear reads the changes behind those that were heard, or all jobs where that would not be all of them.
func (t *turn) hear(send func(context.Context, []postgres.Statement) ([]postgres.Rows, error), before ...postgres.Statement) error {
	since := t.version
	if t.all = !t.known; t.all {
		since = -1
	}
	out, err := send(t.ctx, append(before, postgres.Statement{SQL: readNews, Params: []postgres.Param{t.s.clock(), postgres.Long(since)}}))
	if err != nil {
		return err
	}
	got := out[len(out)-1]
	if len(got) == 0 {
		return fmt.Errorf("wfhub.meta has no row: %w", protocol.ErrCorrupt)
	}
	version, swept := postgres.ReadLong(got[0][1]), postgres.ReadLong(got[0][2])
	if !t.all && (version < t.version || swept > t.version) { // the database was put back; or this hub was away for long
		t.known = false
		return t.hear(t.c.Pipeline)
	}
	t.at, t.heard = time.UnixMicro(postgres.ReadLong(got[0][0])), time.Now()
	t.now = t.at
	t.last.number, t.last.epoch = uint64(postgres.ReadLong(got[0][3])), uint64(postgres.ReadLong(got[0][4]))
	for _, row := range got {
		if row[5] == nil {
			continue // no job has changed
		}
		r := line.Record{Number: uint64(postgres.ReadLong(row[6]))}
		if row[7] == nil {
			r.ID, r.Gone = string(row[5]), true
		} else if err := json.Unmarshal(row[7], &r); err != nil {
			return fmt.Errorf("job %s: %v: %w", row[5], err, protocol.ErrCorrupt)
		}
		t.news = append(t.news, r)
	}
	t.version, t.known = version, true
	return nil
}

func (t *turn) Now() time.Time               { return t.now }
func (t *turn) Last() (number, epoch uint64) { return t.last.number, t.last.epoch }
func (t *turn) News() ([]line.Record, bool)  { return t.news, t.all }

const (
	dropJobs = `with gone as (update wfhub.jobs set job = null, version = $2 where id = any($1) returning number) delete from wfhub.boxes where number in (select number from gone)`
	putJobs  = `insert into wfhub.jobs (id, number, version, job) select id, number, $4, job from unnest($1::text[], $2::bigint[], $3::text[]) as t(id, number, job)
	on conflict (id) do update set number = excluded.number, version = excluded.version, job = excluded.job`
	putBox   = `insert into wfhub.boxes (number, box) values ($1, $2)`
	dropBox  = `delete from wfhub.boxes where number = any($1)`
	moveMeta = `update wfhub.meta set version = $1, number = greatest(number, $2), epoch = greatest(epoch, $3)`
	// The other hubs look at once.
	tell = `select pg_notify('` + channel + `', $1)`
)

// Write writes a change and commits.
func (t *turn) Write(c line.Change) error {
	version := t.version + 1
	number, epoch := t.last.number, t.last.epoch
	var out []postgres.Statement
	do := func(sql string, params ...postgres.Param) {
		out = append(out, postgres.Statement{SQL: sql, Params: params})
	}
	if len(c.Drop) > 0 {
		ids := make([]string, len(c.Drop))
		for i, d := range c.Drop {
			ids[i] = d.ID
		}
		do(dropJobs, postgres.Texts(ids), postgres.Long(version))
	}
	if n := len(c.Jobs); n > 0 {
		ids, jobs, bare := make([]string, n), make([]string, n), []int64{}
		for i, r := range c.Jobs {
			text, err := json.Marshal(r)
			if err != nil {
				return err
			}
			ids[i], jobs[i] = r.ID, string(text)
			if len(r.Keys) == 0 {
				bare = append(bare, int64(r.Number))
			}
			number, epoch = max(number, r.Number), max(epoch, r.Epoch)
		}
		numbers := postgres.Longs(n, func(i int) (int64, bool) { return int64(c.Jobs[i].Number), false })
		do(putJobs, postgres.Texts(ids), numbers, postgres.Texts(jobs), postgres.Long(version))
		if len(bare) > 0 {
			do(dropBox, postgres.Longs(len(bare), func(i int) (int64, bool) { return bare[i], false }))
		}
		if c.Box != nil {
			do(putBox, postgres.Long(int64(c.Jobs[0].Number)), postgres.Bytea(c.Box))
		}
	}
	do(moveMeta, postgres.Long(version), postgres.Long(int64(number)), postgres.Long(int64(epoch)))
	do(tell, postgres.Text(t.s.name()))
	t.changes = false
	if _, _, err := t.c.Commit(out...); err != nil {
		// If it was stored all the same, the next turn hears of it as of a change of another hub.
		return fmt.Errorf("%s: %w", t.s.a.Shown, explain(postgres.Classify(context.Background(), err)))
	}
	t.version, t.last.number, t.last.epoch = version, number, epoch
	return nil
}

// End gives the connection back, and the row of meta to the next turn where nothing was written.
func (t *turn) End() { _ = t.leave(nil) }

func (t *turn) leave(err error) error {
	defer t.stop()
	if t.changes && !t.c.Closed() && t.c.Rollback(t.ctx) != nil {
		t.c.Close()
	}
	return t.s.give(t.ctx, t.c, err)
}

// Box reads a box, beside the turn that asks for it.
func (k *keeper) Box(ctx context.Context, number uint64) ([]byte, error) {
	got, err := k.s.query(ctx, `select box from wfhub.boxes where number = $1`, postgres.Long(int64(number)))
	if err != nil || len(got) == 0 {
		return nil, err
	}
	return got[0][0], nil
}
