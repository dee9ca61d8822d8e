package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"wf/agentkit/config"
	"wf/api"
	"wf/engine"
	"wf/engine/lang"
	"wf/hub/guard"
	"wf/hub/schedule"
	"wf/protocol"
	"wf/service/compose"
)

// asker is who makes a request, as it is recorded: whom the guard let in, else the user.
func asker(ctx context.Context) string {
	if id, ok := guard.Of(ctx); ok && id.Name != "" {
		return id.Name
	}
	return compose.User()
}

// Start begins a run of a served workflow.
func (b *backend) Start(ctx context.Context, s api.Start) (protocol.RunID, bool, error) {
	f, err := b.catalog.Find(s.Workflow)
	if err != nil {
		return "", false, err
	}
	if err := compose.Untrusted(f.Waits, config.Serve, config.Unconfined); err != nil {
		return "", false, err
	}
	models, err := b.modelsFor(ctx, f.Program, s.Models)
	if err != nil {
		return "", false, err
	}
	l := engine.Launch{Title: s.Title, Description: s.Description, Type: s.Type, Scope: s.Scope, Tags: s.Tags,
		CreatedBy: orWord(s.CreatedBy, asker(ctx)), TargetUser: s.TargetUser, RequestID: s.RequestID,
		Models: models, Context: protocol.ContextMode(s.Context), AllowSecretInputs: s.AllowSecretInputs}
	return b.launch(ctx, f, given(s.Inputs), l)
}

// launch begins a run of a workflow that was found, and has it driven.
func (b *backend) launch(ctx context.Context, f compose.Found, inputs map[string]any, l engine.Launch) (run protocol.RunID, fresh bool, err error) {
	p := f.Program
	if l.Inputs, err = p.Inputs(inputs); err != nil {
		return "", false, err
	}
	if l.Models, _, err = b.a.ResolveModels(ctx, p, l.Models); err != nil {
		return "", false, err
	}
	if err = b.a.SecretsSet(p); err != nil {
		return "", false, err
	}
	l.Program, l.Source, l.File, l.Workspace = p, f.Source, f.Path, b.dir
	if l.Description == "" {
		l.Description = p.Workflow.Description
	}
	b.moving.RLock()
	defer b.moving.RUnlock()
	if run, fresh, err = b.e.Begin(ctx, l); err != nil || !fresh {
		return run, fresh, err
	}
	b.keeper.keep(run, engine.DriveOptions{By: asker(ctx)})
	return run, true, nil
}

// scheduled are the served workflows that the clock starts: of those that were trusted.
func (b *backend) scheduled(context.Context) ([]schedule.Job, error) {
	all, err := b.catalog.List()
	var jobs []schedule.Job
	for _, f := range all {
		if f.Program == nil || f.Program.Workflow.Schedule == nil {
			continue
		}
		if why := compose.Untrusted(f.Waits, config.Schedule, config.Unconfined); why != nil {
			if _, told := b.told.LoadOrStore(f.CID, true); !told {
				b.keeper.log.Warn("the schedule waits for trust", "workflow", f.Name, "file", f.Path, "fix", protocol.HintOf(why))
			}
		} else {
			jobs = append(jobs, schedule.Job{Workflow: f.Name, File: f.Path, Schedule: *f.Program.Workflow.Schedule})
		}
	}
	return jobs, err
}

// fire starts what is due; a firing that was started before is left alone.
func (b *backend) fire(ctx context.Context, x schedule.Firing) error {
	f, err := b.catalog.Find(x.Job.File)
	if err != nil {
		return err
	}
	if err := compose.Untrusted(f.Waits, config.Schedule, config.Unconfined); err != nil {
		return err // it was changed since it was listed
	}
	_, _, err = b.launch(ctx, f, nil, engine.Launch{RequestID: x.RequestID, CreatedBy: "schedule"})
	return err
}

// modelsFor checks the roles that models are chosen for, and that the asker may choose them.
func (b *backend) modelsFor(ctx context.Context, p *lang.Program, given map[string]api.ModelList) (map[string][]string, error) {
	if len(given) == 0 {
		return nil, nil
	}
	out := map[string][]string{}
	for role, list := range given {
		if !hasAgent(p, role) {
			return nil, usagef("models: the workflow %s has no agent %q", p.Workflow.Name, role)
		}
		out[role] = list
	}
	return out, b.mayChoose(ctx, p, out)
}

// mayChoose is nil if the asker of a request may have a run use the models. The owner may choose any.
// Others may choose what the run could use without them, the models of the workflow and the default
// one, and what the config allows: a model may be a local file, or cost what its owner never meant
// to spend. A pattern of the config never allows a file.
func (b *backend) mayChoose(ctx context.Context, p *lang.Program, chosen map[string][]string) error {
	if id, ok := guard.Of(ctx); !ok || id.Allows(guard.Admin) {
		return nil
	}
	c, err := b.a.Config()
	if err != nil {
		return err
	}
	named := map[string]bool{}
	for _, role := range p.Workflow.Roles {
		if r, err := c.Resolve(role.Name, nil, role.Model, os.LookupEnv); err == nil { // else there is none
			for _, m := range r.Models {
				named[m] = true
			}
		}
	}
	for _, list := range chosen {
		for _, m := range list {
			if !named[m] && !c.AllowsModel(m) {
				return fail(protocol.ErrForbidden, "choose a model of the workflow, use a token of scope admin at wf serve itself, or have the owner add the model to allow_models: in the config of its user",
					"the model %q is not one that this token may choose", m)
			}
		}
	}
	return nil
}

