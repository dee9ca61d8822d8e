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

	"wf/cas"
	"wf/engine"
	"wf/protocol"
)

// A served is a daemon that runs as a process of its own, on a socket and on a port.
type served struct {
	t      *testing.T
	dir    string
	cmd    *exec.Cmd
	said   servingJSON
	err    *safeBuffer
	client *http.Client
	store  *cas.Store // to look at the files beside it
}

// safeBuffer may be written by a process and read meanwhile.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
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
	cmd.Env = append(os.Environ(), "HOME="+dir, "USER=ada", "WF_STORE="+filepath.Join(dir, ".wf"), "XDG_STATE_HOME=", "XDG_DATA_HOME=", "XDG_CONFIG_HOME=", "XDG_RUNTIME_DIR=")
	return cmd
}

// startServe starts a daemon and returns when it listens.
func startServe(t *testing.T, dir string, args ...string) *served {
	t.Helper()
	if len(args) == 0 {
		args = []string{"--listen", "unix"}
	}
	s := &served{t: t, dir: dir, cmd: wfIn(dir, append([]string{"serve", "-o", "json"}, args...)...), err: &safeBuffer{}}
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

func (s *served) view(run protocol.RunID) *engine.View {
	s.t.Helper()
	var v engine.View
	if status := s.call("GET", "/v1/runs/"+string(run), nil, &v); status != http.StatusOK {
		s.t.Fatalf("run %s: %d", run, status)
	}
	return &v
}

// await follows the store until a run is as it should be.
func (s *served) await(run protocol.RunID, what string, is func(*engine.View) bool) *engine.View {
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

func (s *served) awaitStatus(run protocol.RunID, status protocol.RunStatus) *engine.View {
	s.t.Helper()
	return s.await(run, string(status), func(v *engine.View) bool { return v.Status == status })
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

// project is talkDir whose store is there and whose workflows are served by default.
func serveTalk(t *testing.T, more ...string) *served {
	t.Helper()
	dir := talkDir(t)
	return startServe(t, dir, append([]string{"--listen", "unix", "--workflows", dir}, more...)...)
}

func TestK12AJobKeepsItsFieldsAndStartsOnce(t *testing.T) {
	s := serveTalk(t)
	job := map[string]any{"workflow": "talk", "inputs": map[string]any{"topic": "snow"}, "title": "A title", "description": "What for",
		"type": "general", "scope": "tools", "tags": []string{"a", "b"}, "created_by": "claude", "target_user": "bob", "request_id": "ef2903d1"}
	run := s.started(job)
	var again struct {
		ID    protocol.RunID
		Fresh bool
	}
	for range 3 {
		if status := s.call("POST", "/v1/runs", job, &again); status != http.StatusOK || again.ID != run || again.Fresh {
			t.Errorf("the same request id: %d %+v, want run %s", status, again, run)
		}
	}
	v := s.awaitStatus(run, protocol.Waiting)
	got, err := json.Marshal(v.Info)
	if err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]string{"title": `"A title"`, "description": `"What for"`, "type": `"general"`, "scope": `"tools"`,
		"tags": `["a","b"]`, "created_by": `"claude"`, "target_user": `"bob"`, "request_id": `"ef2903d1"`, "inputs": `{"topic":"snow"}`} {
		if !strings.Contains(string(got), `"`+field+`":`+want) {
			t.Errorf("%s is not %s in %s", field, want, got)
		}
	}
	var list struct{ Items []runRow }
	if s.call("GET", "/v1/runs?all=true", nil, &list); len(list.Items) != 1 {
		t.Errorf("%d runs", len(list.Items))
	}
	if w := v.Waiting; len(w) != 1 || w[0].Step != "gate#1" || len(w[0].Choices) != 2 || w[0].Choices[0] != (protocol.Choice{Label: "Once more", Value: "more", Primary: true}) {
		t.Errorf("waiting %+v", w)
	}
	var problem struct{ Code, Message string }
	if status := s.call("POST", "/v1/runs/"+string(run)+"/answer", map[string]any{"choice": "maybe"}, &problem); status != http.StatusBadRequest || !strings.Contains(problem.Message, "more, stop") {
		t.Errorf("a choice that is not offered: %d %+v", status, problem)
	}
	if status := s.call("POST", "/v1/runs/"+string(run)+"/answer", map[string]any{"choice": "more"}, nil); status != http.StatusOK {
		t.Errorf("answer: %d", status)
	}
	v = s.await(run, "at gate#2", func(v *engine.View) bool { return len(v.Waiting) == 1 && v.Waiting[0].Step == "gate#2" })
	if x := v.Timing; x.TTFEMS+x.ThinkingMS+x.ToolsMS != x.TotalMS || x.TotalMS <= 0 || x.TTFEPct+x.ThinkingPct+x.ToolsPct != 100 {
		t.Errorf("timing %+v", x)
	}
	if status := s.call("POST", "/v1/runs/"+string(run)+"/answer", map[string]any{"step": "gate#2", "choice": "Enough"}, nil); status != http.StatusOK {
		t.Errorf("answer by label: %d", status)
	}
	s.awaitStatus(run, protocol.Done)
	if status := s.call("POST", "/v1/runs/"+string(run)+"/answer", map[string]any{"choice": "more"}, nil); status != http.StatusConflict {
		t.Errorf("answer to a run that is done: %d", status)
	}
}

func TestB10MessagesOfOtherSourcesWaitForTheNextVisit(t *testing.T) {
	s := serveTalk(t)
	run := s.started(map[string]any{"workflow": "talk"})
	s.awaitStatus(run, protocol.Waiting)
	for _, m := range []struct{ source, text string }{{"mail", "the roof leaks"}, {"sensor 7", "12 mm"}} {
		if status := s.call("POST", "/v1/runs/"+string(run)+"/messages", map[string]any{"source": m.source, "text": m.text}, nil); status != http.StatusOK {
			t.Errorf("message: %d", status)
		}
	}
	for _, body := range []map[string]any{{"source": "", "text": "x"}, {"source": "x", "text": ""}, {"source": strings.Repeat("x", 65), "text": "x"}, {"source": "x", "text": "y", "z": 1}} {
		if status := s.call("POST", "/v1/runs/"+string(run)+"/messages", body, nil); status != http.StatusBadRequest {
			t.Errorf("%v: %d", body, status)
		}
	}
	if v := s.view(run); v.Status != protocol.Waiting {
		t.Errorf("a message took the place of a choice: %s", v.Status)
	}
	s.call("POST", "/v1/runs/"+string(run)+"/answer", map[string]any{"choice": "more"}, nil)
	s.await(run, "at gate#2", func(v *engine.View) bool { return len(v.Waiting) == 1 && v.Waiting[0].Step == "gate#2" })
	var sent struct {
		Messages     []protocol.Message
		SharedPrefix int `json:"shared_prefix"`
		Resumes      *string
	}
	s.call("GET", "/v1/runs/"+string(run)+"/steps/writer%232/messages", nil, &sent)
	last := sent.Messages[len(sent.Messages)-1].Content
	first, second := strings.Index(last, "[message from mail]\nthe roof leaks"), strings.Index(last, "[message from sensor 7]\n12 mm")
	if first < 0 || second < first {
		t.Errorf("the next visit was sent %q", last)
	}
	if sent.SharedPrefix != 2 || sent.Resumes == nil || *sent.Resumes != "writer#1" {
		t.Errorf("shared prefix %d of %v", sent.SharedPrefix, sent.Resumes)
	}
}

func TestB11ServeRefusesToListenBeyondThisMachine(t *testing.T) {
	dir := t.TempDir()
	for _, listen := range []string{"0.0.0.0:0", ":0", "[::]:0", "wf.example.org:0"} {
		out, err := wfIn(dir, "serve", "--listen", listen).CombinedOutput()
		if exitOf(t, err) != 2 || !strings.Contains(string(out), "TLS and a token") {
			t.Errorf("--listen %s: %v\n%s", listen, err, out)
		}
	}
}

// A daemon that is killed loses nothing that anyone has seen. Started again it goes on with what
// ran, is as it was where it waited, and leaves alone what a person suspended.
func TestK08KilledAndStartedAgain(t *testing.T) {
	s := serveTalk(t)
	args := s.cmd.Args[4:]
	waits := s.started(map[string]any{"workflow": "talk"})
	before := s.awaitStatus(waits, protocol.Waiting)
	held := s.started(map[string]any{"workflow": "block", "title": "held"})
	s.await(held, "begun", func(v *engine.View) bool { return len(v.Steps) == 1 })
	if status := s.call("POST", "/v1/runs/"+string(held)+"/suspend", nil, nil); status != http.StatusOK {
		t.Fatalf("suspend: %d", status)
	}
	if status := s.call("POST", "/v1/runs/"+string(held)+"/resume", nil, nil); status != http.StatusOK {
		t.Fatalf("resume right after: %d", status)
	}
	s.awaitStatus(held, protocol.Running)
	if status := s.call("POST", "/v1/runs/"+string(held)+"/resume", nil, nil); status != http.StatusConflict {
		t.Fatalf("resume of what runs: %d", status)
	}
	if status := s.call("POST", "/v1/runs/"+string(held)+"/suspend", nil, nil); status != http.StatusOK {
		t.Fatalf("suspend again: %d", status)
	}
	s.awaitStatus(held, protocol.Suspended)
	runs := s.started(map[string]any{"workflow": "block", "request_id": "once"})
	s.await(runs, "begun", func(v *engine.View) bool { return len(v.Steps) == 1 })
	seen := s.events(runs)
	socket := strings.TrimPrefix(s.said.Listen[0].URL, "unix:")
	s.kill()
	if _, err := os.Lstat(socket); err != nil {
		t.Errorf("the socket of a killed daemon: %v", err)
	}

	s = startServe(t, s.dir, args...)
	if v := s.view(waits); v.Head != before.Head || v.Status != protocol.Waiting {
		t.Errorf("the run that waited was at %s, is at %s, %s", before.Head, v.Head, v.Status)
	}
	var again struct {
		ID    protocol.RunID
		Fresh bool
	}
	if s.call("POST", "/v1/runs", map[string]any{"workflow": "block", "request_id": "once"}, &again); again.ID != runs || again.Fresh {
		t.Errorf("the request id that was used started %+v", again)
	}
	s.await(runs, "gone on with", func(v *engine.View) bool { return v.Seq > protocol.Seq(len(seen)) })
	write(t, s.dir, "go", "")
	v := s.awaitStatus(runs, protocol.Done)
	if v.Steps[0].Text != "over" {
		t.Errorf("concluded %q", v.Steps[0].Text)
	}
	now := s.events(runs)
	for i, e := range seen {
		if now[i] != e {
			t.Errorf("event %d was\n%s\nand is\n%s", i+1, e, now[i])
		}
	}
	if v := s.view(held); v.Status != protocol.Suspended {
		t.Errorf("what a person suspended is %s", v.Status)
	}
	s.call("POST", "/v1/runs/"+string(waits)+"/answer", map[string]any{"choice": "stop"}, nil)
	s.awaitStatus(waits, protocol.Done)
	var report cas.Report
	if s.call("GET", "/v1/runs/"+string(runs)+"/verify", nil, &report); !report.OK {
		t.Errorf("verify: %+v", report)
	}
}

func TestADaemonThatIsStoppedGoesOnWhenItIsStartedAgain(t *testing.T) {
	s := serveTalk(t)
	args := s.cmd.Args[4:]
	run := s.started(map[string]any{"workflow": "block"})
	s.await(run, "begun", func(v *engine.View) bool { return len(v.Steps) == 1 })
	if status := s.stop(); status != 143 {
		t.Errorf("exit %d", status)
	}
	var shown engine.View
	out, err := wfIn(s.dir, "show", "-1", "-o", "json").Output()
	if err := errors.Join(err, json.Unmarshal(out, &shown)); err != nil {
		t.Fatal(err)
	}
	if shown.Status != protocol.Suspended || shown.Code != errServeStopped.Code {
		t.Errorf("stopped it is %s %s", shown.Status, shown.Code)
	}
	s = startServe(t, s.dir, args...)
	write(t, s.dir, "go", "")
	s.awaitStatus(run, protocol.Done)
}

// beside a daemon that drives a run the other commands answer as ever.
func TestX01CommandsBesideADaemon(t *testing.T) {
	s := serveTalk(t)
	run := string(s.started(map[string]any{"workflow": "block"}))
	s.await(protocol.RunID(run), "begun", func(v *engine.View) bool { return len(v.Steps) == 1 })
	for _, args := range [][]string{{"ls"}, {"show", run}, {"replay", run}, {"cost", run}, {"log", run}, {"verify", run}, {"run", "talk.yaml"}} {
		begun := time.Now()
		out, err := wfIn(s.dir, append(args, "-o", "json")...).CombinedOutput()
		if status := exitOf(t, err); status != 0 && status != 8 || strings.Contains(string(out), "locked") {
			t.Errorf("wf %s: exit %d\n%s", strings.Join(args, " "), status, out)
		}
		t.Logf("wf %s: %s", args[0], time.Since(begun).Round(time.Millisecond))
	}
	out, err := wfIn(s.dir, "resume", run).CombinedOutput()
	if status := exitOf(t, err); status != 5 || !strings.Contains(string(out), "driven by process") {
		t.Errorf("driving it twice: exit %d\n%s", status, out)
	}
	// The run that wf run left waiting is answered through the daemon, which goes on with it; an
	// answer of the command line to a run of the daemon reaches it too.
	var list struct{ Items []runRow }
	if s.call("GET", "/v1/runs?status=waiting", nil, &list); len(list.Items) != 1 {
		t.Fatalf("%d runs wait", len(list.Items))
	}
	other := list.Items[0].ID
	s.call("POST", "/v1/runs/"+string(other)+"/answer", map[string]any{"choice": "more"}, nil)
	s.await(other, "at gate#2", func(v *engine.View) bool { return len(v.Waiting) == 1 && v.Waiting[0].Step == "gate#2" })
	if out, err := wfIn(s.dir, "answer", string(other), "--choice", "stop", "--record").CombinedOutput(); err != nil && exitOf(t, err) == 2 {
		t.Errorf("%v\n%s", err, out)
	}
	s.awaitStatus(other, protocol.Done)
	if status := s.call("POST", "/v1/runs/"+run+"/cancel", map[string]any{"reason": "enough"}, nil); status != http.StatusOK {
		t.Errorf("cancel: %d", status)
	}
	s.awaitStatus(protocol.RunID(run), protocol.Cancelled)
}
