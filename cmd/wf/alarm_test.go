package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"wf/api"
	"wf/files/filestest"
	"wf/pgstore/pgtest"
	"wf/protocol"
	"wf/service/notify"
)

// waysToStop are the ways in which a schedule or a webhook that was served comes to be served no more, each of a workflow of its own. why is in what is
// told of it; one that is gone was removed on purpose.
var waysToStop = []struct {
	name  string
	hook  bool
	stop  func(t *testing.T, dir, file string)
	why   string
	gone  bool
	later bool // it shows when wf serve is started again
}{
	{name: "edited", stop: overwritten("wf: 1\nname: edited\non: {shedule: \"0 3 * * *\"}\nroles: {a: {set: {x: 1}}}\n"), why: "line 3: "},
	{name: "half", stop: overwritten("wf: 1\nname: half\non: {sche"), why: "line 3: "},
	{name: "empty", stop: overwritten(""), why: "no workflow any more"},
	{name: "other", stop: overwritten("name: other\n"), why: "no workflow any more"},
	{name: "directory", stop: func(t *testing.T, dir, file string) {
		takenAway(t, dir, file)
		must(t, os.Mkdir(filepath.Join(dir, file), 0o700))
	}, why: "directory"},
	{name: "link", stop: func(t *testing.T, dir, file string) {
		takenAway(t, dir, file)
		must(t, os.Symlink("nowhere.yaml", filepath.Join(dir, file)))
	}, why: "no such file"},
	{name: "unreadable", stop: func(t *testing.T, dir, file string) { must(t, os.Chmod(filepath.Join(dir, file), 0)) }, why: "permission denied"},
	{name: "untrusted", stop: overwritten("wf: 1\nname: untrusted\non: {schedule: \"0 4 * * *\"}\nroles: {a: {set: {x: 1}}}\n"), why: "it waits for trust: wf trust "},
	{name: "called", stop: overwritten("wf: 1\nname: called\non: {schedule: \"0 3 * * *\"}\nroles: {a: {workflow: nowhere.yaml}}\n"), why: "nowhere.yaml"},
	{name: "hook-edited", hook: true, stop: overwritten("wf: 1\nname: hook-edited\non: {webhook: {kind: github}}\nroles: {a: {set: {x: 1}}}\n"), why: "line 3: "},
	{name: "hook-twin", hook: true, stop: func(t *testing.T, dir, _ string) {
		write(t, dir, "twin.yaml", "wf: 1\nname: hook-twin\nroles: {a: {set: {x: 1}}}\n")
	}, why: "another workflow has the same name"},
	{name: "hook-secret", hook: true, later: true, why: "set HOOK_SECRET"},
	{name: "removed", stop: takenAway, gone: true, why: "its file was removed"},
	{name: "renamed", stop: func(t *testing.T, dir, file string) {
		must(t, os.Rename(filepath.Join(dir, file), filepath.Join(dir, "new-"+file)))
	}, gone: true, why: "its file was removed"},
	{name: "taken-out", stop: overwritten("wf: 1\nname: taken-out\nroles: {a: {set: {x: 1}}}\n"), gone: true, why: "has no schedule any more"},
	{name: "hook-taken-out", hook: true, stop: overwritten("wf: 1\nname: hook-taken-out\nroles: {a: {set: {x: 1}}}\n"), gone: true, why: "has no webhook any more"},
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func overwritten(text string) func(*testing.T, string, string) {
	return func(t *testing.T, dir, file string) { write(t, dir, file, text) }
}

func takenAway(t *testing.T, dir, file string) { must(t, os.Remove(filepath.Join(dir, file))) }

// A schedule or a webhook that was served and is not any more is an alarm in the log, the list, wf doctor, the metrics and a notification, whether it
// happens while wf serve runs or before it is started; it ends when it is served again. What is removed on purpose is told once.
func TestF305ATriggerThatStopsIsAnAlarm(t *testing.T) {
	t.Setenv("OPS_KEY", notifySecret)
	t.Setenv("HOOK_SECRET", hookKey)
	dir := t.TempDir()
	alarms := map[string]bool{} // by name, whether it is a webhook
	var gone []string
	lay := func() {
		for _, w := range waysToStop {
			on := `{schedule: "0 3 * * *"}`
			if w.hook {
				secret := "HOOK_KEY"
				if w.later {
					secret = "HOOK_SECRET"
				}
				on = "{webhook: {kind: github, secret: " + secret + "}}\nsecrets: [" + secret + "]"
			}
			os.RemoveAll(filepath.Join(dir, w.name+".yaml"))
			write(t, dir, w.name+".yaml", fmt.Sprintf("wf: 1\nname: %s\non: %s\nroles: {a: {set: {x: 1}}}\n", w.name, on))
		}
		for _, extra := range []string{"twin.yaml", "new-renamed.yaml"} {
			os.Remove(filepath.Join(dir, extra))
		}
	}
	stop := func(restarted bool) {
		clear(alarms)
		gone = nil
		for _, w := range waysToStop {
			switch {
			case w.name == "unreadable" && os.Getuid() == 0:
				t.Log("a file whose mode forbids reading it is left out: root reads it")
				continue
			case w.later && !restarted:
				continue
			case w.gone:
				gone = append(gone, w.name)
			default:
				alarms[w.name] = w.hook
			}
			if w.stop != nil {
				w.stop(t, dir, w.name+".yaml")
			}
		}
	}
	t.Setenv("HOOK_KEY", hookKey)
	n := receive(t, dir, always(204))
	lay()
	s := startServe(t, dir)
	all := len(waysToStop)
	s.awaitTriggers("served", all)

	// check looks at all places that tell of what is stopped, gone and served again.
	told := func(state string, want int) map[string]notify.Message {
		t.Helper()
		out := map[string]notify.Message{}
		for range want {
			m := n.next()
			if _, again := out[m.Workflow]; again || m.On != protocol.OnTrigger || string(m.Status) != state || m.Run != "" || m.File != filepath.Join(dir, m.Workflow+".yaml") || (m.Problem != "") != (state == "stopped") {
				t.Errorf("another notification than one of %s: %+v", state, m)
			}
			out[m.Workflow] = m
		}
		return out
	}
	check := func(stopped map[string]notify.Message) {
		t.Helper()
		s.awaitTriggers("stopped", len(alarms))
		list := map[string]api.Workflow{}
		var listed struct{ Items []api.Workflow }
		s.call("GET", "/v1/workflows", nil, &listed)
		for _, x := range listed.Items {
			list[x.File] = x
		}
		out, err := wfIn(dir, "doctor", "-o", "json").Output()
		var doctor api.Doctor
		if json.Unmarshal(out, &doctor) != nil || exitOf(t, err) != 1 {
			t.Fatalf("%v: %s", err, out)
		}
		var item api.Checkup
		for _, x := range doctor.Items {
			if x.Name == "triggers" {
				item = x
			}
		}
		if item.State != "bad" || !strings.Contains(item.Fix, "file") {
			t.Errorf("wf doctor: %+v", item)
		}
		for _, w := range waysToStop {
			kind := protocol.TriggerSchedule
			if w.hook {
				kind = protocol.TriggerWebhook
			}
			ofIt := fmt.Sprintf(`(?m)^.*the %s is (stopped|no more).*workflow=%s .*$`, kind, w.name)
			if _, alarm := alarms[w.name]; !alarm {
				if lines := regexp.MustCompile(ofIt).FindAllString(s.err.String(), -1); len(lines) > 0 && !w.gone {
					t.Errorf("%s: the log tells of what is served: %s", w.name, lines)
				}
				continue
			}
			x := list[filepath.Join(dir, w.name+".yaml")]
			problem := x.ScheduleProblem
			if w.hook {
				problem = x.WebhookProblem
			}
			if x.Name != w.name || x.Stopped == nil || x.Next != nil || !strings.Contains(problem, "it was served until "+*x.Stopped) || !strings.Contains(problem, w.why) || (x.Schedule != nil) == w.hook || (x.Webhook != "") != w.hook {
				t.Errorf("%s: the list has %+v", w.name, x)
			}
			if lines := s.awaitLines(ofIt); len(lines) != 1 || !strings.Contains(lines[0], "ERROR") {
				t.Errorf("%s: the log has %q", w.name, lines)
			}
			if !strings.Contains(item.Text, fmt.Sprintf("the %s of %s: %s", kind, w.name, problem)) {
				t.Errorf("%s: wf doctor says %s", w.name, item.Text)
			}
			if m := stopped[w.name]; stopped != nil && (m.Trigger != kind || !strings.Contains(m.Problem+": "+m.Fix, w.why) || m.Fix == "") {
				t.Errorf("%s: the notification is %+v", w.name, m)
			}
		}
	}
	goneOnce := func() {
		t.Helper()
		for _, name := range gone {
			lines := s.awaitLines(fmt.Sprintf(`(?m)^.*is no more: .*workflow=%s .*$`, name))
			if len(lines) != 1 || !strings.Contains(lines[0], "INFO") {
				t.Errorf("%s: the log has %q", name, lines)
			}
		}
	}

	stop(false)
	check(told("stopped", len(alarms)))
	goneOnce()
	again := alarms
	alarms = map[string]bool{}
	lay()
	trustAll(t, dir)
	told("served", len(again))
	s.awaitTriggers("stopped", 0)
	s.awaitTriggers("served", all)
	for name := range again {
		s.awaitLines("is served again.* workflow=" + name + " ")
	}

	s.stop()
	stop(true)
	t.Setenv("HOOK_SECRET", "")
	serve := func() { s = servedBy(t, dir, wfIn(dir, "serve", "-o", "json", "--listen", "unix")) }
	serve()
	check(told("stopped", len(alarms)))
	goneOnce()
	s.kill()
	serve() // its log says so too; nothing is sent again
	check(nil)
	if strings.Contains(s.err.String(), "is no more") {
		t.Error("what was removed is told again")
	}
	// One that is stopped and then removed is no alarm any more.
	must(t, os.Remove(filepath.Join(dir, "edited.yaml")))
	if m := n.next(); m.Workflow != "edited" || m.Status != "removed" {
		t.Errorf("%+v", m)
	}
	delete(alarms, "edited")
	s.awaitTriggers("stopped", len(alarms))
	s.stop()
	t.Setenv("HOOK_SECRET", hookKey)
	again = alarms
	lay()
	trustAll(t, dir)
	serve()
	told("served", len(again))
	s.awaitTriggers("stopped", 0)
	s.awaitTriggers("served", all)
	if out, err := wfIn(dir, "doctor").CombinedOutput(); !strings.Contains(string(out), fmt.Sprintf("%d workflows with a schedule or a webhook", all)) || strings.Contains(string(out), "not served") {
		t.Errorf("%v: %s", err, out)
	}
	select {
	case m := <-n.came:
		t.Errorf("one notification more: %+v", m)
	default:
	}
}

// awaitLines waits until the log has what a pattern finds: it is read beside what the metrics and notifications say.
func (s *served) awaitLines(pattern string) (lines []string) {
	s.t.Helper()
	filestest.Until(s.t, pattern+" is in the log", func() bool {
		lines = regexp.MustCompile(pattern).FindAllString(s.err.String(), -1)
		return len(lines) > 0
	}, nil)
	return lines
}

// awaitTriggers waits until the metrics have so many schedules and webhooks in a state.
func (s *served) awaitTriggers(state string, want int) {
	s.t.Helper()
	var text []byte
	filestest.Until(s.t, fmt.Sprintf("%d triggers are %s", want, state), func() bool {
		resp, err := s.client.Get("http://wf/metrics")
		if err != nil {
			s.t.Fatal(err)
		}
		defer resp.Body.Close()
		if text, err = io.ReadAll(resp.Body); err != nil {
			s.t.Fatal(err)
		}
		sum := 0
		for _, m := range regexp.MustCompile(`(?m)^wf_triggers\{.*status="`+state+`"\} (\d+)$`).FindAllSubmatch(text, -1) {
			var n int
			fmt.Sscan(string(m[1]), &n)
			sum += n
		}
		return sum == want
	}, nil)
}

// With a database what was served is known on the machine that served it, over a kill too.
func TestF305ATriggerThatStopsIsAnAlarmWithADatabase(t *testing.T) {
	t.Setenv("OPS_KEY", notifySecret)
	dsn, err := pgtest.Shared(t).Database(t.Context())
	dir := t.TempDir()
	n := receive(t, dir, always(204))
	d := newShared(t, dir, dsn, err)
	write(t, dir, "nightly.yaml", "wf: 1\nname: nightly\non: {schedule: \"0 3 * * *\"}\nroles: {a: {set: {x: 1}}}\n")
	d.wf(dir, "trust", "--yes", "nightly.yaml")
	serve := func() *process { return startProcess(t, dir, "serve", "--store", dsn, "--listen", "unix") }
	p := serve()
	awaitText(t, "the schedule is served", p.err)
	p.kill()
	write(t, dir, "nightly.yaml", "wf: 1\nname: nightly\non: {shedule: \"0 3 * * *\"}\nroles: {a: {set: {x: 1}}}\n")
	p = serve()
	awaitText(t, "the schedule is stopped", p.err)
	if m := n.next(); m.Trigger != protocol.TriggerSchedule || m.Status != "stopped" || m.Workflow != "nightly" {
		t.Errorf("the notification is %+v", m)
	}
	if out, err := d.try(dir, "doctor"); exitOf(t, err) != 1 || !strings.Contains(out, "it was served until ") {
		t.Errorf("wf doctor: %v\n%s", err, out)
	}
	write(t, dir, "nightly.yaml", "wf: 1\nname: nightly\non: {schedule: \"0 3 * * *\"}\nroles: {a: {set: {x: 1}}}\n")
	awaitText(t, "the schedule is served again", p.err)
	if m := n.next(); m.Status != "served" {
		t.Errorf("the notification is %+v", m)
	}
}
