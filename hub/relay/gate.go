package relay

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"wf/hub/guard"
	"wf/hub/queue"
	"wf/hub/reply"
)

// gate is before the handler of a worker: the hub names the client of a request, and a job is only
// started under a lease that holds.
func (a *Worker) gate(s *connection) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		job := r.Header.Get(headerJob)
		if job != "" {
			if err := a.allowed(s, r, job); err != nil {
				a.Log.Warn("a job is not started", "job", job, "error", err)
				reply.Error(w, err)
				return
			}
			if err := a.unbox(r, job); err != nil {
				a.Log.Warn("a job is not started", "job", job, "error", err)
				reply.Error(w, err)
				return
			}
		}
		id := a.identity(r)
		for _, h := range []string{headerBy, headerScopes, headerJob, headerEpoch, headerKey, headerWorkflow} {
			r.Header.Del(h)
		}
		r = r.WithContext(guard.With(r.Context(), id))
		if job == "" {
			a.Handler.ServeHTTP(w, r)
			return
		}
		a.Process.begins(s, job, true)
		x := &status{ResponseWriter: w, code: http.StatusOK}
		a.Handler.ServeHTTP(x, r)
		if x.code/100 != 2 {
			a.Process.begins(s, job, false)
		}
	})
}

// allowed is nil if a job may be started now. The lease is the newest that this worker saw of
// the job, the hub says that it holds, and the answer did not take longer than the lease lasts:
// a worker that was stopped in between would come too late.
func (a *Worker) allowed(s *connection, r *http.Request, job string) error {
	epoch, err := strconv.ParseUint(r.Header.Get(headerEpoch), 10, 64)
	if err != nil {
		return reply.Badf("%s: %v", headerEpoch, err)
	}
	if newest := a.Process.epochs.Update(job, 1, func(old uint64) uint64 { return max(old, epoch) }); newest > epoch {
		return fmt.Errorf("job %s, lease %d: there was a later one, %d: %w", job, epoch, newest, queue.ErrLeaseLost)
	}
	until, err := s.confirm(r.Context(), question{job, epoch})
	if err != nil {
		return fmt.Errorf("%w: %w", queue.ErrLeaseLost, err)
	}
	if !time.Now().Before(until) {
		return fmt.Errorf("job %s, lease %d: it ended while the hub was asked: %w", job, epoch, queue.ErrLeaseLost)
	}
	return nil
}

// maxEpochs is how many jobs a worker remembers the newest lease of.
const maxEpochs = 10_000
