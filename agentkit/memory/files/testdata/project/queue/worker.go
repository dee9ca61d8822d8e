// Package queue runs work later.
package queue

import "time"

// lease is how long a worker may keep a job before another one gets it.
const lease = time.Minute

type job struct {
	id     string
	holder string
	until  time.Time
}

// take gives a worker the next job that nobody holds. A job whose worker died is free again when
// its lease has run out; so it may be worked on twice, and must bear that.
func take(jobs []job, worker string, now time.Time) (*job, bool) {
	for i := range jobs {
		if jobs[i].holder == "" || now.After(jobs[i].until) {
			jobs[i].holder, jobs[i].until = worker, now.Add(lease)
			return &jobs[i], true
		}
	}
	return nil, false
}
