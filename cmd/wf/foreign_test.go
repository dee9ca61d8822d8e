package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"wf/api"
	"wf/cas"
	"wf/cmd/internal/chat"
	"wf/daemon"
	"wf/engine"
	"wf/hub/schedule"
	"wf/protocol"
)

// laidOut is a directory with a daemon that is not started, and a clock that is hours ahead.
func laidOut(t *testing.T, ctx context.Context, dir string) (*daemon.Daemon, logLines) {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state")) // as wfIn
	s, err := cas.Open(ctx, filepath.Join(dir, ".wf"), cas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	log := make(logLines, 1000)
	d, err := quietDaemon(s, dir, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	d.Service.Engine.Now = func() time.Time { return time.Now().Add(3 * time.Hour) }
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return d, log
}

// quietDaemon is a daemon of a store, with the workflows of a directory.
func quietDaemon(s *cas.Store, dir string, log *slog.Logger) (*daemon.Daemon, error) {
	a := newApp(os.Stdin, os.Stdout, os.Stderr)
	a.Quiet = true
	return daemon.New(a.Setup, s, daemon.Options{Workflows: []string{dir}, Dir: dir, Log: log})
}

// logLines are the lines of a log, as they come.
type logLines chan string

func (l logLines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

// await returns the next line that has all of some texts.
func (l logLines) await(t *testing.T, ctx context.Context, texts ...string) string {
	t.Helper()
	for {
		select {
		case line := <-l:
			if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
				return line
			}
		case <-ctx.Done():
			t.Fatalf("no line of the log has %q", texts)
		}
	}
}

// awaits waits until a run of a daemon has a status.
func awaits(t *testing.T, ctx context.Context, d *daemon.Daemon, run protocol.RunID, want protocol.RunStatus) {
	t.Helper()
	for {
		since, err := d.Service.Store.Changes(ctx)
		if err != nil {
			t.Fatal(err)
		}
		st, err := d.Service.Engine.State(ctx, run)
		if err != nil {
			t.Fatal(err)
		}
		if st.Status() == want {
			return
		}
		if _, err := d.Service.Store.AwaitChange(ctx, since); err != nil {
			t.Fatalf("run %s is %s, not %s: %v", run, st.Status(), want, err)
		}
	}
}

const tick = "wf: 1\nname: tick\non: {schedule: \"@daily\"}\ndefaults: {timeout: 1m}\nroles: {a: {run: %s}}\n"

// A file that was just cloned, or that an agent wrote, is listed; neither a client nor the clock
// starts it before a person trusts it. The trust is in what it does: not in its path or its comments.
func TestF35ADaemonStartsOnlyWhatWasTrusted(t *testing.T) {
	dir := t.TempDir()
	ctx := t.Context()
	d, log := laidOut(t, ctx, dir)
	d.Supervisor.Start()
	check := func(what string, waits bool) {
		t.Helper()
		list, err := d.Service.Workflows(ctx)
		if err != nil || len(list) != 1 || list[0].Waits != waits || strings.Contains(list[0].Problem, "wf trust ") != waits {
			t.Fatalf("%s: %+v, %v", what, list, err)
		}
		jobs, err := d.Jobs(ctx)
		if err != nil || (len(jobs) == 0) != waits {
			t.Fatalf("%s: the clock starts %v, %v", what, jobs, err)
		}
		_, _, err = d.Service.Start(ctx, api.Start{Workflow: "tick"})
		_, _, fired := d.Fire(ctx, schedule.Firing{Job: schedule.Job{File: list[0].File}, RequestID: what})
		for _, err := range []error{err, fired} {
			if errors.Is(err, protocol.ErrUntrusted) != waits || !waits && err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		}
	}
	write(t, dir, "tick.yaml", fmt.Sprintf(tick, "touch one"))
	check("just cloned", true)
	log.await(t, ctx, "the schedule waits for trust", "wf trust ")
	trustAll(t, dir)
	check("trusted", false)
	write(t, dir, "tick.yaml", "# nothing new\n"+fmt.Sprintf(tick, "'touch one'"))
	check("with a comment", false)
	write(t, dir, "tick.yaml", fmt.Sprintf(tick, "touch two"))
	check("changed", true)
	if out, err := wfIn(dir, "trust", "tick.yaml", "--no-input").CombinedOutput(); exitOf(t, err) != 1 || !strings.Contains(string(out), "touch two") || !strings.Contains(string(out), "-") {
		t.Errorf("the question does not show the change:\n%s", out)
	}
	write(t, dir, "tick.yaml", fmt.Sprintf(tick, "touch one"))
	check("put back", false)
	if out, err := wfIn(dir, "trust", "--revoke", "tick.yaml").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	check("revoked", true)
}

// A daemon leaves the runs of a store that was cloned alone, those that were cut off and the timers
// of those that wait; and goes on with them once they were adopted, while it runs.
func TestADaemonLeavesRunsFromElsewhereAlone(t *testing.T) {
	theirs, mine := t.TempDir(), t.TempDir()
	write(t, theirs, "nap.yaml", "wf: 1\nname: nap\ndefaults: {timeout: 1m}\nroles: {nap: {wait: 2h}, act: {run: touch ran}}\n")
	leaveWaiting(t, theirs, "nap.yaml")
	if err := os.Rename(filepath.Join(theirs, ".wf"), filepath.Join(mine, ".wf")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	d, log := laidOut(t, ctx, mine)
	foreign, err := appOf(d.Service.Store.Dir()).atStore(d.Service.Store).run(ctx, "-1")
	if err != nil {
		t.Fatal(err)
	}
	d.Start()
	log.await(t, ctx, "left alone", string(foreign), "wf store adopt "+string(foreign))

	// A run of its own goes the whole way meanwhile: the daemon is awake, and its clock is ahead.
	write(t, mine, "nap.yaml", "wf: 1\nname: own\nroles: {nap: {wait: 2h}}\n")
	f, err := d.Service.Catalog.Find("own")
	if err != nil {
		t.Fatal(err)
	}
	own, _, err := d.Service.Launch(ctx, f.Definition, nil, engine.Launch{})
	if err != nil {
		t.Fatal(err)
	}
	awaits(t, ctx, d, own, protocol.Done)
	if st, err := d.Service.Engine.State(ctx, foreign); err != nil || st.Status() != protocol.Waiting {
		t.Fatalf("the run from elsewhere is %v, %v", st.Status(), err)
	}
	if err := d.Service.Resume(ctx, foreign, api.Resume{}); protocol.CodeOf(err) != protocol.ErrForeign.Code {
		t.Errorf("it was resumed over HTTP: %v", err)
	}
	if fork, err := d.Service.Fork(ctx, foreign, api.Fork{Step: "nap#1"}); protocol.CodeOf(err) != protocol.ErrForeign.Code {
		t.Errorf("a fork of it goes on over HTTP: %s, %v", fork.ID, err)
	}
	talk, err := chat.Open(ctx, chat.Place{Service: d.Service, Follower: d, Near: d.Service}, foreign)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := talk.Command(ctx, chat.Command{Action: chat.Reset}); protocol.CodeOf(err) != protocol.ErrForeign.Code {
		t.Errorf("/reset begins it anew: %v", err)
	}

	if out, err := wfIn(mine, "store", "adopt", string(foreign), "--yes").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	awaits(t, ctx, d, foreign, protocol.Done)
}

// F-41: the programs of MCP servers run outside of the sandbox, so a daemon does not start an untrusted
// workflow that calls them, also one with a model of this machine.
func TestADaemonStartsNoUntrustedWorkflowThatCallsAServer(t *testing.T) {
	dir := t.TempDir()
	ctx := t.Context()
	d, _ := laidOut(t, ctx, dir)
	d.Supervisor.Start()
	const flow = "wf: 1\nname: calls\nmcp: {t: {url: \"http://127.0.0.1:1\"}}\nlimits: {tokens: 100, duration: 1m}\n" +
		"roles: {a: {prompt: Work., model: script/replies.yaml, tools: [%s], timeout: 1m}}\n"
	for tool, waits := range map[string]bool{"\"mcp:t/*\": auto": true, "read_file": false} {
		write(t, dir, "calls.yaml", fmt.Sprintf(flow, tool))
		list, err := d.Service.Workflows(ctx)
		if err != nil || len(list) != 1 || list[0].Waits != waits {
			t.Errorf("with the tool %s: %+v, %v", tool, list, err)
		}
	}
}

// At a terminal a person sees what a fork of a run from elsewhere runs, and where, and is asked.
func TestAForkOfARunFromElsewhereShowsWhatItRuns(t *testing.T) {
	t.Parallel()
	theirs, mine := t.TempDir(), t.TempDir()
	write(t, theirs, "act.yaml", "wf: 1\nname: act\nroles: {act: {run: touch ran}}\n")
	if out, err := wfIn(theirs, "run", "act.yaml").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ran := filepath.Join(theirs, "ran")
	if err := os.Remove(ran); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(theirs, ".wf"), filepath.Join(mine, ".wf")); err != nil {
		t.Fatal(err)
	}
	for _, answer := range []string{"n", "y"} {
		p := atTerminal(t, mine, "wf", "fork", "-1:act#1", "--run")
		if shown := p.shows("Let the fork run there?"); !strings.Contains(shown, "works in "+theirs) || !strings.Contains(shown, "act: touch ran") {
			t.Errorf("the question lacks what runs, or where:\n%s", shown)
		}
		if _, err := os.Stat(ran); err == nil {
			t.Fatal("it ran before the answer")
		}
		p.press(answer + "\n")
		code := p.ends()
		if _, err := os.Stat(ran); (err == nil) != (answer == "y") || (code == 0) != (answer == "y") {
			t.Errorf("after %q: exit %d, %v\n%s", answer, code, err, p.all())
		}
	}
}

// A daemon says at its start which files wait for trust, and the command that gives it.
func TestADaemonListsWhatWaitsForTrust(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "tick.yaml", fmt.Sprintf(tick, "touch one"))
	write(t, dir, "calm.yaml", "wf: 1\nname: calm\nroles: {a: {set: {n: 1}}}\n")
	said := make(logLines, 1000)
	cmd := wfIn(dir, "serve", "--listen", "unix", "--workflows", dir)
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	line := said.await(t, ctx, "tick waits for trust: wf trust ", "tick.yaml")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // interrupted
	if strings.Contains(line, "calm") {
		t.Errorf("what needs no trust waits for it: %s", line)
	}
}

// The next daemon removes the sockets that killed ones left.
func TestADaemonRemovesTheSocketsOfKilledOnes(t *testing.T) {
	t.Parallel()
	killed := startServe(t, t.TempDir())
	socket := strings.TrimPrefix(killed.said.Listen[0].URL, "unix:")
	killed.kill()
	if _, err := os.Lstat(socket); err != nil {
		t.Fatalf("nothing was left behind: %v", err)
	}
	startServe(t, t.TempDir())
	if _, err := os.Lstat(socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket of the killed one is there still: %v", err)
	}
}
