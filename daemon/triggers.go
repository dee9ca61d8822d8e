package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"wf/api"
	"wf/metrics"
	"wf/protocol"
	"wf/service/compose"
)

// A triggerWatch raises an alarm for each schedule and webhook that was served and is not any more:
//
//	files, trust, environment ─► look ─► served before? ─► stopped │ served again │ removed ─► log, metrics, list, notifications
//
// One counts as stopped or removed once two looks in a row find so: what an editor is writing may be broken for a moment.
type triggerWatch struct {
	d *Daemon

	// Of run alone.
	known  map[string]*knownIn     // by directory
	told   map[string]knownTrigger // by id: what this process logged last
	doubts map[string]string       // by id: the state that was seen last, where it is not the one that counts
	errors map[string]string       // by directory: the error that was logged last

	mu      sync.Mutex
	counts  map[triggerCount]int // as they were seen last
	stopped []knownTrigger
	failing map[string]failing // firings that could not be started, by file
}

// triggerCount are triggers that count together.
type triggerCount struct{ kind, state string }

// triggerWaits is the state of a trigger that never was served; the others are those of alarms.
const triggerWaits = "waiting"

// failing is how often in a row a firing could not be started, and why the last time.
type failing struct {
	times int
	err   error
}

// failsAlarm is how many failures in a row are an alarm: one may pass.
const failsAlarm = 2

func newTriggerWatch(d *Daemon, r *metrics.Registry) *triggerWatch {
	w := &triggerWatch{d: d, known: map[string]*knownIn{}, failing: map[string]failing{}, told: map[string]knownTrigger{}, doubts: map[string]string{}, errors: map[string]string{}}
	kinds, states := []string{protocol.TriggerSchedule, protocol.TriggerWebhook}, []string{protocol.AlarmServed, triggerWaits, protocol.AlarmStopped}
	r.GaugeFunc("wf_triggers", "Schedules and webhooks of the workflows here: served, waiting for what they never had, or stopped, which were served and are not any more.", func(emit func(float64, ...string)) {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, kind := range kinds {
			for _, state := range states {
				emit(float64(w.counts[triggerCount{kind, state}]), kind, state)
			}
		}
	}, metrics.Label{Name: "class", Values: kinds}, metrics.Label{Name: "status", Values: states})
	return w
}

// run looks until ctx ends.
func (w *triggerWatch) run(ctx context.Context) {
	defer func() {
		for _, in := range w.known {
			in.leave()
		}
	}()
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-next.C:
		case <-ctx.Done():
			return
		}
		began := time.Now()
		w.look(ctx)
		next.Reset(max(censusEvery, censusPart*time.Since(began)))
	}
}

// fired notes what came of starting a firing of a file.
func (w *triggerWatch) fired(file string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil:
		delete(w.failing, file)
	case errors.Is(err, context.Canceled), errors.Is(err, protocol.ErrGroupBusy), protocol.OfStore(err): // no fault of the schedule
	default:
		w.failing[file] = failing{w.failing[file].times + 1, err}
	}
}

// look brings what is known up to date, and tells what has changed.
func (w *triggerWatch) look(ctx context.Context) {
	if w.d.Service.Store.MayGoOn(ctx) != nil {
		return // while a store is held nothing is served
	}
	all, err := w.d.Service.Catalog.List()
	failed, counts := map[string]error{}, map[triggerCount]int{}
	var stopped []knownTrigger
	served := map[string]bool{}
	for _, dir := range w.d.Service.Catalog.Dirs {
		if w.known[dir] == nil {
			w.known[dir] = &knownIn{dir: dir, root: w.d.Service.Store.Beside(), key: w.d.sealTriggers}
		}
		failed[dir] = w.lookIn(w.known[dir], all, err)
		for _, k := range w.known[dir].Triggers {
			served[k.id()] = true
			if counts[triggerCount{k.Kind, k.state()}]++; k.Stopped != "" {
				stopped = append(stopped, k)
			}
		}
	}
	for _, k := range triggersIn(all) {
		if !served[k.id()] {
			counts[triggerCount{k.Kind, triggerWaits}]++
		}
	}
	w.mu.Lock()
	w.counts, w.stopped = counts, stopped
	w.mu.Unlock()
	for dir, in := range w.known { // the store may be slow
		err := cmp.Or(failed[dir], w.tell(ctx, in))
		switch now := fmt.Sprint(err); {
		case err == nil:
			delete(w.errors, dir)
		case ctx.Err() == nil && w.errors[dir] != now:
			w.errors[dir] = now
			w.d.Log.Error("what schedules and webhooks were served cannot be kept, or told; it is tried again", "directory", dir, "why", describe(err))
		}
	}
}

