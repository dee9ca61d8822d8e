package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"wf/api"
	"wf/cas"
	"wf/protocol"
)

// A served is a daemon that runs as a process of its own, on a socket and on a port.
type served struct {
	t      *testing.T
	dir    string
	cmd    *exec.Cmd
	said   api.Serving
	err    *safeBuffer
	client *http.Client
	store  *cas.Store // to look at the files beside it
}

// safeBuffer may be written by a process and read meanwhile.
type safeBuffer struct {
	mu   sync.Mutex
	b    bytes.Buffer
	more chan struct{} // closed when more was written; nil while nothing waits
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.more != nil {
		close(s.more)
		s.more = nil
	}
	return s.b.Write(p)
}

// awaitText waits until one of some processes has written a text.
func awaitText(t *testing.T, text string, from ...*safeBuffer) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	said := make(chan struct{}, len(from))
	for _, s := range from {
		go func() {
			if s.await(ctx, text) {
				said <- struct{}{}
			}
		}()
	}
	select {
	case <-said:
	case <-ctx.Done():
		t.Fatalf("nothing says %q: %s", text, from)
	}
}

// await waits for a text; false is that ctx ended before.
func (s *safeBuffer) await(ctx context.Context, text string) bool {
	for {
		s.mu.Lock()
		there := strings.Contains(s.b.String(), text)
		if s.more == nil {
			s.more = make(chan struct{})
		}
		more := s.more
		s.mu.Unlock()
		if there {
			return true
		}
		select {
		case <-more:
		case <-ctx.Done():
			return false
		}
	}
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// wfIn is a wf command in a directory with a home and a store of its own.
func wfIn(dir string, args ...string) *exec.Cmd {
	cmd := exec.Command("wf", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "USER=ada", "WF_STORE="+filepath.Join(dir, ".wf"), "XDG_STATE_HOME="+filepath.Join(dir, "state"), "XDG_DATA_HOME=", "XDG_CONFIG_HOME=", "XDG_RUNTIME_DIR=")
	return cmd
}

// startServe starts a daemon and returns when it listens.
func startServe(t *testing.T, dir string, args ...string) *served {
	t.Helper()
	if len(args) == 0 {
		args = []string{"--listen", "unix"}
	}
	trustAll(t, dir)
	return servedBy(t, dir, wfIn(dir, append([]string{"serve", "-o", "json"}, args...)...))
}

// servedBy starts a daemon by its command, of the user of a directory.
func servedBy(t *testing.T, dir string, cmd *exec.Cmd) *served {
	t.Helper()
	s := &served{t: t, dir: dir, cmd: cmd, err: &safeBuffer{}}
	s.cmd.Stderr = s.err
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Fatalf("no line from wf serve: %v, %v\n%s", err, s.cmd.Wait(), s.err)
	}
	if err := json.Unmarshal(line, &s.said); err != nil {
		t.Fatalf("%v in %s", err, line)
	}
	t.Cleanup(func() {
		if s.cmd.ProcessState == nil {
			s.stop()
		}
		if t.Failed() {
			t.Logf("wf serve said:\n%s", s.err)
		}
	})
	socket := strings.TrimPrefix(s.said.Listen[0].URL, "unix:")
	s.client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == "wf:80" {
			network, address = "unix", socket
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}}}
	if s.store, err = cas.Open(t.Context(), filepath.Join(dir, ".wf"), cas.Options{MustExist: true, ReadOnly: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.store.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// ready returns when the daemon takes requests: it listens before it has looked at the runs of its store.
func (s *served) ready() {
	s.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		resp, err := s.client.Get("http://wf/readyz")
		if err != nil {
			s.t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil {
			s.t.Fatal(err)
		}
		if resp.StatusCode == http.StatusOK {
			return
		}
		<-tick.C
	}
}

// trustAll has the user of a directory trust the workflows in it.
func trustAll(t *testing.T, dir string) {
	t.Helper()
	out, err := wfIn(dir, "trust", "--list", "-o", "json").Output()
	if err != nil {
		t.Fatalf("wf trust --list: %v: %s", err, out)
	}
	var list struct{ Items []api.Trusted }
	if err := json.Unmarshal(out, &list); err != nil {
		t.Fatal(err)
	}
	args := []string{"trust", "--yes"}
	for _, x := range list.Items {
		if !x.Trusted {
			args = append(args, x.File)
		}
	}
	if len(args) == 2 {
		return
	}
	if out, err := wfIn(dir, args...).CombinedOutput(); err != nil {
		t.Fatalf("wf %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// stop ends the daemon with SIGTERM and gives its exit status.
func (s *served) stop() int {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	return exitOf(s.t, s.cmd.Wait())
}

// kill ends it as a power cut does.
func (s *served) kill() {
	s.t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		s.t.Fatal(err)
	}
	exitOf(s.t, s.cmd.Wait())
}

func exitOf(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if err == nil {
		return 0
	}
	return exit.ExitCode()
}

// call makes a request over the socket; body and into may be nil.
func (s *served) call(method, path string, body, into any) int {
	s.t.Helper()
	var in io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			s.t.Fatal(err)
		}
		in = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(s.t.Context(), method, "http://wf"+path, in)
	if err != nil {
		s.t.Fatal(err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := s.client.Do(r)
	if err != nil {
		s.t.Fatalf("%s %s: %v\n%s", method, path, err, s.err)
	}
	got, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		s.t.Fatal(err)
	}
	if into != nil {
		if err := json.Unmarshal(got, into); err != nil {
			s.t.Fatalf("%s %s: %d %v in %s", method, path, answer.StatusCode, err, got)
		}
	}
	return answer.StatusCode
}

// started starts a run and gives its id.
func (s *served) started(body map[string]any) protocol.RunID {
	s.t.Helper()
	var x struct {
		ID      protocol.RunID
		Message string
	}
	if status := s.call("POST", "/v1/runs", body, &x); status != http.StatusCreated {
		s.t.Fatalf("start %v: %d %s", body, status, x.Message)
	}
	return x.ID
}

func (s *served) view(run protocol.RunID) *api.Run {
	s.t.Helper()
	var v api.Run
	if status := s.call("GET", "/v1/runs/"+string(run), nil, &v); status != http.StatusOK {
		s.t.Fatalf("run %s: %d", run, status)
	}
	return &v
}

// await follows the store until a run is as it should be.
func (s *served) await(run protocol.RunID, what string, is func(*api.Run) bool) *api.Run {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	for {
		since, err := s.store.Changes(ctx)
		if err != nil {
			s.t.Fatal(err)
		}
		v := s.view(run)
		if is(v) {
			return v
		}
		if _, err := s.store.AwaitChange(ctx, since); err != nil {
			s.t.Fatalf("run %s is %s (%s), not %s: %v", run, v.Status, v.Reason, what, err)
		}
	}
}

func (s *served) awaitStatus(run protocol.RunID, status protocol.RunStatus) *api.Run {
	s.t.Helper()
	return s.await(run, string(status), func(v *api.Run) bool { return v.Status == status })
}

// events are the events of a run as NDJSON, one line each.
func (s *served) events(run protocol.RunID) []string {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), "GET", "http://wf/v1/sessions/"+string(run)+"/events?fromSeq=0", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Accept", "application/x-ndjson")
	answer, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	var out []string
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if !strings.Contains(lines.Text(), `"type":"replay_event"`) {
			break // replay_complete
		}
		out = append(out, lines.Text())
	}
	return out
}

// talk is a workflow of an agent that answers from a file, and a person who has it go on.
const talk = `wf: 1
name: talk
description: They talk.
inputs: {topic: {type: string, default: rain}}
defaults: {model: script/replies.yaml, timeout: 1m}
roles:
  writer: {prompt: You write.}
  gate: {ask: "Go on?", choices: [{label: Once more, value: more, primary: true}, {label: Enough, value: stop}]}
edges:
  - {from: START, to: writer, prompt: "Write of ${{ inputs.topic }}."}
  - {from: writer, to: gate}
  - {from: gate, to: writer, when: output.choice == "more", limit: 3, on_limit: END, prompt: Again.}
  - {from: gate, to: END}
`

const talkReplies = `writer#1: [{text: first, usage: {input: 100, output: 10}, delay: 2ms}]
writer#2: [{text: second, usage: {input: 120, cached: 100, output: 10}}]
writer#3: [{text: third}]
`

// block is a workflow of a command that goes on when a file is there.
const block = `wf: 1
name: block
defaults: {timeout: 1m}
roles:
  wait: {run: 'echo begun >>begun; until [ -e go ]; do sleep 0.02; done; echo "over"'}
`

func talkDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "talk.yaml", talk)
	write(t, dir, "replies.yaml", talkReplies)
	write(t, dir, "block.yaml", block)
	return dir
}

// serveTalk starts a daemon that serves the workflows of a talkDir.
func serveTalk(t *testing.T, more ...string) *served {
	t.Helper()
	dir := talkDir(t)
	return startServe(t, dir, append([]string{"--listen", "unix", "--workflows", dir}, more...)...)
}
