package database

import (
	"context"
	"encoding/hex"
	"time"

	"wf/postgres"
)

// channel is where hubs tell one another that a job has changed. It is a hint beside the poll: one that is lost, or never comes since a
// pooler lies in between, does no harm.
const channel = "wfhub"

// name of this process, as others hear it.
func (s *Store) name() string { return hex.EncodeToString(s.hub) }

// listenAgain is how long a hub does without hints where it cannot listen.
const listenAgain = 10 * time.Second

// sweepEvery is how often rows are removed that are needed no longer. A hub that has heard nothing for that long reads all jobs.
const sweepEvery = time.Hour

// follow hears what other hubs change, until Close.
func (s *Store) follow() {
	hints := make(chan struct{}, 1)
	s.all.Go(func() {
		for s.life.Err() == nil {
			s.listen(hints)
			s.sleep(listenAgain)
		}
	})
	s.all.Go(func() {
		poll, sweep := time.NewTicker(s.o.Poll), time.NewTicker(sweepEvery)
		defer poll.Stop()
		defer sweep.Stop()
		var version int64 // an hour ago
		for {
			select {
			case <-s.life.Done():
				return
			case <-hints:
			case <-poll.C:
			case <-sweep.C:
				version = s.sweep(version)
			}
			_ = s.Queue.Sync(s.life) // Outage tells of it
		}
	})
}

func (s *Store) sleep(d time.Duration) {
	select {
	case <-s.life.Done():
	case <-time.After(d):
	}
}

// listen passes hints on for as long as a connection lasts.
func (s *Store) listen(hints chan<- struct{}) {
	c, err := s.connect(s.life)
	if err != nil {
		return
	}
	defer c.Close()
	own := s.name()
	hint := func() {
		select {
		case hints <- struct{}{}:
		default: // there is one
		}
	}
	c.Heard = func(_, by string) {
		if by != own {
			hint()
		}
	}
	if c.Listen(s.life, channel) != nil {
		return
	}
	hint() // what was reported before is not reported again
	for err == nil {
		err = c.Await(s.life)
	}
}

const (
	// The row of meta is locked first, as in a turn: one that holds it may wait for the row of a job.
	sweepJobs = `with m as materialized (select from wfhub.meta for update),
	gone as (delete from wfhub.jobs where job is null and version <= $1 and exists (select from m) returning version)
	update wfhub.meta set swept = greatest(swept, coalesce((select max(version) from gone), 0)) returning version`
	sweepWorkers = `delete from wfhub.workers w where seen < ` + now + ` - $2 and not exists (select from wfhub.links l where l.worker = w.id and l.until > ` + now + `)`
	sweepLinks   = `delete from wfhub.links where until < ` + now + ` - $2`
)

// sweep removes the rows of jobs that were gone at a version, and of workers that are away for long. It gives the version of now.
func (s *Store) sweep(version int64) int64 {
	ctx := context.WithoutCancel(s.life)
	got, err := s.query(ctx, sweepJobs, postgres.Long(version))
	for _, sql := range []string{sweepLinks, sweepWorkers} {
		if err == nil {
			_, err = s.query(ctx, sql, s.clock(), postgres.Long(keep.Microseconds()))
		}
	}
	if err != nil || len(got) == 0 {
		return version // the next one does it
	}
	return postgres.ReadLong(got[0][0])
}
