package daemon

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"wf/api"
	"wf/cas"
	"wf/hub/hook"
	"wf/metrics"
	"wf/protocol"
	"wf/service/compose"
)

// meters are what a process that drives runs counts: counters of what it did itself, from the updates of its engine
// and the commits of its store. They know workflows, models, statuses and classes of things, and no run, step or
// person.
type meters struct {
	*metrics.Registry
	price func(protocol.Usage) *int64

	workflow metrics.Label
	names    metrics.Names // of the workflows that are served

	started, ended, suspended                *metrics.Counter
	attempts, failed, steps, waits, answers  *metrics.Counter
	limits, corrections, compactions, tools  *metrics.Counter
	calls, tokens, cost, unpriced, fallbacks *metrics.Counter
	refused, held, told, hooks               *metrics.Counter
	runTime, stepTime, callTime, firstTime   *metrics.Histogram
	commit, sync                             *metrics.Histogram
}

// mostWorkflows is how many workflows are told apart.
const mostWorkflows = 200

// mostModels is how many models are told apart.
const mostModels = 100

func (*meters) statuses(more ...string) metrics.Label {
	all := []string{string(protocol.Queued), string(protocol.Running), string(protocol.Waiting), string(protocol.Suspended), string(protocol.Done), string(protocol.Failed), string(protocol.Cancelled)}
	return metrics.Label{Name: "status", Values: append(all, more...)}
}

func (*meters) class(values ...string) metrics.Label {
	return metrics.Label{Name: "class", Values: values}
}

// syncTimes are bounds for what a disk takes.
var syncTimes = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}

// runTimes are bounds for runs, which may wait for days.
var runTimes = []float64{.1, 1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 24 * 3600, 7 * 24 * 3600}

// newMeters registers all that is counted; price is that of a call, or nil where it is not known.
func newMeters(r *metrics.Registry, version string, price func(protocol.Usage) *int64) *meters {
	m := &meters{Registry: r, price: price}
	m.names.Max = mostWorkflows
	m.workflow = metrics.Label{Name: "workflow", In: &m.names}
	model := metrics.Label{Name: "model", Max: mostModels}
	codes := metrics.Label{Name: "class"}
	action := m.class(string(protocol.ActPrompt), string(protocol.ActRun), string(protocol.ActAsk), string(protocol.ActWorkflow), string(protocol.ActWait), string(protocol.ActSet), string(protocol.ActMerge))
	r.Process(version)

	m.started = r.Counter("wf_runs_started_total", "Runs that this process began, by workflow.", m.workflow)
	over := metrics.Label{Name: "status", Values: []string{string(protocol.Done), string(protocol.Failed), string(protocol.Cancelled)}}
	m.ended = r.Counter("wf_runs_ended_total", "Runs that ended in this process, by workflow and how.", m.workflow, over)
	m.runTime = r.Histogram("wf_run_seconds", "Time from the first event of a run to its end in this process, waits included, by workflow and how it ended.", runTimes, m.workflow, over)
	m.suspended = r.Counter("wf_runs_suspended_total", "Runs that this process suspended, by workflow and why.", m.workflow,
		m.class(string(protocol.ByInterrupt), string(protocol.ByError), string(protocol.ByStall), string(protocol.ByLimit), string(protocol.ByAnswer)))
	m.attempts = r.Counter("wf_attempts_total", "Attempts of steps that began, by the action of the role.", action)
	m.failed = r.Counter("wf_attempts_failed_total", "Attempts of steps that failed, by the code of the error.", codes)
	m.steps = r.Counter("wf_steps_total", "Steps that ended, by the action of the role and how.", action,
		metrics.Label{Name: "status", Values: []string{string(protocol.StepOK), string(protocol.StepFailed), string(protocol.StepSkipped)}})
	m.stepTime = r.Histogram("wf_step_seconds", "Time that the last attempt of a step took, by the action of the role.", metrics.Seconds, action)
	m.waits = r.Counter("wf_waits_total", "Times that a step began to wait, by what for.", m.class(string(protocol.WaitQuestion), string(protocol.WaitChoice),
		string(protocol.WaitApproval), string(protocol.WaitSignal), string(protocol.WaitTimer), string(protocol.WaitTask)))
	m.answers = r.Counter("wf_answers_total", "Answers that this process recorded.")
	m.limits = r.Counter("wf_limits_reached_total", "Limits of runs that were reached, by limit.", m.class("steps", "duration", "cost_usd", "tokens"))

	m.held = r.Counter("wf_held_total", "Times that a visit was held by the limits of a provider, by limit.",
		m.class(protocol.HeldByRequests, protocol.HeldByTokens, protocol.HeldByInFlight, protocol.HeldByRetryAfter, protocol.HeldByOutage))
	m.told = r.Counter("wf_notifications_total", "Attempts to deliver a notification, by what came of them; a dead one is not attempted again.",
		metrics.Label{Name: "status", Values: []string{toldDelivered, toldFailed, toldDead}})

	m.hooks = r.Counter("wf_webhook_events_total", "Signed events of webhooks, by what became of them: kept on disk, repeated, begun; refused by the bounds, not written, dropped.",
		metrics.Label{Name: "status", Values: []string{hook.CountKept, hook.CountRepeated, hook.CountBegun, hook.CountFull, hook.CountFailed, hook.CountDropped}})

	m.calls = r.Counter("wf_model_calls_total", "Model calls by model and how they ended.", model,
		metrics.Label{Name: "status", Values: []string{callOK, protocol.StopLength, protocol.StopRefused, protocol.StopOverflow, protocol.StopGivenUp}})
	m.callTime = r.Histogram("wf_model_call_seconds", "Time that model calls took, by model.", metrics.Seconds, model)
	m.firstTime = r.Histogram("wf_model_first_seconds", "Time to the first piece of a reply, by model.", metrics.Seconds, model)
	m.tokens = r.Counter("wf_tokens_total", "Tokens by model; cached, written and reasoning ones are within input and output.", model,
		m.class("input", "cached", "written", "output", "reasoning"))
	m.cost = r.Counter("wf_cost_dollars_total", "What model calls cost, by workflow and model; calls without a known price are left out.", m.workflow, model)
	m.unpriced = r.Counter("wf_unpriced_calls_total", "Model calls that used tokens and whose price is not known.", model)
	m.fallbacks = r.Counter("wf_model_fallbacks_total", "Times that another model answered, by the one that did not.", model)
	m.tools = r.Counter("wf_tool_results_total", "Tool calls of agents that ended, by how.", metrics.Label{Name: "status", Values: []string{callOK, "error"}})
	m.corrections = r.Counter("wf_corrections_total", "Answers of models that did not fit the declared output.")
	m.compactions = r.Counter("wf_compactions_total", "Summaries that took the place of older messages.", m.class(string(protocol.ScopeConversation), string(protocol.ScopeVisit)))

	m.commit = r.Histogram("wf_store_commit_seconds", "Time that writers waited for a commit, the queue for the store included.", syncTimes)
	m.sync = r.Histogram("wf_store_sync_seconds", "Time in which a transaction was written and synced; one may hold several commits.", syncTimes)
	m.refused = r.Counter("wf_store_failures_total", "Commits that failed, by the code of the error; a head that another process moved is none.",
		m.class(protocol.ErrDiskFull.Code, protocol.ErrReadOnly.Code, protocol.ErrBusy.Code, protocol.ErrStore.Code, protocol.ErrNewerStore.Code, protocol.ErrCorrupt.Code, metrics.Other))
	for _, code := range []string{"rate_limit", "server_error", "timeout", "exit_code", "invalid_output"} {
		m.failed.Zero(code)
	}
	return m
}

