package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"wf/api"
	"wf/protocol"
)

// dayProgram is the variable with the program that the whole day is lived with, such as the built one.
const dayProgram = "WF_DAY"

// dayLength is how much happens in the day.
type dayLength struct {
	program string        // "" is that of the tests
	files   int           // that are reviewed side by side
	before  int           // of these, before the backup
	answer  time.Duration // time to answer
}

// A day of operating wf with the real program, and with servers on loopback: a provider that allows 60 requests a minute, a
// sender of webhooks, a receiver of notifications, Prometheus's parser. The config is that of docs/operate.md. With
// WF_DAY=PROGRAM 200 files are reviewed, which takes more than three minutes under that limit; else 20.
//
//	night      a firing of the schedule is missed, and made up for
//	morning    a fan-out is held by the limits; pushes start deployments, one at a time, which are approved
//	noon       a run fails, its notification starts another; the metrics tell of all of it; a backup
//	afternoon  the daemon is killed, the store is lost; it is restored, adopted, and goes on
//	evening    nothing ran twice, and wf verify --all finds nothing
func TestADayOfOperation(t *testing.T) {
	oneAfterAnother(t)
	d := &day{t: t, dir: t.TempDir(), tokens: map[string]string{}, length: dayLength{files: 20, before: 8, answer: time.Second}}
	if program := os.Getenv(dayProgram); program != "" {
		d.length = dayLength{program: program, files: 200, before: 60, answer: 15 * time.Second}
	} else {
		t.Parallel()
	}
	d.began = time.Now()
	d.setUp()
	d.night()
	d.morning()
	d.noon()
	d.disaster()
	d.afternoon()
	d.evening()
}

const (
	deployRoles = `
concurrency: deploy
roles:
  approve:
    ask: "Deploy ${{ inputs.ref }}?"
    choices: [deploy, stop]
    assignees: [anna]
    timeout: TIME
    remind: HALF
    on_timeout: {escalate: [ben, carla], then: fail}
    retry: {attempts: 100, delay: 1ms, factor: 1}
  apply:
    run: 'echo "$REF" >>applied; until [ -e "ready-$REF" ]; do sleep 0.02; done'
    env: {REF: "${{ inputs.ref }}"}
    once: true
    timeout: 1h
  unknown: {set: {applied: unknown}}
edges:
  - {from: START, to: approve}
  - {from: approve, to: apply, when: output.choice == "deploy"}
  - {from: approve, to: END}
  - {from: apply, to: END}
  - {from: apply, to: unknown, on: failure}
  - {from: unknown, to: END}
`
	reviewYAML = `wf: 1
name: review
inputs: {files: {type: array, required: true}}
limits: {duration: 2m}
roles:
  list: {set: {files: "${{ inputs.files }}"}}
  review: {prompt: You review a file., model: work/scripted, timeout: 2m}
  report: {set: {reviewed: "${{ len(output) }}"}}
edges:
  - {from: START, to: list}
  - {from: list, to: review, for_each: output.files, prompt: "Review ${{ item }}."}
  - {from: review, to: report}
  - {from: report, to: END}
outputs: {reviewed: "${{ output.reviewed }}"}
`
	nightlyYAML = `wf: 1
name: nightly
on: {schedule: {cron: "%d * * * *", timezone: UTC, overlap: skip}}
roles: {report: {run: echo reported >>reports, timeout: 1m}}
`
	checkYAML = `wf: 1
name: check
roles: {smoke: {run: exit 3, timeout: 1m}}
edges: [{from: START, to: smoke}, {from: smoke, to: END}, {from: smoke, to: FAIL, on: failure}]
`
	mendYAML = `wf: 1
name: mend
roles: {look: {ask: "What was it?"}}
outputs: {cause: "${{ steps.look.text }}"}
`
)

