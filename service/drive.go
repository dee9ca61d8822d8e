package service

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/engine/lang"
	"wf/protocol"
	"wf/service/compose"
	"wf/service/query"
)

// caller is the name that is recorded with what a request does: that of its caller, else the user's.
func caller(ctx context.Context) string {
	if c, ok := api.CallerOf(ctx); ok && c.Name != "" {
		return c.Name
	}
	return compose.User()
}

// creator is who begins a run, and who its request says that is, where it says somebody else. A request that came over a socket or a network is that of its
// caller: what it says is a claim. The process itself says it of its user.
func creator(ctx context.Context, said string) (by, claimed string) {
	by = caller(ctx)
	switch _, remote := api.CallerOf(ctx); {
	case said == "" || said == by:
		return by, ""
	case remote:
		return by, said
	}
	return said, ""
}

// bound is the name of the person that a request comes from, "" where that is the user of this process.
func bound(ctx context.Context) string {
	c, ok := api.CallerOf(ctx)
	if !ok || c.Owner && c.Name == compose.User() {
		return ""
	}
	return c.Name
}

// Start begins a run of a served workflow. A request id that was used before gives the run of then, whatever has become of
// its workflow; where another request was sent with it, an error wrapping protocol.ErrRequestReused.
func (l *Local) Start(ctx context.Context, s api.Start) (protocol.RunID, bool, error) {
	if run, begun, err := l.known(ctx, s); begun || err != nil {
		return run, false, err
	}
	f, err := l.Catalog.Find(s.Workflow)
	if err != nil {
		return "", false, err
	}
	if err := f.Served(); err != nil {
		return "", false, err
	}
	models, err := l.modelsFor(ctx, f.Program, s.Models)
	if err != nil {
		return "", false, err
	}
	caused, err := protocol.ParseCausedBy(s.CausedBy)
	if err != nil {
		return "", false, err
	}
	x := engine.Launch{CausedBy: caused, Title: s.Title, Description: s.Description, Type: s.Type, Scope: s.Scope, Tags: s.Tags,
		TargetUser: s.TargetUser, RequestID: s.RequestID,
		Models: models, Context: protocol.ContextMode(s.Context), Cache: s.Cache, AllowSecretInputs: s.AllowSecretInputs}
	x.CreatedBy, x.ClaimedBy = creator(ctx, s.CreatedBy)
	if s.Firing != "" {
		if err := l.ofFiring(f, s, &x); err != nil {
			return "", false, err
		}
	}
	inputs := make(map[string]any, len(s.Inputs))
	for name, value := range s.Inputs {
		inputs[name] = value
	}
	run, fresh, err := l.Launch(ctx, f.Definition, inputs, x)
	if err == nil && !fresh { // another request was faster
		err = l.Reused(ctx, run, s)
	}
	return run, fresh, err
}

// FiringPlace distinguishes the firings of a workflow with a schedule from those of others of its name: see protocol.Firings.
func (l *Local) FiringPlace(f compose.Found) string {
	if _, several := l.Store.(engine.Queue); several {
		return f.Program.Workflow.Schedule.Place()
	}
	return f.Path
}

// ofFiring makes a start that of a firing of the schedule of its workflow.
func (l *Local) ofFiring(f compose.Found, s api.Start, x *engine.Launch) error {
	schedule := f.Program.Workflow.Schedule
	due, err := time.Parse(time.RFC3339, s.Firing)
	switch {
	case err != nil:
		return protocol.ErrUsage.With("", "firing: %q is no time in RFC 3339", s.Firing)
	case schedule == nil:
		return protocol.ErrUsage.With("give it on: {schedule: …}", "firing: the workflow %s has no schedule", f.Name)
	case len(s.Inputs) > 0:
		return protocol.ErrUsage.With("", "inputs: a firing takes none")
	}
	next, err := schedule.Next(due.Add(-time.Nanosecond))
	if err != nil {
		return err
	}
	if !next.Equal(due) {
		return protocol.ErrUsage.With("", "firing: the schedule of %s is not due at %s, and next at %s", f.Name, s.Firing, next.UTC().Format(time.RFC3339))
	}
	id := protocol.Firing(f.Name, l.FiringPlace(f), due)
	if s.RequestID != "" && s.RequestID != id {
		return protocol.ErrUsage.With("leave it out", "request_id: that of the firing is %s", id)
	}
	x.RequestID = id
	x.Trigger = &protocol.Trigger{Kind: protocol.TriggerSchedule, Name: f.Name, Delivery: due.UTC().Format(time.RFC3339)}
	return nil
}