// What came of an attempt to deliver a notification.
const (
	toldDelivered = "delivered"
	toldFailed    = "failed"
	toldDead      = "dead"
)

// notified counts what came of an attempt to deliver a notification.
func (m *meters) notified(result protocol.Data) {
	switch result.(type) {
	case protocol.Delivered:
		m.told.Inc(toldDelivered)
	case protocol.DeliveryFailed:
		m.told.Inc(toldFailed)
	case protocol.DeliveryDead:
		m.told.Inc(toldDead)
	}
}

// hooked counts what became of an event.
func (m *meters) hooked(status string) { m.hooks.Inc(status) }

// callOK is how a call ended of which all came.
const callOK = "ok"

// notice counts an event that this process wrote.
func (m *meters) notice(u api.Update) {
	if !u.Wrote {
		return
	}
	workflow := ""
	if u.Workflow != nil {
		workflow = u.Workflow.Name
	}
	switch d := u.Data.(type) {
	case protocol.RunStarted:
		if u.Parent == "" {
			m.started.Inc(workflow)
		}
	case protocol.Finished:
		m.end(u, workflow, d.Status)
	case protocol.CancelledBy:
		m.end(u, workflow, protocol.Cancelled)
	case protocol.SuspendedBy:
		if u.Parent == "" && u.Step == "" {
			m.suspended.Inc(workflow, string(d.Reason))
		}
	case protocol.StepStarted:
		if !d.Preparing { // another one follows
			m.attempts.Inc(actionOf(u))
		}
	case protocol.AttemptFailed:
		m.failed.Inc(d.Error.Code)
	case protocol.StepCompleted:
		action := actionOf(u)
		m.steps.Inc(action, cmp.Or(string(d.Status), string(protocol.StepOK)))
		m.stepTime.Observe(float64(d.MS)/1e3, action)
	case protocol.WaitingFor:
		m.waits.Inc(string(d.Kind))
	case protocol.Answered:
		m.answers.Inc()
	case protocol.LimitReached:
		m.limits.Inc(d.Limit)
	case protocol.Held:
		m.held.Inc(d.Limit)
	case protocol.Usage:
		m.usage(workflow, d)
	case protocol.ModelFallback:
		m.fallbacks.Inc(d.From)
	case protocol.ToolResult:
		m.tools.Inc(statusOf(d.IsError))
	case protocol.Correction:
		m.corrections.Inc()
	case protocol.Compacted:
		m.compactions.Inc(string(d.Scope))
	}
}

