package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"wf/api"
	"wf/daemon"
	"wf/hub/guard"
	"wf/hub/queue"
	"wf/metrics"
	"wf/protocol"
)

// scrape is what GET /metrics answers.
func scrape(t *testing.T, h http.Handler) *bytes.Buffer {
	t.Helper()
	req := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req.WithContext(guard.With(req.Context(), guard.Identity{Name: "prometheus", Scopes: []guard.Scope{guard.Metrics}})))
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return w.Body
}

// scraped is what GET /metrics answers, read by Prometheus's own parser: name{values} → value, histograms by their
// count. Labels are those that the contract names.
func scraped(t *testing.T, h http.Handler) map[string]float64 {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(scrape(t, h))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for name, f := range families {
		for _, m := range f.Metric {
			var values []string
			for _, l := range m.Label {
				if !slices.Contains([]string{"workflow", "status", "model", "class"}, l.GetName()) && name != "wf_build_info" {
					t.Errorf("%s has the label %s", name, l.GetName())
				}
				values = append(values, l.GetValue())
			}
			key := name
			if len(values) > 0 {
				key += "{" + strings.Join(values, ",") + "}"
			}
			switch f.GetType() {
			case dto.MetricType_COUNTER:
				out[key] = m.Counter.GetValue()
				if !strings.HasSuffix(name, "_total") {
					t.Errorf("the counter %s does not end with _total", name)
				}
			case dto.MetricType_GAUGE:
				out[key] = m.Gauge.GetValue()
			case dto.MetricType_HISTOGRAM:
				out[key] = float64(m.Histogram.GetSampleCount())
				if !strings.HasSuffix(name, "_seconds") {
					t.Errorf("the histogram %s has no unit", name)
				}
			}
		}
	}
	return out
}

// some are the metrics of these families that are not 0.
func some(all map[string]float64, families ...string) map[string]float64 {
	out := maps.Clone(all)
	maps.DeleteFunc(out, func(key string, v float64) bool {
		name, _, _ := strings.Cut(key, "{")
		return v == 0 || !slices.Contains(families, name)
	})
	return out
}