// modelsFor checks the roles that models are chosen for, and that the asker may choose them.
func (l *Local) modelsFor(ctx context.Context, p *lang.Program, given map[string]api.ModelList) (map[string][]string, error) {
	if len(given) == 0 {
		return nil, nil
	}
	out := map[string][]string{}
	for role, list := range given {
		if !HasAgent(p, role) {
			return nil, protocol.ErrUsage.With("", "models: the workflow %s has no agent %q", p.Workflow.Name, role)
		}
		out[role] = list
	}
	return out, l.mayChoose(ctx, p, out)
}

// mayChoose is nil if the asker of a request may have a run use the models. The owner may choose any.
// Others may choose what the run could use without them, the models of the workflow and the default
// one, and what the config allows: a model may be a local file, or cost what its owner never meant
// to spend. A pattern of the config never allows a file.
func (l *Local) mayChoose(ctx context.Context, p *lang.Program, chosen map[string][]string) error {
	if id, ok := api.CallerOf(ctx); !ok || id.Owner {
		return nil
	}
	c, err := l.Config()
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
				return protocol.ErrForbidden.With("choose a model of the workflow, use a token of scope admin at wf serve itself, or have the owner add the model to allow_models: in the config of its user",
					"the model %q is not one that this token may choose", m)
			}
		}
	}
	return nil
}

// Answer records an answer; the run goes on here, unless another process drives it.
func (l *Local) Answer(ctx context.Context, run protocol.RunID, x api.Answer) (string, error) {
	r := engine.Reply{Step: x.Step, Signal: x.Signal, Choice: x.Choice, Text: x.Text, Shown: x.Shown, By: caller(ctx), Source: cmp.Or(x.Source, "http"), Bound: bound(ctx)}
	if len(x.Fields) > 0 && string(x.Fields) != "null" {
		fields, err := protocol.CanonicalizeJSON(x.Fields)
		if err != nil {
			return "", protocol.ErrUsage.With("", "fields: %v", err)
		}
		r.Fields = fields
	}
	l.moving.RLock()
	defer l.moving.RUnlock()
	step, err := l.Engine.Answer(ctx, run, r)
	if err != nil {
		return "", err
	}
	l.Keeper.Keep(run, engine.DriveOptions{By: caller(ctx)})
	return step, nil
}

// Cancel ends a run; a process that drives it stops. What closes of it goes on here, unless another process drives it.
func (l *Local) Cancel(ctx context.Context, run protocol.RunID, reason string) error {
	return l.cancel(ctx, run, reason, l.Engine.CancelSoon)
}

// GiveUp cancels a run for a reason that may be found more than once: of one that closes already nothing is skipped.
func (l *Local) GiveUp(ctx context.Context, run protocol.RunID, reason string) error {
	return l.cancel(ctx, run, reason, l.Engine.CancelOnce)
}

func (l *Local) cancel(ctx context.Context, run protocol.RunID, reason string, how func(context.Context, protocol.RunID, string, string) ([]protocol.RunID, error)) error {
	l.moving.RLock()
	defer l.moving.RUnlock()
	closing, err := how(ctx, run, caller(ctx), reason)
	for _, id := range closing {
		l.Keeper.Keep(id, engine.DriveOptions{By: caller(ctx)})
	}
	if err == nil {
		l.Note(ctx, l.Store, run)
	}
	return err
}

// Delete puts a tombstone in the place of a run that has ended, and drops its words from the index.
func (l *Local) Delete(ctx context.Context, run protocol.RunID, d api.Delete) (*api.Deleted, error) {
	out, err := l.delete(ctx, run, d)
	if out == nil || d.DryRun {
		return out, err
	}
	if kept := l.purge(ctx, out.Runs); err == nil {
		err = kept
	}
	return out, err
}

// delete is Delete that leaves the words of the runs to the caller. The run is deleted, or would be, where it returns what of, also with an error.
func (l *Local) delete(ctx context.Context, run protocol.RunID, d api.Delete) (*api.Deleted, error) {
	out := &api.Deleted{Schema: "wf.deleted/v1", DryRun: d.DryRun, ID: run, By: caller(ctx), Why: d.Why}
	runs, at, err := l.Engine.Delete(ctx, run, engine.Burial{By: out.By, Why: d.Why, DryRun: d.DryRun})
	if err != nil {
		return nil, err
	}
	out.Runs, out.At = runs, query.Stamp(at)
	if out.Held, err = l.Engine.Holders(ctx, runs); err != nil {
		return out, err
	}
	if dir, ok := l.Store.(*cas.Store); ok {
		if last, err := dir.LastBackup(); err == nil && last != nil { // one that does not read tells of none
			out.Held = append(out.Held, api.Holder{What: "backup", Name: last.Dir, Bytes: last.Bytes})
		}
	}
	return out, nil
}

