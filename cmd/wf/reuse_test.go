package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/agentkit/modeltest"
	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/protocol"
)

// M-01: a process that is killed around reused leaves a run that ends in the same records and files, whether the result was
// taken or not.
func TestM01AProcessThatIsKilledAroundReused(t *testing.T) {
	if testing.Short() {
		t.Skip("starts some 20 processes")
	}
	t.Parallel()
	home, dir := t.TempDir(), t.TempDir()
	write(t, dir, "make.yaml", `
wf: 1
name: make
roles:
  make:
    run: mkdir -p out; for i in $(seq 300); do echo "file $i" > out/$i; done; echo made
    timeout: 1m
    cache: true
`)
	wf := func(args ...string) *exec.Cmd {
		cmd := exec.Command("wf", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+home, "XDG_STATE_HOME=", "XDG_DATA_HOME=", "XDG_CACHE_HOME=", "WF_STORE="+filepath.Join(dir, ".wf"))
		return cmd
	}
	record := func() string {
		t.Helper()
		out, err := wf("show", "-1", "-o", "json").Output()
		if err != nil {
			t.Fatal(err)
		}
		var v struct {
			Status string
			Result string
			Steps  []struct{ CID string }
		}
		if err := json.Unmarshal(out, &v); err != nil {
			t.Fatal(err)
		}
		return v.Status + " " + v.Result + " " + v.Steps[0].CID
	}
	if out, err := wf("run", "make.yaml").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := record()
	for point := range 5 {
		if err := os.RemoveAll(filepath.Join(dir, "out")); err != nil {
			t.Fatal(err)
		}
		run := wf("run", "make.yaml", "--request-id", fmt.Sprint(point))
		if err := run.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- run.Wait() }()
		awaitSeq(t, filepath.Join(dir, ".wf"), engine.RequestRun(fmt.Sprint(point)), protocol.Seq(point+1), ended)
		if err := run.Process.Kill(); err != nil && err != os.ErrProcessDone {
			t.Fatal(err)
		}
		<-ended
		out, _ := wf("resume", "-1").CombinedOutput() // it may be done
		if got := record(); got != want {
			t.Errorf("killed behind event %d: %s, want %s\n%s", point+1, got, want, out)
		}
		for i := 1; i <= 300; i++ {
			if b, err := os.ReadFile(filepath.Join(dir, "out", fmt.Sprint(i))); string(b) != fmt.Sprintf("file %d\n", i) {
				t.Fatalf("killed behind event %d: out/%d is %q, %v", point+1, i, b, err)
			}
		}
		if left, err := filepath.Glob(filepath.Join(dir, "out", ".wf-*")); err != nil || len(left) > 0 {
			t.Errorf("killed behind event %d: %v is left, %v", point+1, left, err)
		}
	}
}

