package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"wf/api"
	"wf/cas"
	"wf/cas/castest"
	"wf/engine"
	"wf/protocol"
)

// nested is a workflow whose one step is a run of block.
const nested = `wf: 1
name: nested
roles: {inner: {workflow: block.yaml}}
`

// stood is what a list and a run say of where a run stands.
type stood struct {
	Status protocol.RunStatus
	api.Driving
}

func (s stood) String() string {
	driven := "not known"
	if s.Driven != nil {
		driven = map[bool]string{true: "driven", false: "not driven"}[*s.Driven]
	}
	return strings.TrimSpace(string(s.Status) + " " + driven + " " + string(s.Idle))
}

// stands reads where a run stands from wf ls, wf show and the API of a daemon, which agree.
func (p place) stands(s *served, run protocol.RunID) string {
	p.t.Helper()
	var list, served struct {
		Items []struct {
			ID protocol.RunID
			stood
		}
	}
	var shown, view stood
	p.read(&list, "ls", "--all")
	p.read(&shown, "show", string(run))
	said := []string{shown.String()}
	lists := []*struct {
		Items []struct {
			ID protocol.RunID
			stood
		}
	}{&list}
	if s != nil {
		s.call("GET", "/v1/runs/"+string(run), nil, &view)
		s.call("GET", "/v1/runs?all=true", nil, &served)
		said, lists = append(said, view.String()), append(lists, &served)
	}
	for _, l := range lists {
		for _, r := range l.Items {
			if r.ID == run {
				said = append(said, r.String())
			}
		}
	}
	if len(said) != 2*len(lists) {
		p.t.Errorf("run %s is missing in a list", run)
	}
	for _, x := range said {
		if x != said[0] {
			p.t.Errorf("run %s stands differently in ls, show and the API: %q", run, said)
		}
	}
	return said[0]
}

// begin starts wf in the place; ended is closed when the process is gone.
func (p place) begin(args ...string) (cmd *exec.Cmd, ended chan struct{}) {
	p.t.Helper()
	cmd = exec.Command("wf", args...)
	cmd.Dir, cmd.Env = p.dir, append(os.Environ(), p.env...)
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	ended = make(chan struct{})
	go func() {
		_ = cmd.Wait() // it may be killed
		close(ended)
	}()
	p.t.Cleanup(func() {
		write(p.t, p.dir, "go", "")
		_ = cmd.Process.Kill() // it may be gone
		<-ended
	})
	return cmd, ended
}

// onlyRun is the run that has no parent.
func (p place) onlyRun() protocol.RunID {
	p.t.Helper()
	var list struct{ Items []api.Row }
	if p.read(&list, "ls"); len(list.Items) != 1 {
		p.t.Fatalf("%d runs", len(list.Items))
	}
	return list.Items[0].ID
}

// A run whose process was killed is interrupted on every screen and in JSON, until it is resumed.
// So is the sub-workflow that the process drove with it.
func TestF10AKilledRunIsInterrupted(t *testing.T) {
	t.Parallel()
	for _, workflow := range []string{"block.yaml", "nested.yaml"} {
		t.Run(workflow, func(t *testing.T) {
			p := newPlace(t)
			write(t, p.dir, "block.yaml", block)
			write(t, p.dir, "nested.yaml", nested)
			s := startServe(t, p.dir, "--listen", "unix", "--workflows", t.TempDir(), "--store", filepath.Join(p.dir, ".wf"))
			begun := filepath.Join(p.dir, "begun")
			cmd, ended := p.begin("run", workflow, "-q")
			<-linesIn(t, begun, 1)
			run := p.onlyRun()
			runs := []protocol.RunID{run}
			var v api.Run
			if p.read(&v, "show", string(run)); v.Steps[0].Child != "" {
				runs = append(runs, v.Steps[0].Child)
			}
			stand := func(want string) {
				t.Helper()
				for _, r := range runs {
					if got := p.stands(s, r); got != want {
						t.Errorf("run %s of %s is %q, want %q", r, runs, got, want)
					}
				}
			}
			listed := func(want int) {
				t.Helper()
				for status, want := range map[string]int{"interrupted": want, "running": len(runs)} {
					var here, served api.Page
					p.read(&here, "ls", "--all", "--status", status)
					s.call("GET", "/v1/runs?all=true&status="+status, nil, &served)
					if len(here.Items) != want || len(served.Items) != want {
						t.Errorf("%d runs are %s, and %d to the API, want %d", len(here.Items), status, len(served.Items), want)
					}
				}
			}
			stand("running driven")
			listed(0)
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			<-ended
			stand("running not driven interrupted")
			listed(len(runs))
			for _, screen := range [][]string{{"ls", "--all"}, {}, {"show", string(run)}, {"log", string(run)}} {
				out := string(p.wf(0, screen...))
				if !strings.Contains(out, "interrupted") || strings.Contains(out, "● running") {
					t.Errorf("wf %s:\n%s", strings.Join(screen, " "), out)
				}
			}
			if out := string(p.wf(0, "show", string(runs[len(runs)-1]))); !strings.Contains(out, "wf resume "+string(run)) {
				t.Errorf("nothing tells how to go on:\n%s", out)
			}
			_, ended = p.begin("resume", string(run), "-q")
			<-linesIn(t, begun, 2)
			stand("running driven")
			write(t, p.dir, "go", "")
			<-ended
			stand("done not known")
		})
	}
}

