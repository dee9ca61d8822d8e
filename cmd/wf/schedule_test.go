package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"wf/files/filestest"
	"wf/protocol"
)

// Two daemons start a firing that was missed once, and none while its run is open, whatever they remember.
func TestTwoDaemonsStartAFiringOnce(t *testing.T) {
	dir := t.TempDir()
	past := time.Now().UTC().Add(-30 * time.Minute) // so that none comes due meanwhile
	write(t, dir, "tick.yaml", fmt.Sprintf("wf: 1\nname: tick\non: {schedule: {cron: \"%d * * * *\", overlap: skip}}\nroles: {a: {wait: {signal: go}}}\n", past.Minute()))
	seen := filepath.Join(dir, ".wf", "serve", "schedule.json")
	both := func() []*served {
		return []*served{startServe(t, dir, "--listen", "unix:"+filepath.Join(dir, "a.sock")), startServe(t, dir, "--listen", "unix:"+filepath.Join(dir, "b.sock"))}
	}
	earlier := func() { t.Helper(); anHourLater(t, seen) }
	s := both()
	await := func(so func() bool) { // of the file
		if err := filestest.Await(t.Context(), filepath.Dir(seen), so); err != nil {
			t.Fatal(err)
		}
	}
	await(func() bool { _, err := os.Stat(seen); return err == nil })
	for _, x := range s {
		x.stop()
	}
	earlier()
	s = both()
	run := s[0].awaitRuns(1)[0]
	v := s[1].awaitStatus(run, protocol.Waiting)
	due := past.Truncate(time.Minute).Format(time.RFC3339)
	if v.Info.Trigger == nil || *v.Info.Trigger != (protocol.Trigger{Kind: "schedule", Name: "tick", Delivery: due}) || v.Info.RequestID != protocol.Firing("tick", v.Info.File, past.Truncate(time.Minute)) {
		t.Errorf("%+v %+v", v.Info, v.Info.Trigger)
	}
	for _, x := range s {
		x.stop()
	}
	earlier()
	s = both() // the run is open
	awaitText(t, "the firing is left out", s[0].err, s[1].err)
	if status := s[0].call("POST", "/v1/runs/"+string(run)+"/answer", map[string]string{"signal": "go"}, nil); status != 200 {
		t.Fatal(status)
	}
	s[1].awaitStatus(run, protocol.Done)
	for _, x := range s {
		x.stop()
	}
	earlier()
	s = both() // it has ended, and the firing has its run
	await(func() bool {
		b, err := os.ReadFile(seen)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(b), due)
	})
	for _, x := range s {
		if w := x.workflows()["tick"]; w.Next == nil || w.Overlap != "skip" {
			t.Errorf("%+v", w)
		}
		x.stop()
	}
	if runs := s[0].runs(); len(runs) != 1 {
		t.Errorf("%d runs", len(runs))
	}
}

// anHourLater has an hour pass for the schedules of a store: it puts back what they have noted in a file.
func anHourLater(t *testing.T, seen string) {
	t.Helper()
	var f struct {
		Schema string                      `json:"schema"`
		Since  map[string]time.Time        `json:"since"`
		Until  map[string]time.Time        `json:"until,omitempty"`
		Runs   map[string][]protocol.RunID `json:"runs,omitempty"`
	}
	b, err := os.ReadFile(seen)
	if err == nil {
		err = json.Unmarshal(b, &f)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []map[string]time.Time{f.Since, f.Until} {
		for key, at := range m {
			m[key] = at.Add(-time.Hour)
		}
	}
	if b, err = json.Marshal(f); err == nil {
		err = os.WriteFile(seen, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A workflow that an agent may have written is started by the clock only once a person has trusted it, whatever it does. Until
// then the log, the list and wf doctor say so, with the command that helps.
func TestF405TheClockStartsNothingThatNobodyTrusted(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "tick.yaml", "wf: 1\nname: tick\non: {schedule: \"* * * * *\"}\nroles: {a: {set: {x: 1}}}\n")
	serve := func() *served { return servedBy(t, dir, wfIn(dir, "serve", "-o", "json", "--listen", "unix")) }
	s := serve()
	awaitText(t, "the schedule waits for trust", s.err)
	advice := "wf trust " + filepath.Join(dir, "tick.yaml")
	if w := s.workflows()["tick"]; w.Next != nil || !strings.Contains(w.ScheduleProblem, advice) || !strings.Contains(s.err.String(), advice) {
		t.Errorf("%+v", w)
	}
	if out, err := wfIn(dir, "doctor").CombinedOutput(); !strings.Contains(string(out), "the schedule of tick: it waits for trust: "+advice) {
		t.Errorf("%s %v", out, err)
	}
	if n := strings.Count(s.err.String(), "the schedule waits for trust"); n != 1 {
		t.Errorf("the log says it %d times", n)
	}
	s.stop()
	if out, err := wfIn(dir, "trust", "--yes", "tick.yaml").CombinedOutput(); err != nil {
		t.Fatalf("%s %v", out, err)
	}
	s = serve()
	s.ready()
	if w := s.workflows()["tick"]; w.Next == nil || w.ScheduleProblem != "" {
		t.Errorf("%+v", w)
	}
}