// M-01: so does an agent that is killed around reused, with what it wrote.
func TestM01AnAgentThatIsKilledAroundReused(t *testing.T) {
	if testing.Short() {
		t.Skip("starts some 20 processes")
	}
	t.Parallel()
	p := newPlace(t)
	var script strings.Builder
	script.WriteString("writer#1:\n  - tools:\n")
	for i := range 100 {
		fmt.Fprintf(&script, "    - {tool: write_file, args: {path: out/%d, content: file %d}}\n", i, i)
	}
	script.WriteString("  - {text: written}\nwriter#2: [{text: again}]\n")
	flow := t.TempDir()
	write(t, flow, "replies.yaml", script.String())
	write(t, flow, "write.yaml", `
wf: 1
name: write
defaults: {model: script/replies.yaml, timeout: 1m}
limits: {cost_usd: 1}
roles:
  writer: {prompt: Write., tools: [write_file], cache: true}
  note: {set: {n: "${{ steps.writer.visit }}"}}
edges:
  - {from: START, to: writer, prompt: all}
  - {from: writer, to: note}
  - {from: note, to: writer, prompt: once more, limit: 1, on_limit: END}
`)
	run := filepath.Join(flow, "write.yaml")
	p.wf(0, "run", run, "-q")
	var want api.Run
	p.read(&want, "show", "-1")
	for point := range 8 {
		if err := os.RemoveAll(filepath.Join(p.dir, "out")); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("wf", "run", run, "--request-id", fmt.Sprint(point), "-q")
		cmd.Dir, cmd.Env = p.dir, append(os.Environ(), p.env...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		awaitSeq(t, filepath.Join(p.dir, ".wf"), engine.RequestRun(fmt.Sprint(point)), protocol.Seq(point+1), ended)
		if err := cmd.Process.Kill(); err != nil && err != os.ErrProcessDone {
			t.Fatal(err)
		}
		<-ended
		var got api.Run
		if p.read(&got, "show", "-1"); got.Status != protocol.Done {
			p.wf(0, "resume", "-1", "-q")
			p.read(&got, "show", "-1")
		}
		if d := cmp.Diff(concluded(want), concluded(got)); d != "" {
			t.Errorf("killed behind event %d (-whole +killed):\n%s", point+1, d)
		}
		for i := range 100 {
			if b, err := os.ReadFile(filepath.Join(p.dir, "out", fmt.Sprint(i))); string(b) != fmt.Sprintf("file %d", i) {
				t.Fatalf("killed behind event %d: out/%d is %q, %v", point+1, i, b, err)
			}
		}
		p.wf(0, "verify", "-1")
		p.wf(0, "replay", "-1", "--check")
	}
}

// M-01: a model of a real server is not asked again.
func TestM01ALlamaServerIsAskedOnce(t *testing.T) {
	t.Parallel()
	oneAfterAnother(t)
	base := modeltest.Llama(t, "-n", "48")
	to, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: to.Scheme, Host: to.Host})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	p := newPlace(t, "OPENAI_BASE_URL="+front.URL+"/v1")
	write(t, p.dir, "poem.yaml", `
wf: 1
name: poem
defaults: {model: openai/tiny, timeout: 5m}
limits: {tokens: 500000}
roles:
  poet: {prompt: You write one word., cache: true, params: {grammar: 'root ::= [a-z] [a-z] [a-z] [a-z]'}}
  critic: {prompt: You judge one word., cache: true, params: {grammar: 'root ::= [a-z] [a-z] [a-z] [a-z]'}}
edges: [{from: START, to: poet, prompt: Begin.}, {from: poet, to: critic, prompt: "${{ output.text }}"}, {from: critic, to: END}]
`)
	var first, again api.Run
	if err := json.Unmarshal(p.wf(0, "run", "poem.yaml", "-o", "json"), &first); err != nil {
		t.Fatal(err)
	}
	if asked.Swap(0) < 2 {
		t.Fatal("the server was not asked")
	}
	if err := json.Unmarshal(p.wf(0, "run", "poem.yaml", "-o", "json"), &again); err != nil {
		t.Fatal(err)
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the server was asked %d times by the second run: %s", n, p.wf(0, "explain", "-1:poet#1", "--cache"))
	}
	if d := cmp.Diff(concluded(first), concluded(again)); d != "" || again.Reuse == nil || again.Reuse.Performed != 0 {
		t.Errorf("concluded (-first +again), %+v:\n%s", again.Reuse, d)
	}
}

// awaitSeq returns when a run has an event of that number, or its process has ended.
func awaitSeq(t *testing.T, dir string, run protocol.RunID, until protocol.Seq, ended chan error) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		select {
		case exit := <-ended:
			ended <- exit // for the caller
			stop()
		case <-ctx.Done():
		}
	}()
	store, err := cas.Open(t.Context(), dir, cas.Options{MustExist: true, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for {
		changes, err := store.Changes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		head, err := store.Head(t.Context(), protocol.RunHead(run))
		if err != nil {
			t.Fatal(err)
		}
		if head.Seq >= until {
			return
		}
		if _, err := store.AwaitChange(ctx, changes); ctx.Err() != nil {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