// Suspend stops what a run does here.
func (l *Local) Suspend(ctx context.Context, run protocol.RunID) error {
	l.AwaitMoves()
	st, err := l.Engine.State(ctx, run)
	switch {
	case err != nil:
		return err
	case st.Status().Final():
		return protocol.ErrFinal.With("", "run %s is %s", run, st.Status())
	case st.Status() == protocol.Waiting:
		return protocol.ErrNotRunning.With("", "run %s waits: there is nothing to suspend", run)
	}
	return l.Keeper.Suspend(ctx, run)
}

// AwaitMoves returns when the keeper has what requests have made to go on until now.
func (l *Local) AwaitMoves() {
	l.moving.Lock()
	defer l.moving.Unlock()
}

// Compact asks for a compaction.
func (l *Local) Compact(ctx context.Context, run protocol.RunID) error {
	return l.Engine.Compact(ctx, run, caller(ctx))
}

// Resume goes on with a run, and returns when that is recorded, or when nothing can move.
func (l *Local) Resume(ctx context.Context, run protocol.RunID, r api.Resume) error {
	o := engine.DriveOptions{By: caller(ctx), Move: r.Here}
	var err error
	if o.Limits, err = limitsOf(ctx, r.Limits); err != nil {
		return err
	}
	st, err := l.Engine.State(ctx, run)
	if err != nil {
		return err
	}
	if st.Status().Final() {
		return protocol.ErrFinal.With("", "run %s is %s", run, st.Status())
	}
	if err := l.Engine.Own(ctx, run); err != nil {
		return err
	}
	if err := l.Engine.MayDrive(run, st, o); err != nil {
		return err
	}
	return l.Keeper.Resume(ctx, run, st.Status(), o)
}

// limitsOf reads limits by name.
func limitsOf(ctx context.Context, given map[string]json.RawMessage) (all []protocol.LimitChanged, err error) {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		limit, err := limitOf(ctx, name, given[name])
		if err != nil {
			return nil, err
		}
		all = append(all, limit)
	}
	return all, nil
}

// limitOf reads a limit as it stands in JSON: 60, 1.5 or "30m".
func limitOf(ctx context.Context, name string, value json.RawMessage) (protocol.LimitChanged, error) {
	text := string(value)
	var s string
	if json.Unmarshal(value, &s) == nil {
		text = s
	}
	l, err := ParseLimit(name+"="+text, caller(ctx))
	if err != nil {
		return l, protocol.ErrUsage.With(`as in {"limits":{"steps":60,"cost_usd":1.5,"duration":"30m"}}`,
			"limits: %q: %s is no new limit; there are steps, tokens, cost_usd and duration, each more than 0", name, value)
	}
	return l, nil
}

// Send queues a text for a run. One that answers a question makes the run go on.
func (l *Local) Send(ctx context.Context, run protocol.RunID, m api.Message) error {
	l.moving.RLock()
	defer l.moving.RUnlock()
	if err := l.Engine.MessageBy(ctx, run, caller(ctx), m.Source, m.Text); err != nil {
		return err
	}
	st, err := l.Engine.State(ctx, run)
	if err != nil {
		return err
	}
	if st.Status() == protocol.Running {
		l.Keeper.Keep(run, engine.DriveOptions{By: caller(ctx)})
	}
	return nil
}

// HasAgent reports whether a workflow has an agent of that name; "" stands for all of them.
func HasAgent(p *lang.Program, role string) bool {
	r, found := p.Workflow.RoleNamed(role)
	return role == "" || found && r.Action == protocol.ActPrompt
}

// ParseLimit reads name=value as a new limit of a run, set by a user or a caller.
func ParseLimit(given, by string) (protocol.LimitChanged, error) {
	name, value, _ := strings.Cut(given, "=")
	l := protocol.LimitChanged{Limit: name, By: by}
	var err error
	switch name {
	case "steps", "tokens":
		l.Max, err = strconv.ParseInt(value, 10, 64)
	case "cost_usd":
		var dollars float64
		dollars, err = strconv.ParseFloat(value, 64)
		l.Max = int64(math.Round(dollars * 1e6))
	case "duration":
		var d time.Duration
		d, err = time.ParseDuration(value)
		l.Max = d.Microseconds()
	default:
		return l, protocol.ErrUsage.With("", "--limit %q: want steps=, tokens=, cost_usd= or duration=", given)
	}
	if err != nil || l.Max <= 0 || l.Max > mostOfALimit {
		return l, protocol.ErrUsage.With("", "--limit %q: want more than 0 and no more than can be counted, such as steps=60, cost_usd=3 or duration=30m", given)
	}
	return l, nil
}

// mostOfALimit is the largest integer of a record.
const mostOfALimit = 1<<53 - 1
