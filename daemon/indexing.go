package daemon

import "wf/protocol"

// indexes indexes what is said in runs once those are driven that are to go on, until the daemon ends.
func (d *Daemon) indexes() {
	ctx := d.Supervisor.ctx
	select {
	case <-d.Supervisor.looked:
	case <-ctx.Done():
		return
	}
	d.Service.KeepIndexed(ctx, func(run protocol.RunID, err error) {
		if ctx.Err() != nil {
			return
		}
		if run == "" {
			d.Log.Error("what is said in runs is not indexed; it is tried again", "why", describe(err))
			return
		}
		d.Log.Warn("a run is not searched, since it cannot be read", "run", run, "why", describe(err))
	})
}