// Answer records an answer; the run goes on here, unless another process drives it.
func (b *backend) Answer(ctx context.Context, run protocol.RunID, x api.Answer) (string, error) {
	r := engine.Reply{Step: x.Step, Signal: x.Signal, Choice: x.Choice, Text: x.Text, Shown: x.Shown, By: asker(ctx), Source: "http"}
	if len(x.Fields) > 0 && string(x.Fields) != "null" {
		fields, err := protocol.CanonicalizeJSON(x.Fields)
		if err != nil {
			return "", usagef("fields: %v", err)
		}
		r.Fields = fields
	}
	b.moving.RLock()
	defer b.moving.RUnlock()
	step, err := b.e.Answer(ctx, run, r)
	if err != nil {
		return "", err
	}
	b.keeper.keep(run, engine.DriveOptions{By: asker(ctx)})
	return step, nil
}

// Cancel ends a run; whoever drives it stops.
func (b *backend) Cancel(ctx context.Context, run protocol.RunID, reason string) error {
	if err := b.e.Cancel(ctx, run, asker(ctx), reason); err != nil {
		return err
	}
	b.a.Note(ctx, b.s, run)
	return nil
}

// Suspend stops what a run does here.
func (b *backend) Suspend(ctx context.Context, run protocol.RunID) error {
	b.awaitMoves()
	st, err := b.e.State(ctx, run)
	switch {
	case err != nil:
		return err
	case st.Status().Final():
		return fail(protocol.ErrFinal, "", "run %s is %s", run, st.Status())
	}
	return b.keeper.suspend(ctx, run)
}

// awaitMoves returns when the keeper has what requests have made to go on until now.
func (b *backend) awaitMoves() {
	b.moving.Lock()
	defer b.moving.Unlock()
}

// Compact asks for a compaction.
func (b *backend) Compact(ctx context.Context, run protocol.RunID) error {
	return b.e.Compact(ctx, run, asker(ctx))
}

// Resume goes on with a run, and returns when that is recorded, or when nothing can move.
func (b *backend) Resume(ctx context.Context, run protocol.RunID, r api.Resume) error {
	o := engine.DriveOptions{By: asker(ctx)}
	for _, name := range sortedKeys(r.Limits) {
		l, err := limitOf(name, r.Limits[name])
		if err != nil {
			return err
		}
		l.By = asker(ctx)
		o.Limits = append(o.Limits, l)
	}
	st, err := b.e.State(ctx, run)
	if err != nil {
		return err
	}
	if st.Status().Final() {
		return fail(protocol.ErrFinal, "", "run %s is %s", run, st.Status())
	}
	if err := b.e.Own(ctx, run); err != nil {
		return err
	}
	if err := b.e.MayDrive(run, st, o.Limits); err != nil {
		return err
	}
	return b.keeper.resume(ctx, run, st.Status(), o)
}

// limitOf reads a limit as it stands in JSON: 60, 1.5 or "30m".
func limitOf(name string, value json.RawMessage) (protocol.LimitChanged, error) {
	text := string(value)
	var s string
	if json.Unmarshal(value, &s) == nil {
		text = s
	}
	l, err := limitFlag(name + "=" + text)
	if err != nil {
		return l, fail(protocol.ErrUsage, `as in {"limits":{"steps":60,"cost_usd":1.5,"duration":"30m"}}`,
			"limits: %q: %s is no new limit; there are steps, tokens, cost_usd and duration, each more than 0", name, value)
	}
	return l, nil
}

// Fork makes a new run and goes on with it. One of a run from elsewhere would not go on, and is refused.
func (b *backend) Fork(ctx context.Context, run protocol.RunID, f api.Fork) (protocol.RunID, error) {
	at, err := forkPoint(ctx, b.s, ref{run: run, step: f.Step}, f.After)
	if err != nil {
		return "", err
	}
	o := engine.ForkOptions{At: at, Note: f.Note, By: asker(ctx)}
	o.Elsewhere = func(*lang.Program, string) (bool, error) { return false, b.e.Own(ctx, run) }
	if len(f.Models) > 0 {
		st, err := b.e.State(ctx, run)
		if err != nil {
			return "", err
		}
		if o.Models, err = b.modelsFor(ctx, st.Program(), f.Models); err != nil {
			return "", err
		}
		if o.Models, _, err = b.a.ResolveModels(ctx, st.Program(), o.Models); err != nil {
			return "", err
		}
	}
	b.moving.RLock()
	defer b.moving.RUnlock()
	id, err := b.e.Fork(ctx, run, o)
	if err != nil {
		return "", err
	}
	b.keeper.keep(id, engine.DriveOptions{By: asker(ctx)})
	return id, nil
}

// Message queues a text for a run. One that answers a question makes the run go on.
func (b *backend) Message(ctx context.Context, run protocol.RunID, m api.Message) error {
	b.moving.RLock()
	defer b.moving.RUnlock()
	if err := b.e.Message(ctx, run, m.Source, m.Text); err != nil {
		return err
	}
	st, err := b.e.State(ctx, run)
	if err != nil {
		return err
	}
	if st.Status() == protocol.Running {
		b.keeper.keep(run, engine.DriveOptions{By: asker(ctx)})
	}
	return nil
}

// errServeStopped is the cause with which a daemon that ends suspends its runs; it goes on with them
// when it starts again.
var errServeStopped = &protocol.Error{Code: "serve_stopped", Message: "wf serve was stopped", Hint: "it goes on with the run when it starts again; wf resume does so now"}

// errScreenLeft is errServeStopped where no daemon was: the screen of a chat or of wf tui drove the run.
var errScreenLeft = &protocol.Error{Code: errServeStopped.Code, Message: "its screen was left", Hint: "wf chat RUN or wf resume goes on"}

// describe is why a drive ended, for the log.
func describe(err error) string {
	if hint := protocol.HintOf(err); hint != "" {
		return fmt.Sprintf("%v (%s)", err, hint)
	}
	return err.Error()
}