// A reader that leaves ends wf run -o jsonl by SIGPIPE; the run is interrupted.
func TestF10AClosedPipeInterruptsARun(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	write(t, p.dir, "noisy.yaml", "wf: 1\nname: noisy\nroles: {a: {run: echo one, timeout: 1m}, b: {run: echo two, timeout: 1m}}\nedges: [{from: START, to: a}, {from: a, to: b}, {from: b, to: END}]\n")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("wf", "run", "noisy.yaml", "-o", "jsonl")
	cmd.Dir, cmd.Env, cmd.Stdout = p.dir, append(os.Environ(), p.env...), w
	err = cmd.Run()
	if state := cmd.ProcessState; state == nil || state.Sys().(syscall.WaitStatus).Signal() != syscall.SIGPIPE {
		t.Fatalf("the process was not ended by SIGPIPE: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	run := p.onlyRun()
	if got := p.stands(nil, run); !strings.HasPrefix(got, "running not driven") {
		t.Errorf("the run is %q", got)
	}
	p.wf(0, "resume", string(run), "-q")
	if got := p.stands(nil, run); got != "done not known" {
		t.Errorf("then the run is %q", got)
	}
}

// A fork that is left alone has not started, and says how it does; an answer that was only
// recorded waits for a process.
func TestF10AForkHasNotStartedAndAnAnswerWaits(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	write(t, p.dir, "talk.yaml", talk)
	write(t, p.dir, "replies.yaml", talkReplies)
	p.wf(8, "run", "talk.yaml", "-q")
	run := p.onlyRun()
	if got := p.stands(nil, run); got != "waiting not known" {
		t.Errorf("a run that waits is %q", got)
	}
	fork := protocol.RunID(strings.TrimSpace(string(p.wf(0, "fork", string(run)+":writer#1"))))
	if got := p.stands(nil, fork); got != "running not driven not_started" {
		t.Errorf("a fork is %q", got)
	}
	for _, screen := range [][]string{{"ls"}, {"show", string(fork)}} {
		out := string(p.wf(0, screen...))
		if !strings.Contains(out, "not started") || !strings.Contains(out, "wf resume "+string(fork)) {
			t.Errorf("wf %s:\n%s", strings.Join(screen, " "), out)
		}
	}
	p.wf(8, "resume", string(fork), "-q")
	if got := p.stands(nil, fork); got != "waiting not known" {
		t.Errorf("the fork, resumed, is %q", got)
	}
	p.wf(0, "answer", string(run), "--choice", "stop", "--record")
	if got := p.stands(nil, run); got != "running not driven answered" {
		t.Errorf("the run that was answered is %q", got)
	}
	if out := string(p.wf(0, "ls")); !strings.Contains(out, "○ answered") {
		t.Errorf("wf ls:\n%s", out)
	}
}

// A run that was detached has started when the command returns.
func TestF10ADetachedRunHasStarted(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	write(t, p.dir, "block.yaml", block)
	t.Cleanup(func() { p.wf(0, "watch", "-1", "-q") })
	t.Cleanup(func() { write(t, p.dir, "go", "") })
	var v stood
	if p.read(&v, "run", "block.yaml", "--detach"); v.String() != "running driven" {
		t.Errorf("the run is %q", v)
	}
}

// Looks at a run, however many, hinder no process that begins to drive it.
func TestF10LooksHinderNoDriver(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	write(t, p.dir, "fails.yaml", "wf: 1\nname: fails\nroles: {a: {run: exit 1, timeout: 1m}}\n")
	run := engine.RequestRun("r")
	p.wf(1, "run", "fails.yaml", "--request-id", "r", "-q")
	s, err := cas.Open(t.Context(), filepath.Join(p.dir, ".wf"), cas.Options{MustExist: true, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	stop := castest.AskForDriver(t, s, run)
	for range 10 {
		p.wf(1, "resume", string(run), "-q") // run_live has a status of its own
	}
	stop()
}