// setUp is what a team does once: config, workflows, trust, tokens.
func (d *day) setUp() {
	d.t.Helper()
	page, err := os.ReadFile("../../docs/operate.md")
	if err != nil {
		d.t.Fatal(err)
	}
	d.page = string(page)
	d.provider, d.receiver = newProvider(d.t, 60), newReceiver(d.t)
	d.env = []string{"HOOK_KEY=" + hookKey, "WF_OPS_SECRET=" + notifySecret, "WORK_KEY=the key of an account"}
	for _, dir := range []string{"etc/workflows", ".config/wf", "work"} {
		if err := os.MkdirAll(filepath.Join(d.dir, dir), 0o700); err != nil {
			d.t.Fatal(err)
		}
	}
	config := d.piece("key_env: WORK_KEY", "https://gateway.example", d.provider.at) +
		d.piece("WF_OPS_SECRET", "https://ops.example.com/wf", d.receiver.at, "[deploy, release]", "[deploy, check, mend]",
			"  - {name: me, on: waiting, desktop: true}\n", "", "  - {name: log, command: \"cat >> notifications.jsonl\"}\n", "")
	write(d.t, filepath.Join(d.dir, ".config/wf"), "config.yaml", config)
	deploy := d.piece("name: on-push", "name: on-push", "name: deploy")
	head, _, ok := strings.Cut(deploy, "roles:\n")
	if !ok {
		d.t.Fatalf("no roles in\n%s", deploy)
	}
	workflows := filepath.Join(d.dir, "etc/workflows")
	d.missed = time.Now().UTC().Add(-30 * time.Minute).Truncate(time.Minute) // so that none comes due meanwhile
	for name, text := range map[string]string{
		"deploy.yaml":  head + strings.NewReplacer("TIME", d.length.answer.String(), "HALF", (d.length.answer/2).String()).Replace(deployRoles),
		"review.yaml":  reviewYAML,
		"nightly.yaml": fmt.Sprintf(nightlyYAML, d.missed.Minute()),
		"check.yaml":   checkYAML,
		"mend.yaml":    mendYAML,
	} {
		write(d.t, workflows, name, text)
		d.does(0, "trust", filepath.Join(workflows, name), "--yes")
	}
	d.say("a config of docs/operate.md, and 5 workflows that are trusted")
	d.does(0, "doctor")
}

// night is a daemon that knows its schedule, and is off when it is due.
func (d *day) night() {
	d.t.Helper()
	d.start()
	seen := filepath.Join(d.dir, ".wf", "serve", "schedule.json")
	await(d.t, "the schedule is noted", func() bool { _, err := os.Stat(seen); return err == nil })
	d.stop()
	anHourLater(d.t, seen)
	d.start()
	d.say("the machine was off at %s, when nightly was due", d.missed.Format("15:04"))
	await(d.t, "the firing is caught up with", func() bool { return len(d.runs()) > 0 })
	d.nightly = d.runs()[0]
	v := d.awaitStatus(d.nightly, protocol.Done)
	if want := (protocol.Trigger{Kind: protocol.TriggerSchedule, Name: "nightly", Delivery: d.missed.Format(time.RFC3339)}); v.Info.Trigger == nil || *v.Info.Trigger != want {
		d.t.Errorf("%+v, want %+v", v.Info.Trigger, want)
	}
	d.say("it is made up for: run %s is done", d.nightly)
	for name, scope := range map[string]string{"anna": "answer", "ben": "answer", "ci": "run", "prometheus": "metrics"} {
		d.grant(name, scope)
	}
}

// await looks until something is so.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); !is(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not so after a minute: %s", what)
		}
	}
}