// laid writes files into a directory.
func laid(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// begun starts a run of a daemon and follows it until it is parked.
func begun(t *testing.T, d *daemon.Daemon, workflow, inputs string) protocol.RunID {
	t.Helper()
	s := api.Start{Workflow: workflow}
	if err := json.Unmarshal([]byte(inputs), &s.Inputs); err != nil {
		t.Fatal(err)
	}
	run, _, err := d.Service.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	parked(t, d, run)
	return run
}

func parked(t *testing.T, d *daemon.Daemon, run protocol.RunID) {
	t.Helper()
	if err := d.Follow(t.Context(), run, api.Following{Until: api.Parked}, func(api.Update) error { return nil }); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for d.Supervisor.Drives(run) { // its last event is on disk before its drive is over
		<-tick.C
	}
}

var measured = map[string]string{
	"ends.yaml": `wf: 1
name: ends
inputs: {ok: {type: boolean, default: true}}
roles: {a: {set: {x: 1}}, b: {set: {y: 2}}}
edges: [{from: START, to: a}, {from: a, to: b, when: inputs.ok}, {from: a, to: FAIL}, {from: b, to: END}]
`,
	"asks.yaml": `wf: 1
name: asks
roles: {q: {ask: Well?}}
edges: [{from: START, to: q}, {from: q, to: END}]
`,
	"parent.yaml": `wf: 1
name: parent
roles: {c: {workflow: ./asks.yaml}}
edges: [{from: START, to: c}, {from: c, to: END}]
`,
}

func TestADaemonCountsWhatItDoes(t *testing.T) {
	dir := t.TempDir()
	laid(t, dir, measured)
	d := unstarted(t, dir)
	daemon.StartUncounted(d)
	begun(t, d, "ends", `{}`)
	begun(t, d, "ends", `{"ok":true}`)
	begun(t, d, "ends", `{"ok":false}`)
	asks := begun(t, d, "asks", `{}`)
	begun(t, d, "asks", `{}`)
	begun(t, d, "parent", `{}`)
	if _, err := d.Service.Answer(t.Context(), asks, api.Answer{Text: "yes"}); err != nil {
		t.Fatal(err)
	}
	parked(t, d, asks)
	if err := daemon.Recount(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	got := scraped(t, d.Handler())
	want := map[string]float64{
		"wf_runs_started_total{ends}": 3, "wf_runs_started_total{asks}": 2, "wf_runs_started_total{parent}": 1,
		"wf_runs_ended_total{ends,done}": 2, "wf_runs_ended_total{ends,failed}": 1, "wf_runs_ended_total{asks,done}": 1,
		"wf_run_seconds{ends,done}": 2, "wf_run_seconds{ends,failed}": 1, "wf_run_seconds{asks,done}": 1,
		"wf_attempts_total{set}": 5, "wf_attempts_total{ask}": 4, "wf_attempts_total{workflow}": 1, // an answered question is attempted again
		"wf_steps_total{set,ok}": 5, "wf_steps_total{ask,ok}": 1, "wf_step_seconds{set}": 5, "wf_step_seconds{ask}": 1,
		"wf_answers_total":   1,
		"wf_runs{ends,done}": 2, "wf_runs{ends,failed}": 1, "wf_runs{asks,done}": 1, "wf_runs{asks,waiting}": 1, "wf_runs{parent,waiting}": 1,
	}
	have := some(got, "wf_runs_started_total", "wf_runs_ended_total", "wf_run_seconds", "wf_attempts_total", "wf_steps_total", "wf_step_seconds", "wf_answers_total", "wf_runs")
	if diff := cmp.Diff(want, have); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"wf_store_commit_seconds", "wf_store_sync_seconds", "wf_store_bytes{database}", "wf_store_free_bytes", "process_start_time_seconds"} {
		if got[name] <= 0 {
			t.Errorf("%s is %v", name, got[name])
		}
	}
	if got["wf_store_commit_seconds"] < got["wf_store_sync_seconds"] {
		t.Errorf("%v commits in %v transactions", got["wf_store_commit_seconds"], got["wf_store_sync_seconds"])
	}
	if age, there := got["wf_store_age_seconds"]; !there || age > 15 {
		t.Errorf("the gauges of the store are %v s old", age)
	}

	// Another process: its counters begin at 0, and the gauges are those of the store.
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	other, err := daemon.New(d.Service.Setup, d.Service.Store, daemon.Options{Dir: dir, Workflows: []string{dir}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	folds := daemon.FoldsOf(other)
	daemon.StartUncounted(other)
	defer other.Close()
	ready(t, other)
	if err := daemon.Recount(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	again := scraped(t, other.Handler())
	if diff := cmp.Diff(some(got, "wf_runs"), some(again, "wf_runs")); diff != "" {
		t.Errorf("after a restart:\n%s", diff)
	}
	if n := some(again, "wf_runs_started_total", "wf_steps_total"); len(n) > 0 {
		t.Errorf("counted before anything was done: %v", n)
	}
	if folds() != 0 {
		t.Errorf("%d runs were folded to be counted, that the supervisor had read", folds())
	}
}

// ready waits until a daemon takes requests.
func ready(t *testing.T, d *daemon.Daemon) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		w := httptest.NewRecorder()
		d.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		if w.Code == http.StatusOK {
			return
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("it never is ready")
		}
	}
}

// What another process does to the store shows in the gauges, and only the runs that moved are folded.
func TestOnlyRunsThatMovedAreFolded(t *testing.T) {
	dir := t.TempDir()
	laid(t, dir, measured)
	d := unstarted(t, dir)
	folds := daemon.FoldsOf(d)
	daemon.StartUncounted(d)
	ready(t, d)
	recount := func() map[string]float64 {
		t.Helper()
		if err := daemon.Recount(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		return some(scraped(t, d.Handler()), "wf_runs")
	}
	var runs []protocol.RunID
	for range 5 {
		runs = append(runs, begun(t, d, "asks", `{}`))
	}
	if diff := cmp.Diff(map[string]float64{"wf_runs{asks,waiting}": 5}, recount()); diff != "" {
		t.Error(diff)
	}
	if folds() > 0 {
		t.Errorf("%d runs were folded that this process drove", folds())
	}
	// Another process: an engine of its own on the same store.
	f := daemon.NewForeground(d.Service.Setup, d.Service.Store)
	if err := f.Engine.Cancel(t.Context(), runs[2], "ada", ""); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]float64{"wf_runs{asks,waiting}": 4, "wf_runs{asks,cancelled}": 1}, recount()); diff != "" {
		t.Error(diff)
	}
	if folds() > 1 {
		t.Errorf("%d runs were folded, and one had moved", folds())
	}
	before := folds()
	recount()
	for range 3 {
		scraped(t, d.Handler())
	}
	if folds() != before {
		t.Error("runs were folded though none had moved")
	}
	if n := some(scraped(t, d.Handler()), "wf_runs_ended_total"); len(n) > 0 {
		t.Errorf("what another process did counts here: %v", n)
	}
}

func TestAttemptsOfNotificationsAreCounted(t *testing.T) {
	r := new(metrics.Registry)
	notified := daemon.Notified(r)
	for _, result := range []protocol.Data{protocol.DeliveryFailed{}, protocol.DeliveryFailed{}, protocol.DeliveryDead{}, protocol.Delivered{}, protocol.Delivered{}, protocol.Delivered{}} {
		notified(result)
	}
	want := map[string]float64{"wf_notifications_total{failed}": 2, "wf_notifications_total{dead}": 1, "wf_notifications_total{delivered}": 3}
	if diff := cmp.Diff(want, some(scraped(t, r), "wf_notifications_total")); diff != "" {
		t.Error(diff)
	}
}

// A run that waits for a slot of its group is queued, until it has it, though this process waits with it.
func TestAQueuedRunIsCountedAsOne(t *testing.T) {
	dir := t.TempDir()
	laid(t, dir, map[string]string{"one.yaml": "wf: 1\nname: one\nconcurrency: one\nroles: {q: {ask: Well?}}\n"})
	d := unstarted(t, dir)
	daemon.StartUncounted(d)
	first := begun(t, d, "one", `{}`)
	second, _, err := d.Service.Start(t.Context(), api.Start{Workflow: "one"})
	if err != nil {
		t.Fatal(err)
	}
	counted := func() map[string]float64 {
		t.Helper()
		if err := daemon.Recount(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		return some(scraped(t, d.Handler()), "wf_runs")
	}
	if diff := cmp.Diff(map[string]float64{"wf_runs{one,waiting}": 1, "wf_runs{one,queued}": 1}, counted()); diff != "" {
		t.Error(diff)
	}
	if _, there := scraped(t, d.Handler())["wf_run_unmoved_seconds{queued}"]; !there {
		t.Error("it is not told how long a run is queued")
	}
	if _, err := d.Service.Answer(t.Context(), first, api.Answer{Text: "yes"}); err != nil {
		t.Fatal(err)
	}
	parked(t, d, first)
	parked(t, d, second)
	if diff := cmp.Diff(map[string]float64{"wf_runs{one,done}": 1, "wf_runs{one,waiting}": 1}, counted()); diff != "" {
		t.Error(diff)
	}
}

// Workflows that are not served count together.
func TestWorkflowsThatAreNotServedAreOthers(t *testing.T) {
	r := new(metrics.Registry)
	notice := daemon.Notice(r, slog.New(slog.DiscardHandler), nil, "served")
	for _, name := range []string{"served", "a", "b"} {
		notice(api.Update{Run: "R", Wrote: true, Workflow: &protocol.Workflow{Name: name}, Data: protocol.RunStarted{}})
	}
	notice(api.Update{Run: "R", Wrote: true, Parent: "P", Workflow: &protocol.Workflow{Name: "served"}, Data: protocol.RunStarted{}})
	notice(api.Update{Run: "R", Workflow: &protocol.Workflow{Name: "served"}, Data: protocol.RunStarted{}}) // another process wrote it
	want := map[string]float64{"wf_runs_started_total{served}": 1, "wf_runs_started_total{other}": 2}
	if diff := cmp.Diff(want, some(scraped(t, r), "wf_runs_started_total")); diff != "" {
		t.Error(diff)
	}
}

func TestModelCallsAreCountedOnceWithTheirCost(t *testing.T) {
	r := new(metrics.Registry)
	price := func(u protocol.Usage) *int64 {
		if u.Model != "a/b" {
			return nil
		}
		return new(*u.Input*3e6 + *u.Output*15e6) // 3 and 15 dollars a million
	}
	notice := daemon.Notice(r, slog.New(slog.DiscardHandler), price, "w")
	call := func(u protocol.Usage) {
		notice(api.Update{Run: "R", Step: "coder#1", Wrote: true, Workflow: &protocol.Workflow{Name: "w", Roles: []protocol.Role{{Name: "coder", Action: protocol.ActPrompt}}}, Data: u})
	}
	u := protocol.Usage{Model: "a/b", Input: new(int64(1000)), Cached: new(int64(600)), CacheWrite5m: new(int64(50)), Output: new(int64(100)), Reasoning: new(int64(40)), TTFE: 300, TotalMS: 1500}
	call(u)
	call(u)
	child := u
	child.Child = &protocol.ChildCall{Run: "C", Seq: 3}
	call(child) // it stands in the journal of the sub-workflow too
	call(protocol.Usage{Model: "c/d", Input: new(int64(10)), TotalMS: 10, Stop: protocol.StopLength})
	call(protocol.Usage{Model: "c/d", TotalMS: 10, Stop: protocol.StopGivenUp}) // used nothing
	notice(api.Update{Run: "R", Wrote: true, Data: protocol.ModelFallback{From: "a/b", To: "c/d"}})
	notice(api.Update{Run: "R", Wrote: true, Data: protocol.ToolResult{IsError: true}})
	notice(api.Update{Run: "R", Step: "coder#1", Wrote: true, Data: protocol.AttemptFailed{Error: protocol.ErrorInfo{Code: "rate_limited"}}})
	notice(api.Update{Run: "R", Wrote: true, Data: protocol.LimitReached{Limit: "cost_usd"}})
	notice(api.Update{Run: "R", Step: "coder#1", Wrote: true, Data: protocol.Held{Provider: "a", Limit: protocol.HeldByTokens}})
	notice(api.Update{Run: "R", Step: "coder#1", Wrote: true, Data: protocol.SuspendedBy{Reason: protocol.ByError}}) // of a step alone
	notice(api.Update{Run: "R", Wrote: true, Workflow: &protocol.Workflow{Name: "w"}, Data: protocol.SuspendedBy{Reason: protocol.ByLimit}})
	got := scraped(t, r)
	want := map[string]float64{
		"wf_model_calls_total{a/b,ok}": 2, "wf_model_calls_total{c/d,length}": 1, "wf_model_calls_total{c/d,given_up}": 1,
		"wf_model_call_seconds{a/b}": 2, "wf_model_call_seconds{c/d}": 2, "wf_model_first_seconds{a/b}": 2,
		"wf_tokens_total{a/b,input}": 2000, "wf_tokens_total{a/b,cached}": 1200, "wf_tokens_total{a/b,written}": 100, "wf_tokens_total{a/b,output}": 200,
		"wf_tokens_total{a/b,reasoning}": 80, "wf_tokens_total{c/d,input}": 10,
		"wf_cost_dollars_total{w,a/b}": .009, "wf_unpriced_calls_total{c/d}": 1, "wf_model_fallbacks_total{a/b}": 1, "wf_tool_results_total{error}": 1,
		"wf_attempts_failed_total{rate_limited}": 1, "wf_limits_reached_total{cost_usd}": 1, "wf_held_total{tokens}": 1, "wf_runs_suspended_total{w,limit}": 1,
	}
	var families []string
	for key := range want {
		name, _, _ := strings.Cut(key, "{")
		families = append(families, name)
	}
	rounded := some(got, families...)
	for key, v := range rounded {
		rounded[key] = float64(int64(v*1e9+.5)) / 1e9
	}
	if diff := cmp.Diff(want, rounded); diff != "" {
		t.Error(diff)
	}
}

// A line of the log about a run has the run, and one about a step the step; what was said is in none.
func TestTheLogHasRunsAndStepsAsAttributes(t *testing.T) {
	const said = "the password is tulip"
	var b bytes.Buffer
	notice := daemon.Notice(new(metrics.Registry), slog.New(slog.NewJSONHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug})), nil)
	all := []protocol.Data{
		protocol.RunStarted{Title: said}, protocol.StepStarted{Attempt: 2, EdgePrompt: protocol.NewText(said)}, protocol.TextSaid{Content: protocol.NewText(said)},
		protocol.ToolCall{Name: "bash", Args: protocol.NewText(said)}, protocol.ToolResult{Content: protocol.NewText(said)}, protocol.Usage{Model: "a/b", TotalMS: 3},
		protocol.AttemptFailed{Attempt: 1, Error: protocol.ErrorInfo{Code: "exit_code", Phase: "run", Message: said}, RetryAt: 5e6},
		protocol.StepCompleted{MS: 7, Status: protocol.StepOK}, protocol.WaitingFor{Kind: protocol.WaitQuestion, Question: protocol.NewText(said)},
		protocol.Answered{By: "ada", Source: "http", Text: protocol.NewText(said)}, protocol.SuspendedBy{Reason: protocol.ByError, Code: "model_unavailable", Detail: protocol.NewText(said)},
		protocol.ResumedBy{By: "ada"}, protocol.LimitReached{Limit: "steps", Max: 3}, protocol.ModelFallback{From: "a/b", To: "c/d", Reason: said},
		protocol.CancelledBy{By: "ada", Reason: said}, protocol.Finished{Status: protocol.Failed}, protocol.Delta{Kind: "text", Text: said},
	}
	for _, data := range all {
		notice(api.Update{Run: "R7", Step: "coder#2", Wrote: true, Workflow: &protocol.Workflow{Name: "w"}, Entry: &protocol.Entry{}, Data: data})
		notice(api.Update{Run: "R8", Data: data}) // of another process
	}
	lines := 0
	for line := range strings.Lines(b.String()) {
		var x struct{ Level, Msg, Run, Step string }
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			t.Fatal(err)
		}
		if x.Run != "R7" || x.Step != "coder#2" || x.Msg == "" || !slices.Contains([]string{"DEBUG", "INFO", "WARN"}, x.Level) {
			t.Errorf("%s", line)
		}
		lines++
	}
	if lines != len(all)-3 { // all but text, a tool's result and live output
		t.Errorf("%d lines for %d events:\n%s", lines, len(all), b.String())
	}
	if strings.Contains(b.String(), "tulip") {
		t.Errorf("what was said is in the log:\n%s", b.String())
	}
}

