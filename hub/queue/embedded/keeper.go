package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"wf/hub/queue"
	"wf/hub/queue/line"
	"wf/protocol"
)

// A keeper is a line.Keeper, and the turn of the one process that has the file. The queue has one turn at a time.
type keeper struct {
	db            *bbolt.DB
	number, epoch uint64
	loaded        bool
	news          []line.Record
	now           time.Time
}

func (k *keeper) Now() time.Time { return time.Now() }

// Begin reads the jobs of the file in the first turn.
func (k *keeper) Begin(context.Context, bool) (line.Turn, error) {
	var err error
	if k.now = time.Now(); !k.loaded {
		k.news, err = k.read()
		k.loaded = err == nil
	}
	return turn{k}, err
}

// Box reads the box of a job.
func (k *keeper) Box(_ context.Context, number uint64) (box []byte, err error) {
	err = k.db.View(func(tx *bbolt.Tx) error {
		box = slices.Clone(tx.Bucket(boxesBucket).Get(key(number)))
		return nil
	})
	return box, err
}

func (k *keeper) read() (out []line.Record, err error) {
	err = k.db.View(func(tx *bbolt.Tx) error {
		k.epoch = number(tx.Bucket(metaBucket).Get(epochKey))
		return tx.Bucket(jobsBucket).ForEach(func(name, v []byte) error {
			r := line.Record{}
			if err := json.Unmarshal(v, &r); err != nil {
				return fmt.Errorf("job %x: %w", name, err)
			}
			if r.Submitted.IsZero() { // of version 1
				r.Submitted = r.Since
			}
			k.number = max(k.number, r.Number)
			if latest := k.now.Add(r.TTL); r.Until.After(latest) {
				r.Until = latest // the clock was put back meanwhile
			}
			if r.State == queue.Queued && len(r.Keys) == 0 { // of version 1: what it starts was in memory
				r.State, r.Why = queue.Dead, queue.ErrBodyGone.Code
			}
			out = append(out, r)
			return nil
		})
	})
	protocol.Sort(out, func(a, b line.Record) int { return a.Since.Compare(b.Since) })
	return out, err
}

type turn struct{ *keeper }

func (t turn) Now() time.Time               { return t.now }
func (t turn) Last() (number, epoch uint64) { return t.number, t.epoch }
func (t turn) End()                         {}

// News are the jobs of the file, once.
func (t turn) News() (jobs []line.Record, all bool) {
	jobs, t.news = t.news, nil
	return jobs, jobs != nil
}

// Write is one transaction.
func (t turn) Write(c line.Change) error {
	number, epoch := t.number, t.epoch
	err := t.db.Update(func(tx *bbolt.Tx) error {
		for _, d := range c.Drop {
			if err := errors.Join(tx.Bucket(jobsBucket).Delete(key(d.Number)), tx.Bucket(boxesBucket).Delete(key(d.Number))); err != nil {
				return err
			}
		}
		box := c.Box
		for _, r := range c.Jobs {
			if err := write(tx, r, box); err != nil {
				return err
			}
			box = nil
			number, epoch = max(number, r.Number), max(epoch, r.Epoch)
		}
		if epoch == t.epoch {
			return nil
		}
		return tx.Bucket(metaBucket).Put(epochKey, key(epoch))
	})
	if err == nil {
		t.number, t.epoch = number, epoch
	}
	return err
}

// write writes a job, with its box where there is a new one. A job without keys loses its box.
func write(tx *bbolt.Tx, r line.Record, box []byte) error {
	var err error
	switch boxes := tx.Bucket(boxesBucket); {
	case len(r.Keys) == 0:
		err = boxes.Delete(key(r.Number))
	case box != nil:
		err = boxes.Put(key(r.Number), box)
	}
	return errors.Join(err, put(tx.Bucket(jobsBucket), key(r.Number), r))
}
