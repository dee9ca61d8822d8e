package daemon

import (
	"context"
	"errors"

	"wf/engine"
	"wf/hub/schedule"
	"wf/protocol"
)

// Jobs are the served workflows that the clock starts: of those that were trusted.
func (d *Daemon) Jobs(ctx context.Context) ([]schedule.Job, error) {
	// While the store is held nothing is noted as seen: what is due before it is adopted counts as missed.
	if err := d.Service.Store.MayGoOn(ctx); err != nil {
		return nil, err
	}
	all, err := d.Service.Catalog.List()
	var jobs []schedule.Job
	for _, f := range all {
		if f.Program == nil || f.Program.Workflow.Schedule == nil {
			continue
		}
		if why := f.Scheduled(); why != nil {
			if _, told := d.told.LoadOrStore(f.CID, true); !told {
				d.Log.Warn("the schedule waits for trust", "workflow", f.Name, "file", f.Path, "fix", protocol.HintOf(why))
			}
		} else {
			jobs = append(jobs, schedule.Job{Workflow: f.Name, File: f.Path, Schedule: *f.Program.Workflow.Schedule})
		}
	}
	return jobs, err
}

// Fire starts what is due; a firing that was started before is left alone.
func (d *Daemon) Fire(ctx context.Context, x schedule.Firing) error {
	f, err := d.Service.Catalog.Find(x.Job.File)
	if err != nil {
		return err
	}
	if err := f.Scheduled(); err != nil {
		return err // it was changed since it was listed
	}
	_, _, err = d.Service.Launch(ctx, f.Definition, nil, engine.Launch{RequestID: x.RequestID, CreatedBy: "schedule"})
	if errors.Is(err, protocol.ErrRunDeleted) {
		return nil // it was started, and its run deleted since
	}
	return err
}