func TestReadyIsNotToldBeforeItIsSo(t *testing.T) {
	started, now, looks := make(chan struct{}), time.Unix(1000, 0), 0
	var broken error
	ready, end := daemon.NewProbe(started, func(ctx context.Context) error {
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("a look may take for ever")
		}
		looks++
		return broken
	}, func() time.Time { return now })
	expect := func(want bool, n int) {
		t.Helper()
		if err := ready(t.Context()); (err == nil) != want || looks != n {
			t.Errorf("%v after %d looks, want %v after %d", err, looks, want, n)
		}
	}
	expect(false, 0)
	close(started)
	expect(true, 1)
	expect(true, 1) // not looked at again by each that asks
	now = now.Add(time.Second - 1)
	broken = errors.New("no store")
	expect(true, 1)
	now = now.Add(1)
	expect(false, 2)
	broken = nil
	now = now.Add(time.Second)
	gone, leave := context.WithCancel(t.Context())
	leave() // the client
	if err := ready(gone); err != nil {
		t.Error(err)
	}
	end()
	expect(false, 3)
}

// A daemon whose store is gone, or that ends, is not ready.
func TestADaemonIsReadyWhileItsStoreCanBeRead(t *testing.T) {
	dir := t.TempDir()
	d := serving(t, dir)
	ready(t, d)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	d.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("%d while it ends", w.Code)
	}
}

