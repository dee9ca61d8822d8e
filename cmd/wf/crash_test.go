package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"wf/agentkit/modeltest"
	"wf/cas"
	"wf/engine"
	"wf/files/filestest"
	"wf/protocol"
)

const crashCalls = 7

const crashYAML = `
wf: 1
name: crash
roles:
  worker:
    prompt: You work.
    model: openai/test
    tools: [{shell: auto}, read_file]
    sandbox: off
    timeout: 1m
  test: {run: 'echo ran >>"tests"', timeout: 1m}
edges:
  - {from: START, to: worker, prompt: Begin.}
  - {from: worker, to: test}
  - {from: test, to: worker, limit: 1, on_limit: END, prompt: Again.}
`

// toolServer answers each request by what it holds: call n+1 after n results, a text after
// crashCalls of them. So it does not matter which process asks.
type toolServer struct {
	mu   sync.Mutex
	seen map[string][]byte // messages by how many they are and by the visit they belong to
	bad  []string
}

func (s *toolServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client was killed
	}
	var req struct {
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	results, users := 0, 0
	for _, m := range req.Messages {
		switch m.Role {
		case "tool":
			results++
		case "user":
			users++
		}
	}
	s.note(fmt.Sprintf("visit %d after %d results", users, results), body)
	answer := modeltest.Text(fmt.Sprintf("Visit %d is over.", users))
	if results < crashCalls {
		n := fmt.Sprintf("%d.%d", users, results+1)
		args, err := json.Marshal(map[string]string{"command": "echo " + n + ` >>"log"; sleep 0.01; echo ` + n})
		if err != nil {
			panic(err)
		}
		call := modeltest.Call{ID: "call_" + n, Name: "shell", Args: string(args)}
		if reads(call.ID) {
			call.Name, call.Args = "read_file", `{"path":"crash.yaml"}`
		}
		answer = modeltest.Calls(call)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range answer.OpenAI() {
		fmt.Fprintf(w, "data: %s\n\n", e)
	}
	fmt.Fprint(w, `data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5}}`+"\n\ndata: [DONE]\n\n")
}

// reads reports whether a call is one that only reads: nobody waits until it is written, so a
// kill may take it and all that came of it. The others act.
func reads(call string) bool { return strings.HasSuffix(call, ".3") || strings.HasSuffix(call, ".6") }

// note compares a request with the first one of its place. One that was told of an unknown
// outcome rightly differs.
func (s *toolServer) note(place string, body []byte) {
	if bytes.Contains(body, []byte("unknown")) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if first, ok := s.seen[place]; ok && !bytes.Equal(first, body) {
		s.bad = append(s.bad, fmt.Sprintf("%s:\n%s\n%s", place, first, body))
	} else if !ok {
		s.seen[place] = body
	}
}

// A process killed at any point of a step loses nothing that was acknowledged, repeats no side
// effect whose result was stored, and sends the same requests again.
func TestW20KilledAtFortyPoints(t *testing.T) {
	if testing.Short() {
		t.Skip("starts some 80 processes")
	}
	t.Parallel()
	server := &toolServer{seen: map[string][]byte{}}
	h := httptest.NewServer(server)
	defer h.Close()
	var records []string
	resumed := 0
	for point := range 41 {
		dir := t.TempDir()
		write(t, dir, "crash.yaml", crashYAML)
		wf := func(args ...string) *exec.Cmd {
			cmd := exec.Command("wf", args...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "OPENAI_BASE_URL="+h.URL+"/v1", "OPENAI_API_KEY=test", "HOME="+dir,
				"XDG_STATE_HOME=", "XDG_DATA_HOME=", "WF_STORE="+filepath.Join(dir, ".wf"))
			return cmd
		}
		if out, err := wf("trust", "crash.yaml", "--yes").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		run := wf("run", "crash.yaml", "--request-id", "r")
		var errOut bytes.Buffer
		run.Stderr = &errOut
		if err := run.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- run.Wait() }()
		store, seen := followUntil(t, filepath.Join(dir, ".wf"), protocol.Seq(point), ended)
		if point > 0 { // point 0 runs undisturbed: the model
			if err := run.Process.Kill(); err != nil && err != os.ErrProcessDone {
				t.Fatal(err)
			}
		}
		if err := <-ended; point == 0 && err != nil {
			t.Fatalf("%v\n%s", err, &errOut)
		}
		if out, err := wf("resume", "-1").CombinedOutput(); err != nil && !strings.Contains(string(out), "done") {
			t.Fatalf("point %d: resume: %v\n%s\n%s", point, err, out, &errOut)
		} else if err == nil {
			resumed++
		}
		got := inspect(t, store, dir, seen, point)
		if point == 0 {
			records = got
		} else if strings.Join(got, " ") != strings.Join(records, " ") {
			t.Errorf("point %d concluded %v, undisturbed %v", point, got, records)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
	if resumed < 20 {
		t.Errorf("only %d runs were killed before they were done", resumed)
	}
	for _, b := range server.bad {
		t.Errorf("a request that was sent again differs: %s", b)
	}
}

func write(t testing.TB, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// followUntil reads along, as any client may, until an event of that number is there or the
// process has ended.
func followUntil(t *testing.T, dir string, until protocol.Seq, ended chan error) (*cas.Store, []protocol.Entry) {
	t.Helper()
	ctx := context.Background()
	over, end := context.WithCancel(ctx)
	defer end()
	go func() {
		select {
		case exit := <-ended:
			ended <- exit // for the caller
			end()
		case <-over.Done():
		}
	}()
	var store *cas.Store
	var closed error // why it cannot be opened
	if err := filestest.Await(over, dir, func() bool {
		store, closed = cas.Open(ctx, dir, cas.Options{MustExist: true, ReadOnly: true})
		return closed == nil
	}); err != nil {
		t.Fatalf("the run ended (%v) before the store could be opened: %v", <-ended, closed)
	}
	var seen []protocol.Entry
	for {
		changes, err := store.Changes(ctx)
		if err != nil {
			t.Fatal(err)
		}
		heads, err := store.Heads(ctx, protocol.RunHead(""))
		if err != nil {
			t.Fatal(err)
		}
		if len(heads) == 1 {
			run := protocol.RunID(strings.TrimPrefix(heads[0].Name, protocol.RunHead("")))
			for x, err := range store.After(ctx, run, protocol.Seq(len(seen))) {
				if err != nil {
					t.Fatal(err)
				}
				seen = append(seen, x)
			}
		}
		if until > 0 && protocol.Seq(len(seen)) >= until {
			return store, seen
		}
		if _, err := store.AwaitChange(over, changes); over.Err() != nil && ctx.Err() == nil {
			return store, seen
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// inspect checks a run that was killed and resumed, and gives its records.
func inspect(t *testing.T, store *cas.Store, dir string, seen []protocol.Entry, point int) []string {
	t.Helper()
	ctx := context.Background()
	heads, err := store.Heads(ctx, protocol.RunHead(""))
	if err != nil || len(heads) != 1 {
		t.Fatalf("point %d: %d heads, %v", point, len(heads), err)
	}
	run := protocol.RunID(strings.TrimPrefix(heads[0].Name, protocol.RunHead("")))
	report, err := cas.Verify(ctx, store, cas.VerifyOptions{Run: run})
	if err != nil || !report.OK {
		t.Errorf("point %d: verify: %v %+v", point, err, report.Findings)
	}
	results := map[string]bool{}
	i := 0
	for x, err := range store.After(ctx, run, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if i < len(seen) && seen[i].CID != x.CID {
			t.Errorf("point %d: event %d was seen and is another now", point, x.Seq)
		}
		i++
		if x.Type == protocol.EvToolResult {
			d, err := cas.DecodeData[protocol.ToolResult](&x.Event)
			if err != nil {
				t.Fatal(err)
			}
			if !d.IsError && !reads(d.Call) {
				results[strings.TrimPrefix(d.Call, "call_")] = true
			}
		}
	}
	if i < len(seen) {
		t.Errorf("point %d: %d events were seen, %d are left", point, len(seen), i)
	}
	log, err := os.ReadFile(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	times := map[string]int{}
	for _, line := range strings.Fields(string(log)) {
		times[line]++
	}
	for call, n := range times {
		if n > 1 {
			t.Errorf("point %d: call %s ran %d times", point, call, n)
		}
	}
	for call := range results {
		if times[call] != 1 {
			t.Errorf("point %d: call %s has a result and ran %d times", point, call, times[call])
		}
	}
	v, err := (&engine.Engine{Store: store}).View(ctx, run)
	if err != nil {
		t.Fatal(err)
	}
	var records []string
	for _, s := range v.Steps {
		if s.CID != nil {
			records = append(records, s.ID+" "+*s.CID)
		}
	}
	return append(records, string(v.Status), *v.Result)
}