// morning is a fan-out under the limits of its provider, and deployments that pushes start.
func (d *day) morning() {
	d.t.Helper()
	files := make([]string, d.length.files)
	for i := range files {
		files[i] = fmt.Sprintf("file-%03d", i)
	}
	d.review = d.startedBy("ci", map[string]any{"workflow": "review", "inputs": map[string]any{"files": files}})
	d.await(d.review, "held", func(v *api.Run) bool {
		return slices.ContainsFunc(v.Steps, func(s *api.Step) bool { return strings.Contains(s.Held, "8 requests at once of the provider work") })
	})
	if asked, _, _, open := d.provider.counted(); asked != 8 || open != 8 {
		d.t.Errorf("%d requests came, and %d are open, of 8 that may be at once", asked, open)
	}
	d.say("%d files are reviewed side by side: 8 requests are under way, the others are held", d.length.files)
	d.provider.allow(d.length.before)

	first := d.push("v1")
	if first.status != http.StatusAccepted || !first.Fresh {
		d.t.Fatalf("%+v", first)
	}
	if again := d.push("v1"); again.status != http.StatusOK || again.ID != first.ID {
		d.t.Errorf("the same event again: %+v", again)
	}
	if a, err := d.deliver("deploy", `{"ref":"v0"}`, "X-Hub-Signature-256: sha256="+strings.Repeat("0", 64)); err != nil || a.status != http.StatusUnauthorized {
		d.t.Errorf("a wrong signature: %+v, %v", a, err)
	}
	d.v1, d.v2 = first.ID, d.push("v2").ID
	d.awaitStatus(d.v2, protocol.Queued)
	d.say("GitHub pushes v1, run %s, sends it again, which starts nothing, and v2, run %s, which waits for its turn", d.v1, d.v2)

	if m := d.notified(d.v1, protocol.OnWaiting); m.Question != "Deploy v1?" || m.Step != "approve#1" || m.Link != "https://wf.example.com/#/run/"+string(d.v1) {
		d.t.Errorf("%+v", m)
	}
	d.escalated(d.v1)
	d.hears("that ben is asked too", func(m heard) bool { return m.Run == d.v1 && slices.Contains(m.Assignees, "ben") })
	d.answer("ben", d.v1, "deploy")
	write(d.t, d.work(), "ready-v1", "")
	d.awaitStatus(d.v1, protocol.Done)
	d.say("ben approves, and v1 is deployed")
	d.answer("anna", d.v2, "deploy")
	await(d.t, "v2 is being deployed", func() bool { return d.applied()["v2"] == 1 })
	d.v3 = d.push("v3").ID
	d.awaitStatus(d.v3, protocol.Queued)
	d.say("anna approves v2, whose deployment takes its time; v3, run %s, waits for it", d.v3)

	d.does(1, "run", "check", "--hub", d.said.Listen[0].URL)
	d.check = d.latest("check")
	m := d.notified(d.check, protocol.OnFailed)
	if m.Status != protocol.Failed || m.Workflow != "check" {
		d.t.Errorf("%+v", m)
	}
	d.mend = d.startedBy("ci", map[string]any{"workflow": "mend", "caused_by": m.cause})
	if c := d.awaitStatus(d.mend, protocol.Waiting).Info.CausedBy; c == nil || c.Run != d.check || c.Depth != 1 {
		d.t.Errorf("caused by %+v", c)
	}
	d.notified(d.mend, protocol.OnWaiting)
	d.say("run %s fails; its notification starts run %s, which asks for the cause", d.check, d.mend)
}

// noon is what an operator looks at, and a backup while all goes on.
func (d *day) noon() {
	d.t.Helper()
	d.reviewed(d.length.before)
	got := d.measures(map[string]float64{
		"wf_runs{deploy,done}": 1, "wf_runs{deploy,running}": 1, "wf_runs{deploy,queued}": 1, "wf_runs{review,running}": 1, "wf_runs{mend,waiting}": 1,
		"wf_runs{check,failed}": 1, "wf_runs{nightly,done}": 1, "wf_runs_started_total{deploy}": 3, "wf_runs_ended_total{check,failed}": 1,
		"wf_attempts_failed_total{exit_code}": 1, "wf_attempts_failed_total{rate_limit}": 0, "wf_answers_total{}": 2, "wf_waits_total{choice}": 2,
		"wf_model_calls_total{work/scripted,ok}": float64(d.length.before), "wf_held_total{in_flight}": 1,
		"wf_http_requests_total{hooks,202}": 3, "wf_http_requests_total{hooks,200}": 1, "wf_http_requests_total{hooks,401}": 1,
		"wf_notifications_total{delivered}": 3, "wf_notifications_total{failed}": 0, "wf_notifications_total{dead}": 0,
	})
	d.say("the metrics: %v model calls, visits held %v times, %v notifications delivered, %v webhooks taken, %v run queued",
		got["wf_model_calls_total{work/scripted,ok}"], got["wf_held_total{in_flight}"]+got["wf_held_total{requests}"],
		got["wf_notifications_total{delivered}"], got["wf_http_requests_total{hooks,202}"], got["wf_runs{deploy,queued}"])
	if status, _ := d.http("ci", "GET", "/metrics", ""); status != http.StatusForbidden {
		d.t.Errorf("a token without the scope reads the metrics: %d", status)
	}
	var made struct {
		Heads, Packs int
		Bytes        int64
	}
	d.asks(&made, "store", "backup", d.backup(), "--verify")
	if made.Heads < 7 {
		d.t.Errorf("%+v", made)
	}
	d.say("a backup of %d heads, %d bytes, while all of it goes on", made.Heads, made.Bytes)
}

