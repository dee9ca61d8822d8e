package daemon

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"wf/engine"
	"wf/hub/schedule"
	"wf/protocol"
	"wf/service/compose"
	"wf/store"
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
			d.tell(f, "the schedule waits for trust", protocol.HintOf(why))
		} else {
			jobs = append(jobs, schedule.Job{Workflow: f.Name, File: f.Path, Place: d.Service.FiringPlace(f), Schedule: *f.Program.Workflow.Schedule})
		}
	}
	return jobs, err
}

// tell logs once what keeps a definition from being started.
func (d *Daemon) tell(f compose.Found, what, fix string) {
	if _, told := d.told.LoadOrStore(what+f.Path+f.CID.String(), true); !told {
		d.Log.Warn(what, "workflow", f.Name, "file", f.Path, "fix", fix)
	}
}

// Fire starts what is due; a firing that was started before, also one whose run was deleted, is left alone.
func (d *Daemon) Fire(ctx context.Context, x schedule.Firing) (run protocol.RunID, fresh bool, err error) {
	defer func() { d.watch.fired(x.Job.File, err) }()
	f, err := d.Service.Catalog.Find(x.Job.File)
	if err != nil {
		return "", false, err
	}
	if err := f.Scheduled(); err != nil {
		return "", false, err // it was changed since it was listed
	}
	return d.launched(ctx, x.RequestID)(d.Service.Launch(ctx, f.Definition, nil, engine.Launch{CreatedBy: "schedule", RequestID: x.RequestID, Trigger: &protocol.Trigger{Kind: protocol.TriggerSchedule, Name: f.Name, Delivery: x.Due.UTC().Format(time.RFC3339)}}))
}

// launched is what became of a request that no client made. A run that was begun before is given with fresh false, also where it
// was deleted.
func (d *Daemon) launched(ctx context.Context, request string) func(protocol.RunID, bool, error) (protocol.RunID, bool, error) {
	return func(run protocol.RunID, fresh bool, err error) (protocol.RunID, bool, error) {
		if errors.Is(err, protocol.ErrRunDeleted) {
			run, err := d.Service.Engine.RunOfRequest(ctx, request)
			return run, false, err
		}
		return run, fresh, err
	}
}

// open reports whether a run has not ended.
func (d *Daemon) open(ctx context.Context, run protocol.RunID) (bool, error) {
	st, err := d.Service.Engine.State(ctx, run)
	switch {
	case errors.Is(err, protocol.ErrRunDeleted), errors.Is(err, protocol.ErrUnknownRun):
		return false, nil
	case err != nil:
		return false, err
	}
	return !st.Status().Final(), nil
}

// seenIn is where it is noted which firings were dealt with: in a store of several machines for all of them.
func seenIn(s store.Store) schedule.Note {
	if n, ok := store.NoteOf(s, "schedule"); ok {
		return n
	}
	return schedule.File(filepath.Join(s.Beside(), Dir, "schedule.json"))
}