// tell has the sinks of notifications told of what they were not told of yet.
func (w *triggerWatch) tell(ctx context.Context, in *knownIn) error {
	for in.lock != nil && len(in.Untold) > 0 {
		if err := w.d.notify.Alarm(ctx, in.Untold[0]); err != nil {
			return err
		}
		in.Untold = in.Untold[1:]
		if err := in.write(); err != nil {
			return err
		}
	}
	return nil
}

// lookIn looks at the triggers of a directory; of the processes that serve it one tells.
func (w *triggerWatch) lookIn(in *knownIn, all []compose.Found, listed error) error {
	mine, err := in.read()
	if err != nil || !mine {
		return err
	}
	now := time.Now().UTC().Truncate(time.Microsecond).Format(time.RFC3339Nano)
	var kept []knownTrigger
	var lines []func() // of the log, once what they say is durable
	for _, was := range in.Triggers {
		is, removed := w.seen(was, all, listed)
		state := is.state()
		if removed != "" {
			state, is.Problem, is.Fix = protocol.AlarmRemoved, removed, ""
		}
		if doubt := w.doubts[was.id()]; state != was.state() && state != protocol.AlarmServed && state != doubt {
			w.doubts[was.id()] = state
			kept = append(kept, was)
			continue
		}
		delete(w.doubts, was.id())
		if state == protocol.AlarmStopped { // it is told of as it was served
			is.Workflow, is.Schedule, is.Stopped = was.Workflow, was.Schedule, cmp.Or(was.Stopped, now)
		}
		alarm := protocol.Alarm{Kind: was.Kind, Workflow: is.Workflow, File: was.File, State: state, At: now, Problem: is.Problem, Fix: is.Fix}
		if state != was.state() && (was.Stopped != "" || state != protocol.AlarmRemoved) {
			in.Untold = append(in.Untold, alarm)
		}
		in.changed = in.changed || !is.equal(was) || state == protocol.AlarmRemoved
		lines = append(lines, func() { w.log(was, is, alarm) })
		if state != protocol.AlarmRemoved {
			kept = append(kept, is)
		}
	}
	for _, k := range triggersIn(all) {
		if k.Problem == "" && in.has(k.File) && !slices.ContainsFunc(kept, k.same) {
			kept, in.changed = append(kept, k), true
			lines = append(lines, func() { w.d.Log.Info("the "+k.Kind+" is served", "workflow", k.Workflow, "file", k.File) })
		}
	}
	in.Triggers = kept
	if in.changed {
		err = in.write()
	}
	for _, line := range lines {
		line()
	}
	return err
}

// log writes a line for what has become of a trigger, once for as long as it stays the same.
func (w *triggerWatch) log(was, is knownTrigger, a protocol.Alarm) {
	log := w.d.Log.With("workflow", a.Workflow, "file", a.File)
	switch old, told := w.told[was.id()]; {
	case a.State == protocol.AlarmRemoved:
		log.Info("the " + a.Kind + " is no more: " + a.Problem)
	case a.State == protocol.AlarmServed && was.Stopped != "":
		log.Info("the " + a.Kind + " is served again")
	case a.State == protocol.AlarmStopped && (!told || old.Problem != is.Problem):
		log.Error("the "+a.Kind+" is stopped: it was served, and starts nothing any more", "since", is.Stopped, "why", a.Problem, "fix", a.Fix)
	}
	if w.told[was.id()] = is; a.State != protocol.AlarmStopped {
		delete(w.told, was.id())
	}
}

