package daemon_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"wf/api"
	"wf/daemon"
	"wf/hub/schedule"
)

// A watched is a daemon whose looks at its triggers a test decides on.
type watched struct {
	t *testing.T
	*daemon.Daemon
	log lines
}

// watch is one of the workflow flow in a directory, trusted as it is, of a user.
func watch(t *testing.T, dir, user string) *watched {
	t.Helper()
	u, s := opened(t, dir)
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, user))
	w := &watched{t: t}
	var err error
	if w.Daemon, err = daemon.New(u, s, daemon.Options{Dir: dir, Workflows: []string{dir}, Name: "desk", Log: slog.New(slog.NewTextHandler(&w.log, nil))}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { daemon.LeaveTriggers(w.Daemon) })
	if f := w.flow(); f.Definition != "" {
		u.Trusted = []string{f.Definition}
	}
	return w
}

func (w *watched) flow() api.Workflow {
	w.t.Helper()
	all, err := w.Service.Workflows(w.t.Context())
	if err != nil || len(all) != 1 {
		w.t.Fatal(all, err)
	}
	return all[0]
}

// look looks, and wants the schedule to be stopped or not, with so many lines of the log about it by now.
func (w *watched) look(what string, stopped bool, lines int) {
	w.t.Helper()
	daemon.LookAtTriggers(w.t.Context(), w.Daemon)
	if x := w.flow(); (x.Stopped != nil) != stopped || stopped && !strings.Contains(x.ScheduleProblem, "it was served until ") {
		w.t.Errorf("%s: %+v", what, x)
	}
	if n := strings.Count(w.log.String(), "the schedule is stopped"); n != lines {
		w.t.Errorf("%s: %d lines, not %d:\n%s", what, n, lines, w.log.String())
	}
}

const (
	scheduled = "wf: 1\nname: flow\non: {schedule: \"0 3 * * *\"}\nroles: {a: {set: {x: 1}}}\n"
	misspelt  = "wf: 1\nname: flow\non: {shedule: \"0 3 * * *\"}\nroles: {a: {set: {x: 1}}}\n"
)

// What an editor writes may be broken for a moment; a second look decides. Another problem is another line, the same one is none.
func TestATriggerIsStoppedOnceTwoLooksFindSo(t *testing.T) {
	dir := t.TempDir()
	is := func(text string) { laid(t, dir, map[string]string{"flow.yaml": text}) }
	is(scheduled)
	w := watch(t, dir, "ada")
	w.look("served", false, 0)
	is(misspelt)
	w.look("seen once", false, 0)
	is(scheduled)
	w.look("as it was", false, 0)
	is(misspelt)
	w.look("seen once again", false, 0)
	w.look("seen twice", true, 1)
	w.look("seen three times", true, 1)
	is("wf: 1\nname: flow\n")
	w.look("another problem", true, 2)
	w.look("the same", true, 2)
	is(scheduled)
	w.look("mended", false, 2)
	if err := os.Rename(filepath.Join(dir, "flow.yaml"), filepath.Join(dir, "flow.yml")); err != nil {
		t.Fatal(err)
	}
	w.look("in another file", false, 2)
	w.look("in another file", false, 2)
	if log := w.log.String(); strings.Count(log, "the schedule is no more: its file was removed") != 1 || strings.Count(log, "the schedule is served again") != 1 || strings.Count(log, `"the schedule is served"`) != 2 {
		t.Error(log)
	}
}

// Of two daemons one tells, the other one lists it all the same, and goes on when that one ends.
func TestOfTwoDaemonsOneTellsThatATriggerStopped(t *testing.T) {
	dir := t.TempDir()
	laid(t, dir, map[string]string{"flow.yaml": scheduled})
	a, b := watch(t, dir, "ada"), watch(t, dir, "ada")
	a.look("served", false, 0)
	b.look("served", false, 0)
	laid(t, dir, map[string]string{"flow.yaml": misspelt})
	for range 2 {
		daemon.LookAtTriggers(t.Context(), a.Daemon)
		daemon.LookAtTriggers(t.Context(), b.Daemon)
	}
	a.look("stopped", true, 1)
	b.look("stopped", true, 0)
	daemon.LeaveTriggers(a.Daemon)
	b.look("the other one ended", true, 1)
}

// What a store brings along that this user did not seal is not known: its alarms are none.
func TestTriggersOfAnotherUserAreNotKnown(t *testing.T) {
	dir := t.TempDir()
	laid(t, dir, map[string]string{"flow.yaml": scheduled})
	w := watch(t, dir, "ada")
	w.look("served", false, 0)
	daemon.LeaveTriggers(w.Daemon)
	laid(t, dir, map[string]string{"flow.yaml": misspelt})
	w = watch(t, dir, "ada")
	w.look("of the same user", false, 0)
	w.look("of the same user", true, 1)
	daemon.LeaveTriggers(w.Daemon)
	w = watch(t, dir, "eve")
	w.look("of another user", false, 0)
	w.look("of another user", false, 0)
}

// A schedule whose firings cannot be started is stopped: once it failed twice, and until one is started.
func TestAScheduleThatCannotBeStartedIsStopped(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("FLOW_KEY", "")
	os.Unsetenv("FLOW_KEY")
	laid(t, dir, map[string]string{"flow.yaml": "wf: 1\nname: flow\nsecrets: [FLOW_KEY]\non: {schedule: \"0 3 * * *\"}\nroles: {a: {run: \"true\", env: {K: \"${{ secrets.FLOW_KEY }}\"}}}\n"})
	w := watch(t, dir, "ada")
	daemon.StartUncounted(w.Daemon)
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	w.look("served", false, 0)
	fire := func() error {
		_, _, err := w.Fire(t.Context(), schedule.Firing{Job: schedule.Job{File: w.flow().File}, Due: time.Now(), RequestID: fmt.Sprint(time.Now())})
		return err
	}
	for n := range 2 {
		if err := fire(); err == nil {
			t.Fatal("it starts without its secret")
		}
		w.look("after a failure", false, 0)
		if n == 0 {
			w.look("after a failure", false, 0)
		}
	}
	w.look("after two", true, 1)
	t.Setenv("FLOW_KEY", "a secret of the flow")
	if err := fire(); err != nil {
		t.Fatal(err)
	}
	w.look("started", false, 1)
}