func (d *day) backup() string { return filepath.Join(d.dir, "backup") }

// afterBackup is how many files are reviewed behind the backup: for nothing, as it comes.
const afterBackup = 4

// disaster is a daemon that is killed at work, and the loss of its store.
func (d *day) disaster() {
	d.t.Helper()
	d.provider.allow(afterBackup)
	d.reviewed(d.length.before + afterBackup)
	d.v4 = d.push("v4").ID
	d.awaitStatus(d.v4, protocol.Queued)
	await(d.t, "8 requests are under way", func() bool { _, _, _, open := d.provider.counted(); return open == 8 })
	d.kill()
	d.say("%d more files are reviewed and v4 is pushed; then the machine dies, with 5 runs that have not ended", afterBackup)
	store := filepath.Join(d.dir, ".wf")
	db, err := os.OpenFile(filepath.Join(store, "store.db"), os.O_WRONLY, 0)
	if err != nil {
		d.t.Fatal(err)
	}
	info, err := db.Stat()
	for at := int64(8192); err == nil && at < info.Size(); at += 4096 {
		_, err = db.WriteAt(make([]byte, 512), at)
	}
	if err := errors.Join(err, db.Close()); err != nil {
		d.t.Fatal(err)
	}
	d.does(7, "verify", "--all")
	if err := os.RemoveAll(store); err != nil {
		d.t.Fatal(err)
	}
	d.say("its disk is damaged: wf verify says so, and the store is removed")
	d.does(0, "store", "restore", d.backup(), store)
	d.does(5, "resume", string(d.mend))
	d.start()
	if a := d.push("v4"); a.status != http.StatusServiceUnavailable {
		d.t.Errorf("a store that is held takes an event: %+v", a)
	}
	if runs := d.runs(); slices.Contains(runs, d.v4) || len(runs) != 7 {
		d.t.Errorf("%d runs are restored: %v", len(runs), runs)
	}
	d.stop()
	d.say("the backup is restored; nothing goes on in it")
	d.does(0, "store", "adopt", "--yes")
	d.does(0, "verify", "--all")
}

