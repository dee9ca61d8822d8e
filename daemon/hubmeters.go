package daemon

import (
	"context"
	"time"

	"wf/hub/queue"
	"wf/metrics"
)

// hubTime is how long the queue of a hub may take to say what is in it.
const hubTime = 2 * time.Second

// registerHub has among the metrics what the queue of a hub holds, and which workers it knows.
func registerHub(r *metrics.Registry, kept hubKept) {
	jobs := func(each func(queue.Entry)) {
		ctx, stop := context.WithTimeout(context.Background(), hubTime)
		defer stop()
		all, err := kept.Queue.List(ctx)
		if err != nil {
			return // it is closed, or its database is away: there is nothing to show
		}
		for _, e := range all {
			each(e)
		}
	}
	status := metrics.Label{Name: "status", Values: []string{string(queue.Queued), string(queue.Leased), string(queue.Dead)}}
	r.GaugeFunc("wf_queue_jobs", "Jobs of the queue that are no run yet, by state; dead ones are given up.", func(emit func(float64, ...string)) {
		for _, s := range status.Values {
			emit(0, s)
		}
		jobs(func(e queue.Entry) { emit(1, string(e.State)) })
	}, status)
	r.GaugeFunc("wf_queue_oldest_seconds", "How long the job is queued that no worker has begun for the longest time; 0 where there is none.", func(emit func(float64, ...string)) {
		now := time.Now() // of an empty queue nothing is old
		oldest := now
		jobs(func(e queue.Entry) {
			if e.State == queue.Queued && e.Since.Before(oldest) {
				oldest = e.Since
			}
		})
		emit(now.Sub(oldest).Seconds())
	})
	r.CounterFunc("wf_queue_leases_expired_total", "Leases of jobs that ended by themselves: their worker was gone or too slow.", func(emit func(float64, ...string)) {
		emit(float64(kept.Queue.Lapsed()))
	})
	live := metrics.Label{Name: "status", Values: []string{"live", "away"}}
	r.GaugeFunc("wf_workers", "Workers that the hub knows, by whether they are connected.", func(emit func(float64, ...string)) {
		ctx, stop := context.WithTimeout(context.Background(), hubTime)
		defer stop()
		all, err := kept.Registry.List(ctx)
		if err != nil {
			return
		}
		emit(0, "live")
		emit(0, "away")
		for _, w := range all {
			if w.Live {
				emit(1, "live")
			} else {
				emit(1, "away")
			}
		}
	}, live)
}
