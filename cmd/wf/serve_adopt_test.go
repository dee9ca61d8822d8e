package main

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"wf/api"
	"wf/cas"
	"wf/protocol"
)

const gate = `wf: 1
name: gate
roles:
  gate: {ask: "Go on?", choices: [{label: "Yes", value: "yes"}, {label: "No", value: "no"}]}
  after: {run: 'echo begun >>begun; until [ -e go ]; do sleep 0.02; done', timeout: 1m}
`

// leaveWaiting has another process run a workflow until it waits.
func leaveWaiting(t *testing.T, dir, file string) {
	t.Helper()
	out, err := wfIn(dir, "run", file, "--no-input", "-o", "json").Output()
	if code := exitOf(t, err); code != 8 {
		t.Fatalf("wf run %s: %d\n%s", file, code, out)
	}
}

// What another process leaves waiting while a daemon runs is the daemon's too: it goes on when
// somebody records an answer and does not go on, and else not.
func TestADaemonGoesOnWithAnswersToWhatIsLeftWaitingBesideIt(t *testing.T) {
	t.Parallel()
	s := serveTalk(t)
	write(t, s.dir, "gate.yaml", gate)
	write(t, s.dir, "go", "")
	leaveWaiting(t, s.dir, "gate.yaml")
	answered := latestIn(t, s)
	if out, err := wfIn(s.dir, "answer", string(answered), "--choice", "yes", "--record").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	leaveWaiting(t, s.dir, "gate.yaml")
	open := latestIn(t, s)
	if v := s.awaitStatus(answered, protocol.Done); v.Steps[len(v.Steps)-1].Role != "after" {
		t.Errorf("run %s ended with %s", v.ID, v.Steps[len(v.Steps)-1].ID)
	}
	if v := s.view(open); v.Status != protocol.Waiting {
		t.Errorf("run %s, which nobody answered, is %s", open, v.Status)
	}
}

// The timer of a run that another process left waiting is the daemon's.
func TestADaemonGoesOnWithTimersOfWhatIsLeftWaitingBesideIt(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "nap.yaml", "wf: 1\nname: nap\ndefaults: {timeout: 1m}\nroles: {nap: {wait: 2h}}\n")
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state")) // as wfIn
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := cas.Open(ctx, filepath.Join(dir, ".wf"), cas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d, err := quietDaemon(s, dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	d.Service.Engine.Now = func() time.Time { return time.Now().Add(3 * time.Hour) }
	d.Start()
	leaveWaiting(t, dir, "nap.yaml")
	run, err := appOf(s.Dir()).atStore(s).run(ctx, "-1")
	if err != nil {
		t.Fatal(err)
	}
	for status := protocol.Waiting; status != protocol.Done; {
		since, err := s.Changes(ctx)
		if err != nil {
			t.Fatal(err)
		}
		st, err := d.Service.Engine.State(ctx, run)
		if err != nil {
			t.Fatal(err)
		}
		if status = st.Status(); status == protocol.Done {
			break
		}
		if _, err := s.AwaitChange(ctx, since); err != nil {
			t.Fatalf("%s, not done: %v", status, err)
		}
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// latestIn is the newest run of a daemon.
func latestIn(t *testing.T, s *served) protocol.RunID {
	t.Helper()
	var list struct{ Items []struct{ ID protocol.RunID } }
	s.call("GET", "/v1/runs?limit=1", nil, &list)
	if len(list.Items) != 1 {
		t.Fatalf("have %v", list.Items)
	}
	return list.Items[0].ID
}

// Somebody else answers while a person at the terminal still thinks: the person is told, and sees
// the run to its end.
func TestWhoIsAskedAtTheTerminalMaySeeAnotherAnswer(t *testing.T) {
	t.Parallel()
	s := serveTalk(t)
	write(t, s.dir, "gate.yaml", gate)
	p := inTmux(t, s.dir, "wf run gate.yaml; echo ended with $?; cat")
	p.shows("gate#1 asks:", "2  No")
	run := latestIn(t, s)
	if status := s.call("POST", "/v1/runs/"+string(run)+"/answer", map[string]any{"choice": "yes"}, nil); status != 200 {
		t.Fatal(status)
	}
	s.await(run, "at its command", func(v *api.Run) bool { return len(v.Steps) == 2 })
	p.press("1", "Enter")
	p.shows("gate#1 was answered elsewhere meanwhile", "another process goes on with the run")
	write(t, s.dir, "go", "")
	if seen := p.shows("ended with 0"); !strings.Contains(seen, "✓ done") || !strings.Contains(seen, "after#1") {
		t.Errorf("seen:\n%s", seen)
	}
}

// A run of a server asks at the terminal where it was started, as one of this machine does.
func TestARunOfAServerAsksAtTheTerminal(t *testing.T) {
	t.Parallel()
	s := serveTalk(t)
	p := inTmux(t, t.TempDir(), "wf run talk --hub "+s.said.Listen[0].URL+"; echo ended with $?; cat")
	p.shows("gate#1 asks:", "1  Once more")
	p.press("7", "Enter")
	p.shows("there are choices 1 to 2")
	p.press("BSpace", "1", "Enter")
	p.shows("gate#2 asks:")
	p.press("2", "Enter")
	p.shows("✓ done", "ended with 0")
	v := s.awaitStatus(latestIn(t, s), protocol.Done)
	if n := len(v.Steps); n != 4 {
		t.Errorf("%d steps", n)
	}
}