// afternoon is what goes on in the store that was restored and adopted.
func (d *day) afternoon() {
	d.t.Helper()
	d.start()
	for _, run := range []protocol.RunID{d.v2, d.v3, d.review, d.mend} {
		if v := d.awaitStatus(run, protocol.Suspended); v.Code != "restored" {
			d.t.Errorf("run %s is suspended by %q: %s", run, v.Code, v.Reason)
		}
		if status := d.call("POST", "/v1/runs/"+string(run)+"/resume", nil, nil); status != http.StatusOK {
			d.t.Errorf("resume %s: %d", run, status)
		}
	}
	d.say("it is adopted: 4 runs were suspended, and are gone on with")
	d.provider.allow(2 * d.length.files)
	v := d.await(d.v2, "a question about what was cut off", func(v *api.Run) bool { return v.Status == protocol.Waiting })
	if w := v.Waiting[0]; w.Step != "apply#1" || !strings.Contains(w.Question, "marked once") || d.applied()["v2"] != 1 {
		d.t.Errorf("%+v, %v", w, d.applied())
	}
	d.does(0, "answer", string(d.v2), "--choice", "fail", "--hub", d.said.Listen[0].URL)
	if v := d.awaitStatus(d.v2, protocol.Done); steps(v, "unknown") != 1 {
		d.t.Errorf("%+v", v.Steps)
	}
	d.say("v2 was being deployed, which is to happen once: a person is asked, and looks")
	d.answer("anna", d.v3, "deploy")
	write(d.t, d.work(), "ready-v3", "")
	d.awaitStatus(d.v3, protocol.Done)
	if a := d.push("v4"); a.status != http.StatusAccepted || a.ID != d.v4 {
		d.t.Errorf("an event that was lost, sent again: %+v, not %s", a, d.v4)
	}
	d.answer("anna", d.v4, "deploy")
	write(d.t, d.work(), "ready-v4", "")
	d.awaitStatus(d.v4, protocol.Done)
	d.say("v3 is deployed; GitHub sends v4 again, which was lost, and it is deployed")
	d.does(0, "answer", string(d.mend), "the disk", "--hub", d.said.Listen[0].URL)
	if v := d.awaitStatus(d.mend, protocol.Done); string(v.Outputs) != `{"cause":"the disk"}` || v.Info.CausedBy == nil || v.Info.CausedBy.Run != d.check {
		d.t.Errorf("%s %+v", v.Outputs, v.Info.CausedBy)
	}
	d.until(d.review, func(v *api.Run) bool { return v.Status != protocol.Running })
	if d.length.files > 60 {
		d.measures(map[string]float64{"wf_held_total{requests}": 1, "wf_attempts_failed_total{rate_limit}": 0, "wf_limits_reached_total{duration}": 0})
	}
	if v := d.view(d.review); v.Status != protocol.Done || string(v.Outputs) != fmt.Sprintf(`{"reviewed":%d}`, d.length.files) || steps(v, "review") != d.length.files {
		d.t.Errorf("%s (%s): %s, %d reviewed", v.Status, v.Reason, v.Outputs, steps(v, "review"))
	}
}

// until waits for a run as long as limits may hold it.
func (d *day) until(run protocol.RunID, is func(*api.Run) bool) {
	d.t.Helper()
	ctx, stop := context.WithTimeout(d.t.Context(), 10*time.Minute)
	defer stop()
	for {
		since, err := d.store.Changes(ctx)
		if err != nil {
			d.t.Fatal(err)
		}
		v := d.view(run)
		if is(v) {
			return
		}
		if _, err := d.store.AwaitChange(ctx, since); err != nil {
			d.t.Fatalf("run %s is %s (%s): %v", run, v.Status, v.Reason, err)
		}
	}
}

// evening is the account of the day.
func (d *day) evening() {
	d.t.Helper()
	asked, answered, refused, open := d.provider.counted()
	if refused != 0 || open != 0 || answered != d.length.files+afterBackup || asked != answered+8 {
		d.t.Errorf("the provider was asked %d times, answered %d, refused %d, and %d are open", asked, answered, refused, open)
	}
	d.say("%d files are reviewed, with %d requests, of which %d were lost with the store; %d were refused with status 429", d.length.files, asked, asked-d.length.files, refused)

	// The night again: what the schedule had noted was lost, and the run of the firing was not.
	seen := filepath.Join(d.dir, ".wf", "serve", "schedule.json")
	d.stop()
	anHourLater(d.t, seen)
	d.start()
	await(d.t, "the firing is dealt with", func() bool {
		text, err := os.ReadFile(seen)
		return err == nil && strings.Contains(string(text), d.missed.Format(time.RFC3339))
	})
	if text, err := os.ReadFile(filepath.Join(d.work(), "reports")); err != nil || string(text) != "reported\n" {
		d.t.Errorf("%q, %v", text, err)
	}
	if runs := d.runs(); len(runs) != 8 || d.latest("nightly") != d.nightly {
		d.t.Errorf("%d runs", len(runs))
	}
	if got, want := fmt.Sprint(d.applied()), "map[v1:1 v2:1 v3:1 v4:1]"; got != want {
		d.t.Errorf("deployed %s, want %s", got, want)
	}
	told := map[string]int{}
	for _, m := range d.receiver.all() {
		if told[m.ID]++; told[m.ID] > 1 {
			d.t.Errorf("%s came %d times: %+v", m.ID, told[m.ID], m)
		}
	}
	d.measures(map[string]float64{"wf_runs{deploy,done}": 4, "wf_runs{review,done}": 1, "wf_runs{mend,done}": 1, "wf_runs{check,failed}": 1, "wf_runs{nightly,done}": 1})
	d.say("nothing ran twice: no deployment, no firing of the schedule; none of %d notifications came twice", len(told))
	d.say("wf verify --all: %s", strings.TrimSpace(d.does(0, "verify", "--all")))
	var doctor api.Doctor
	d.asks(&doctor, "doctor")
	for _, c := range doctor.Items {
		aside := strings.HasPrefix(c.Name, "model ") || c.Name == "prices" || c.Name == "git" || c.Name == "sandbox" // of the machine
		if c.State != "ok" && !aside {
			d.t.Errorf("wf doctor: %+v", c)
		}
	}
	d.say("wf doctor finds nothing; good night")
}

