package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// immutable is the flag of a file that nothing removes, root included.
const immutable = 0x10 // FS_IMMUTABLE_FL

func setFlag(path string, on bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	flags := 0
	if on {
		flags = immutable
	}
	return unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags)
}

// What a command left for git to act on, and nothing could remove, is told as an attack: the run does not go on, whatever its workflow says of
// failures, the exit status is not 0, and each screen has the alarm.
func TestWhatCannotBeCleanedIsAnAlarm(t *testing.T) {
	t.Parallel()
	probe := filepath.Join("/var/tmp", "wf-immutable-"+random())
	if os.WriteFile(probe, nil, 0o600) == nil {
		err := setFlag(probe, true)
		if off := setFlag(probe, false); err == nil {
			err = off
		}
		if removed := os.Remove(probe); err != nil || removed != nil {
			t.Skip("skipped: no file can be made immutable here: ", err, removed)
		}
	}
	const line = "echo ../../evilgit > tool/.git/commondir; echo x > up; read x < go; echo ended"
	run := "run: \"" + line + "\", sandbox: on, continue_on_error: true, retry: {attempts: 3, delay: 1ms, on: [any]}"
	for name, roles := range map[string]string{
		"a timeout at the same time": "roles: {a: {run: \"" + strings.Replace(line, "echo ended", "sleep 30", 1) + "\", sandbox: on, timeout: 2s}, b: {run: \"true\"}}\nedges: [{from: START, to: a}, {from: a, to: END}, {from: a, to: b, on: failure}, {from: b, to: END}]\n",
		"a sub-workflow":             "roles: {a: {workflow: inner.yaml, continue_on_error: true}, b: {run: \"true\"}}\nedges: [{from: START, to: a}, {from: a, to: b}, {from: b, to: END}]\n",
		"an always role":             "roles: {c: {run: \"true\"}, a: {" + strings.Replace(run, "continue_on_error: true, ", "", 1) + "}}\nedges: [{from: START, to: c}, {from: c, to: END}]\nalways: [a]\n",
		"a command":                  "roles: {a: {" + run + "}, b: {run: \"true\"}}\nedges: [{from: START, to: a}, {from: a, to: END}, {from: a, to: b, on: failure}, {from: b, to: END}]\n",
		"an agent":                   "roles: {coder: {prompt: You are coder., tools: [shell], timeout: 2m}, b: {run: \"true\"}}\nedges: [{from: START, to: coder}, {from: coder, to: END}, {from: coder, to: b, on: failure}, {from: b, to: END}]\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := evilStage(t, shell(line, "ended"))
			left := filepath.Join(w.project, "tool/.git/commondir")
			for _, pipe := range []string{"up", "go"} {
				w.must(unix.Mkfifo(filepath.Join(w.project, pipe), 0o600))
			}
			t.Cleanup(func() { _ = setFlag(left, false) }) // it may be gone
			w.put(filepath.Join(w.project, "left.yaml"), "wf: 1\nname: left\n"+roles)
			w.put(filepath.Join(w.project, "inner.yaml"), "wf: 1\nname: inner\nroles: {x: {"+run+"}}\nedges: [{from: START, to: x}, {from: x, to: END}]\n")
			done := make(chan error, 1)
			go func() {
				_, err := os.ReadFile(filepath.Join(w.project, "up"))
				if err == nil {
					err = setFlag(left, true)
				}
				if err == nil {
					err = os.WriteFile(filepath.Join(w.project, "go"), []byte("x\n"), 0)
				}
				done <- err
			}()
			out := w.does(t, 1, "ALARM: ", "run", "left.yaml", "--no-input", "--model", "evil/test")
			select {
			case err := <-done:
				w.must(err)
			case <-time.After(time.Minute):
				t.Fatalf("the command did not run: %s", out)
			}
			if strings.Contains(out, "could not be started") || !strings.Contains(out, "tool/.git/commondir") {
				t.Errorf("it says %s", out)
			}
			if name == "an always role" || name == "a sub-workflow" { // what the run concluded stands, and it is no green end; it is that of the other run
				w.must(setFlag(left, false))
				return
			}
			for _, args := range [][]string{{"show", "-1"}, {"log", "-1"}, {"ls"}, {"replay", "-1"}} {
				w.does(t, 0, "ALARM: the command left tool/.git/comm", args...) // a list cuts it off there
			}
			w.does(t, 0, `"code": "left_behind"`, "show", "-1", "-o", "json")
			if log := w.journal(t, "-1"); !strings.Contains(log, `"left":["tool/.git/commondir"]`) || strings.Contains(log, `"type":"done"`) || strings.Contains(log, `"step":"b#1"`) {
				t.Errorf("the journal: %s", log)
			}
			w.must(setFlag(left, false))
			w.must(os.Remove(left))
		})
	}
}