// Over TCP a token of scope metrics reads the metrics and nothing else, readiness needs none, and the Host is
// checked with both.
func TestATokenForMetricsOpensNothingElse(t *testing.T) {
	dir := t.TempDir()
	d := unstarted(t, dir)
	file := filepath.Join(t.TempDir(), "tokens")
	owner, reader := strings.Repeat("a", 43), strings.Repeat("b", 43)
	if err := os.WriteFile(file, []byte(owner+"\n"+reader+" metrics # prometheus\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := d.Serve(t.Context(), daemon.ListenOptions{Addresses: []string{"127.0.0.1:0"}, TokenFile: file})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ready(t, d)
	where, err := s.Where()
	if err != nil {
		t.Fatal(err)
	}
	ask := func(method, path, token, host string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, where.Listen[0].URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		if host != "" {
			req.Host = host
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	for _, test := range []struct {
		method, path, token, host string
		want                      int
	}{
		{"GET", "/metrics", reader, "", 200}, {"GET", "/metrics", owner, "", 200}, {"GET", "/metrics", "", "", 401}, {"GET", "/metrics", strings.Repeat("c", 43), "", 401},
		{"GET", "/metrics", reader, "evil.example", 421},
		{"GET", "/readyz", "", "", 200}, {"HEAD", "/readyz", "", "", 200}, {"GET", "/readyz", "", "evil.example", 421}, {"POST", "/readyz", "", "", 401},
		{"GET", "/v1/runs", reader, "", 403}, {"GET", "/v1/info", reader, "", 403}, {"GET", "/v1/workflows", reader, "", 403}, {"POST", "/v1/runs", reader, "", 403},
		{"GET", "/v1/memories", reader, "", 403}, {"GET", "/v1/replay", reader, "", 403}, {"POST", "/v1/codes", reader, "", 403}, {"GET", "/v1/blocks/x", reader, "", 403},
		{"GET", "/v1/info", owner, "", 200},
	} {
		if got, text := ask(test.method, test.path, test.token, test.host); got != test.want {
			t.Errorf("%s %s with %.1q at %q: %d %s, want %d", test.method, test.path, test.token, test.host, got, text, test.want)
		}
	}
	_, text := ask("GET", "/metrics", reader, "")
	for _, line := range []string{`wf_http_refused_total{class="unauthorized"} 3`, `wf_http_refused_total{class="misdirected"} 2`, `wf_http_requests_total{class="runs",status="403"} 2`} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("there is no %s in\n%s", line, text)
		}
	}
}

// A hub tells of its queue and its workers, and is ready until it closes.
func TestAHubTellsOfItsQueue(t *testing.T) {
	h, err := daemon.OpenHub(t.Context(), daemon.HubOptions{Data: t.TempDir(), Version: "1.2.3", Log: slog.New(slog.DiscardHandler),
		ListenOptions: daemon.ListenOptions{Addresses: []string{"127.0.0.1:0"}}})
	if err != nil {
		t.Fatal(err)
	}
	if age, there := scraped(t, daemon.HandlerOf(h))["wf_queue_oldest_seconds"]; !there || age != 0 {
		t.Errorf("of an empty queue the oldest job is %v s old", age)
	}
	q := daemon.QueueOf(h)
	for _, id := range []string{"a", "b", "c"} {
		if _, _, err := q.Submit(t.Context(), queue.Job{ID: id, Workflow: "w"}, queue.Sealed{Box: []byte("box"), Keys: []queue.Key{{Worker: "w"}}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := q.Cancel(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	l, err := q.Lease(t.Context(), "desk", nil, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	<-l.Lost()
	if _, err := q.Lease(t.Context(), "desk", nil, time.Hour); err != nil {
		t.Fatal(err)
	}
	got := scraped(t, daemon.HandlerOf(h))
	want := map[string]float64{"wf_queue_jobs{queued}": 1, "wf_queue_jobs{leased}": 1, "wf_queue_jobs{dead}": 1, "wf_queue_leases_expired_total": 1}
	if _, there := got["wf_workers{live}"]; !there {
		t.Error("without a worker there is no wf_workers")
	}
	if diff := cmp.Diff(want, some(got, "wf_queue_jobs", "wf_queue_leases_expired_total", "wf_workers")); diff != "" {
		t.Error(diff)
	}
	if got["wf_queue_oldest_seconds"] <= 0 {
		t.Errorf("the oldest job is %v s old", got["wf_queue_oldest_seconds"])
	}
	for _, want := range []int{http.StatusOK, http.StatusServiceUnavailable} {
		w := httptest.NewRecorder()
		daemon.HandlerOf(h).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		if w.Code != want {
			t.Errorf("%d, want %d", w.Code, want)
		}
		if want == http.StatusOK {
			if err := h.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	scraped(t, daemon.HandlerOf(h)) // of a closed queue: what is left
}