// end counts that a run ended, and how long it was after its first event.
func (m *meters) end(u api.Update, workflow string, status protocol.RunStatus) {
	if u.Parent != "" {
		return
	}
	m.ended.Inc(workflow, string(status))
	m.runTime.Observe(float64(u.Entry.TS-u.Started)/1e6, workflow, string(status))
}

func statusOf(failed bool) string {
	if failed {
		return "error"
	}
	return callOK
}

// actionOf is what the role of a step does.
func actionOf(u api.Update) string {
	if role, _, ok := strings.Cut(u.Step, "#"); ok && u.Workflow != nil {
		if r, ok := u.Workflow.RoleNamed(role); ok {
			return string(r.Action)
		}
	}
	return ""
}

// usage counts a model call. One that a sub-workflow made stands in the journal of its own run too, and counts there.
func (m *meters) usage(workflow string, d protocol.Usage) {
	if d.Child != nil {
		return
	}
	m.calls.Inc(d.Model, cmp.Or(d.Stop, callOK))
	m.callTime.Observe(float64(d.TotalMS)/1e3, d.Model)
	if d.TTFE > 0 {
		m.firstTime.Observe(float64(d.TTFE)/1e3, d.Model)
	}
	used := int64(0)
	for _, x := range []struct {
		class string
		n     []*int64
	}{{"input", []*int64{d.Input}}, {"cached", []*int64{d.Cached}}, {"written", []*int64{d.CacheWrite5m, d.CacheWrite1h}}, {"output", []*int64{d.Output}}, {"reasoning", []*int64{d.Reasoning}}} {
		for _, n := range x.n {
			if n != nil {
				m.tokens.Add(float64(*n), d.Model, x.class)
				used += *n
			}
		}
	}
	if used == 0 {
		return
	}
	if cost := m.price(d); cost != nil {
		m.cost.Add(float64(*cost)/1e12, workflow, d.Model)
	} else {
		m.unpriced.Inc(d.Model)
	}
}

// stored counts what a store did.
func (m *meters) stored(what cas.Op, took time.Duration, err error) {
	switch {
	case err != nil:
		if what == cas.OpBatch && !errors.Is(err, protocol.ErrHeadMoved) {
			m.refused.Inc(protocol.CodeOf(err))
		}
	case what == cas.OpBatch:
		m.commit.Observe(took.Seconds())
	case what == cas.OpCommit:
		m.sync.Observe(took.Seconds())
	}
}

// know has the served workflows told apart from others: those of now, and with again those that come until ctx ends.
func (m *meters) know(c compose.Catalog, log *slog.Logger) (again func(ctx context.Context)) {
	var files map[string]time.Time
	told := false
	look := func() {
		now, err := m.served(c, files)
		if files = now; err != nil && !told {
			log.Error("the served workflows cannot be listed for the metrics", "why", describe(err))
		}
		told = err != nil
	}
	look()
	return func(ctx context.Context) {
		tick := time.NewTicker(censusEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				look()
			case <-ctx.Done():
				return
			}
		}
	}
}

// served reads the names of the workflows, where their files are not as they were.
func (m *meters) served(c compose.Catalog, old map[string]time.Time) (map[string]time.Time, error) {
	now := map[string]time.Time{}
	for _, dir := range c.Dirs {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return old, err
		}
		for _, e := range entries {
			if ext := filepath.Ext(e.Name()); ext != ".yaml" && ext != ".yml" || strings.HasPrefix(e.Name(), ".") {
				continue
			}
			if info, err := e.Info(); err == nil {
				now[filepath.Join(dir, e.Name())] = info.ModTime()
			}
		}
	}
	if old != nil && maps.EqualFunc(old, now, time.Time.Equal) {
		return now, nil
	}
	all, err := c.List()
	if err != nil {
		return old, err
	}
	for _, f := range all {
		if f.Program != nil {
			name := f.Program.Workflow.Name
			m.names.Allow(name)
			for _, c := range []*metrics.Counter{m.started, m.ended, m.suspended} {
				c.Zero(name)
			}
		}
	}
	return now, nil
}