// escalated waits until a question was called to mind, and put to the next person. A daemon that was kept waiting leaves a
// reminder out, but the further ones come.
func (d *day) escalated(run protocol.RunID) {
	d.t.Helper()
	log := ""
	v := d.await(run, "called to mind and put to ben", func(v *api.Run) bool {
		log = strings.Join(d.events(run), "\n")
		return len(v.Waiting) == 1 && slices.Contains(v.Waiting[0].Assignees, "ben") && strings.Contains(log, `"reminded"`)
	})
	if asked, escalated := strings.Index(log, `"waiting"`), strings.Index(log, `"escalated"`); asked < 0 || escalated < asked {
		d.t.Errorf("asked by byte %d, escalated by byte %d of\n%s", asked, escalated, log)
	}
	d.say("anna is asked %q and reminded, does not answer within %s, and so is ben", v.Waiting[0].Question, d.length.answer)
}

// answer gives the answer of a person, who may: also where the question is asked anew meanwhile.
func (d *day) answer(name string, run protocol.RunID, choice string) {
	d.t.Helper()
	for {
		d.await(run, "asked of "+name, func(v *api.Run) bool { return len(v.Waiting) == 1 && slices.Contains(v.Waiting[0].Assignees, name) })
		status, said := d.http(name, "POST", "/v1/runs/"+string(run)+"/answer", fmt.Sprintf(`{"choice":%q}`, choice))
		if status == http.StatusOK {
			return
		}
		if status != http.StatusConflict && status != http.StatusForbidden {
			d.t.Fatalf("%d %s", status, said)
		}
	}
}

// startedBy starts a run over TCP.
func (d *day) startedBy(name string, body map[string]any) protocol.RunID {
	d.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		d.t.Fatal(err)
	}
	status, said := d.http(name, "POST", "/v1/runs", string(text))
	var x api.Started
	if err := json.Unmarshal([]byte(said), &x); err != nil || status != http.StatusCreated {
		d.t.Fatalf("%d %s", status, said)
	}
	return x.ID
}

// latest is the newest run of a workflow.
func (d *day) latest(workflow string) protocol.RunID {
	d.t.Helper()
	var list struct{ Items []api.Row }
	if d.call("GET", "/v1/runs?workflow="+workflow, nil, &list); len(list.Items) == 0 {
		d.t.Fatalf("no run of %s", workflow)
	}
	return list.Items[0].ID
}

func (d *day) work() string { return filepath.Join(d.dir, "work") }

// applied is what was deployed, and how often.
func (d *day) applied() map[string]int {
	d.t.Helper()
	text, err := os.ReadFile(filepath.Join(d.work(), "applied"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.t.Fatal(err)
	}
	out := map[string]int{}
	for _, ref := range strings.Fields(string(text)) {
		out[ref]++
	}
	return out
}

// reviewed waits until so many files are.
func (d *day) reviewed(n int) {
	d.t.Helper()
	d.until(d.review, func(v *api.Run) bool { return steps(v, "review") == n })
}
