package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/engine/lang"
	"wf/protocol"
	"wf/roles"
)

// doctorOf are the items that wf doctor names in a directory, by name; it ends with 0, or with exit.
func doctorOf(t *testing.T, dir string, exit ...int) map[string]api.Checkup {
	t.Helper()
	out, err := wfIn(dir, "doctor", "-o", "json").Output()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok && slices.Contains(exit, ended.ExitCode()) {
		err = nil
	}
	var all api.Doctor
	if err == nil {
		err = json.Unmarshal(out, &all)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	found := map[string]api.Checkup{}
	for _, c := range all.Items {
		found[c.Name] = c
	}
	return found
}

// followed performs the first command that a finding advises.
func followed(t *testing.T, dir string, c api.Checkup) (string, error) {
	t.Helper()
	m := regexp.MustCompile(`wf ((?:[a-z]+ )'?[A-Z0-9][A-Za-z0-9:#]*)`).FindStringSubmatch(c.Fix)
	if m == nil {
		t.Fatalf("%s advises no command: %q", c.Name, c.Fix)
	}
	out, err := wfIn(dir, strings.Fields(strings.ReplaceAll(m[1], "'", ""))...).CombinedOutput()
	return string(out), err
}

// cutOff performs roles until its process dies, in the one that is named. The role fail fails.
type cutOff struct {
	role string
	die  context.CancelFunc
}

func (c cutOff) Perform(ctx context.Context, turn protocol.Turn, _ roles.Emit) (protocol.Conclusion, error) {
	if turn.Role.Name == c.role {
		c.die()
		return protocol.Conclusion{}, ctx.Err()
	}
	if turn.Role.Name == "fail" {
		return protocol.Conclusion{}, &protocol.Failure{ErrorInfo: protocol.ErrorInfo{Code: "exit_code", Message: "exit status 7"}}
	}
	return protocol.Conclusion{Text: new("")}, nil
}

// begunAgo begins a run of this user some time ago, whose process died in a role.
func begunAgo(t *testing.T, dir, file, role string, age time.Duration) protocol.RunID {
	t.Helper()
	s, err := cas.Open(t.Context(), filepath.Join(dir, ".wf"), cas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, die := context.WithCancel(t.Context())
	defer die()
	e := &engine.Engine{Store: s, Pins: cas.NewPins(s, filepath.Join(dir, "state", "wf")), Now: func() time.Time { return time.Now().Add(-age) },
		Performers: map[protocol.Action]roles.Performer{protocol.ActRun: cutOff{role, die}}}
	source, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		t.Fatal(err)
	}
	p, diagnostics := lang.Load(source, lang.Options{File: file})
	if p == nil {
		t.Fatal(diagnostics)
	}
	run, _, err := e.Begin(t.Context(), engine.Launch{Program: p, Source: source, Inputs: protocol.JSON("{}"), Workspace: dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Drive(ctx, run, engine.DriveOptions{}); err == nil && role != "" {
		t.Fatal("it was not cut off")
	}
	return run
}

// What is left of runs that closed is named, with what makes it go away; what is on its way is not.
func TestDoctorNamesWhatIsLeftOfRunsThatClosed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "job.yaml", "wf: 1\nname: job\nroles: {work: {run: 'true'}, stop: {run: 'true'}}\nalways: stop\n")
	write(t, dir, "broken.yaml", "wf: 1\nname: broken\nroles: {work: {run: 'true'}, fail: {run: 'exit 7'}}\nalways: fail\n")
	begunAgo(t, dir, "job.yaml", "stop", 5*time.Minute) // a daemon may still take it up
	begunAgo(t, dir, "job.yaml", "work", time.Hour)     // it does not close
	begunAgo(t, dir, "job.yaml", "", time.Hour)         // it has ended
	found := doctorOf(t, dir)
	for _, name := range []string{"closing", "cleanup"} {
		if c, there := found[name]; there {
			t.Errorf("nothing is wrong, and it says %+v", c)
		}
	}
	var runs []protocol.RunID
	for i := range 7 {
		runs = append(runs, begunAgo(t, dir, "job.yaml", "stop", time.Duration(72-i)*time.Hour))
	}
	closing := doctorOf(t, dir)["closing"]
	if closing.State != "note" || !strings.Contains(closing.Text, "7 runs cut off while closing: "+string(runs[6])+" is to end as done since 2d, and no process goes on") || !strings.HasSuffix(closing.Text, "; and 2 more") {
		t.Errorf("%+v", closing)
	}
	for i := 6; i >= 0; i-- {
		closing := doctorOf(t, dir)["closing"]
		if !strings.Contains(closing.Fix, "wf resume "+string(runs[i])) {
			t.Fatalf("the newest is %s: %+v", runs[i], closing)
		}
		if out, err := followed(t, dir, closing); err != nil {
			t.Fatalf("%q does not help: %v %s", closing.Fix, err, out)
		}
	}
	if c, there := doctorOf(t, dir)["closing"]; there {
		t.Errorf("all have ended, and it says %+v", c)
	}

	for _, x := range []struct {
		age  time.Duration
		told bool
	}{{8 * 24 * time.Hour, false}, {6 * 24 * time.Hour, true}} {
		run := begunAgo(t, dir, "broken.yaml", "", x.age)
		if c := doctorOf(t, dir)["cleanup"]; strings.Contains(c.Text, string(run)) != x.told {
			t.Errorf("after %s: %+v", x.age, c)
		}
	}
	if out, err := wfIn(dir, "run", "broken.yaml", "-q").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	cleanup := doctorOf(t, dir)["cleanup"]
	if cleanup.State != "note" || !strings.Contains(cleanup.Text, "2 runs with always roles that failed: fail of ") || !strings.Contains(cleanup.Text, "exit status 7") {
		t.Errorf("%+v", cleanup)
	}
	if out, err := followed(t, dir, cleanup); err != nil || !strings.Contains(out, "exit status 7") {
		t.Errorf("%q does not help: %v %s", cleanup.Fix, err, out)
	}
}

// A config that notifies of a workflow which is not there is named, with the name that was meant; one of the project, of the daemon or of
// a run is there.
func TestDoctorNamesAWorkflowThatIsNotThere(t *testing.T) {
	t.Parallel()
	dir, served := t.TempDir(), t.TempDir()
	write(t, dir, "deploy.yaml", "wf: 1\nname: deploy\nroles: {a: {set: {x: 1}}}\n")
	write(t, dir, "old.yaml", "wf: 1\nname: ran\nroles: {a: {set: {x: 1}}}\n")
	write(t, served, "far.yaml", "wf: 1\nname: served\nroles: {a: {set: {x: 1}}}\n")
	if err := os.MkdirAll(filepath.Join(dir, ".config", "wf"), 0o700); err != nil {
		t.Fatal(err)
	}
	configure := func(names string) {
		write(t, filepath.Join(dir, ".config", "wf"), "config.yaml", fmt.Sprintf("notify: [{name: ops, workflows: [%s], command: 'true'}]\n", names))
	}
	if out, err := wfIn(dir, "run", "old.yaml", "-q").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if err := os.Remove(filepath.Join(dir, "old.yaml")); err != nil {
		t.Fatal(err)
	}
	configure("deploj, ran, served")
	c := doctorOf(t, dir)["notify ops"]
	if c.State != "note" || !strings.Contains(c.Text, `for the workflow "deploj", which is not served here`) || !strings.Contains(c.Text, `"served"`) || strings.Contains(c.Text, `"ran"`) {
		t.Errorf("%+v", c)
	}
	s := startServe(t, dir, "--listen", "unix", "--workflows", served)
	s.ready()
	c = doctorOf(t, dir)["notify ops"]
	if c.State != "note" || strings.Contains(c.Text, `"served"`) || !strings.Contains(c.Fix, filepath.Join(dir, ".config", "wf", "config.yaml")+`: did you mean "deploy"?`) {
		t.Errorf("%+v", c)
	}
	configure(strings.NewReplacer("deploj", regexp.MustCompile(`did you mean "(.*)"`).FindStringSubmatch(c.Fix)[1]).Replace("deploj, ran, served"))
	if c = doctorOf(t, dir)["notify ops"]; c.State != "ok" {
		t.Errorf("corrected as advised: %+v", c)
	}
	s.stop()
}

// Without a daemon nothing starts by itself: where one served schedules, wf doctor says so, with what serves them again.
func TestF314DoctorNamesTheSchedulesThatLackADaemon(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if c := doctorOf(t, dir)["daemon"]; c.State != "ok" {
		t.Errorf("nothing needs a daemon, and it says %+v", c)
	}
	write(t, dir, "nightly.yaml", "wf: 1\nname: nightly\non: {schedule: \"0 3 * * *\"}\nroles: {a: {set: {x: 1}}}\n")
	trustAll(t, dir)
	p := startProcess(t, dir, "serve", "--listen", "unix", "--workflows", dir)
	awaitText(t, "the schedule is served", p.err)
	if c := doctorOf(t, dir)["daemon"]; c.State != "ok" {
		t.Errorf("it runs, and wf doctor says %+v", c)
	}
	p.kill()
	out, err := wfIn(dir, "doctor").Output()
	want := "none, and so nothing starts: the schedule of nightly"
	if text := strings.Join(strings.Fields(string(out)), " "); exitOf(t, err) != 1 || !strings.Contains(text, want) || !strings.Contains(text, "wf serve --workflows "+protocol.ShellWord(dir)) {
		t.Errorf("wf doctor: %v %s", err, out)
	}
}