// seen is a trigger that was served as it is now, or why it is wanted no more.
func (w *triggerWatch) seen(was knownTrigger, all []compose.Found, listed error) (is knownTrigger, removed string) {
	stopped := func(problem, fix string) (knownTrigger, string) {
		is = was
		is.Problem, is.Fix = problem, fix
		return is, ""
	}
	mend := "wf validate " + protocol.ShellWord(was.File)
	if listed != nil {
		return stopped(describe(listed), protocol.HintOf(listed))
	}
	at := slices.IndexFunc(all, func(f compose.Found) bool { return f.Path == was.File })
	if at < 0 {
		switch _, err := os.Lstat(was.File); {
		case errors.Is(err, fs.ErrNotExist):
			return was, "its file was removed"
		case err != nil:
			return stopped(err.Error(), mend)
		}
		return stopped("the file is no workflow any more: it does not say wf: 1", mend)
	}
	if all[at].Program == nil {
		return stopped(all[at].Problem, mend)
	}
	now := triggersIn(all[at : at+1])
	i := slices.IndexFunc(now, was.same)
	if i < 0 {
		return was, "its workflow has no " + was.Kind + " any more"
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if f := w.failing[was.File]; now[i].Problem == "" && was.Kind == protocol.TriggerSchedule && f.times >= failsAlarm {
		now[i].Problem, now[i].Fix = "its firings cannot be started: "+describe(f.err), protocol.HintOf(f.err)
	}
	return now[i], ""
}

// triggersIn are the triggers of workflows as they are.
func triggersIn(all []compose.Found) (out []knownTrigger) {
	for _, f := range all {
		for _, t := range f.Triggers() {
			k := knownTrigger{Kind: t.Kind, Workflow: f.Name, File: f.Path, Problem: t.Problem, Fix: t.Fix}
			if t.Kind == protocol.TriggerSchedule {
				k.Schedule = f.Program.Workflow.Schedule
			}
			out = append(out, k)
		}
	}
	return out
}

// amend tells in the list of workflows which triggers are stopped.
func (w *triggerWatch) amend(all []api.Workflow) []api.Workflow {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range w.stopped {
		all = k.amend(all)
	}
	protocol.Sort(all, func(a, b api.Workflow) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.File, b.File)) })
	return all
}

func (k knownTrigger) amend(all []api.Workflow) []api.Workflow {
	i := slices.IndexFunc(all, func(x api.Workflow) bool { return x.File == k.File })
	if i < 0 {
		i, all = len(all), append(all, api.Workflow{File: k.File, Inputs: json.RawMessage(`{"type":"object"}`), Problem: k.Problem})
	}
	x := &all[i]
	if x.Definition == "" { // its name is not known
		x.Name = k.Workflow
	}
	problem := &x.WebhookProblem
	if k.Kind == protocol.TriggerSchedule {
		problem = &x.ScheduleProblem
		if x.Schedule == nil {
			x.Schedule, x.Timezone, x.Overlap, x.CatchUp = &k.Schedule.Cron, k.Schedule.Timezone, k.Schedule.Overlap, k.Schedule.CatchUp
		}
		x.Next = nil
	} else if x.Webhook == "" {
		x.Webhook = protocol.WebhookPath + k.Workflow
	}
	*problem = fmt.Sprintf("it was served until %s: %s", k.Stopped, strings.TrimSuffix(k.Problem+": "+k.Fix, ": "))
	if x.Stopped == nil || *x.Stopped > k.Stopped {
		x.Stopped = &k.Stopped
	}
	return all
}
