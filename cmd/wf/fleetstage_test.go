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
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"wf/agentkit/modeltest"
	"wf/api"
	"wf/protocol"
)

// What each run of a fleet is: an agent with a tool, a fan-out of commands, a question, a sub-workflow, a command. Each command says in a
// file when it begins.
const (
	fleetYAML = `
wf: 1
name: fleet
inputs: {topic: {type: string, required: true}}
workspace: {track: false}
roles:
  plan: {prompt: You plan., model: openai/test, tools: [read_file]}
  list: {set: {items: [a, b, c]}}
  build: {run: 'echo "$TOPIC build#1[$I] $(date +%s%N)" >> acts; sleep 0.3; echo "$ITEM"', env: {TOPIC: "${{ inputs.topic }}", ITEM: "${{ item }}", I: "${{ index }}"}}
  asks: {ask: "Go on with ${{ inputs.topic }}?", choices: [yes, no]}
  part: {workflow: part.yaml, with: {topic: "${{ inputs.topic }}"}}
  last: {run: 'echo "$TOPIC last#1 $(date +%s%N)" >> acts; sleep 0.3; echo last', env: {TOPIC: "${{ inputs.topic }}"}}
edges:
  - {from: START, to: plan, prompt: "Plan ${{ inputs.topic }}."}
  - {from: plan, to: list}
  - {from: list, to: build, for_each: output.items}
  - {from: build, to: asks}
  - {from: asks, to: part}
  - {from: part, to: last}
  - {from: last, to: END}
`
	fleetPartYAML = `
wf: 1
name: part
inputs: {topic: {type: string, required: true}}
roles:
  think: {prompt: You think., model: openai/test, tools: [read_file]}
edges:
  - {from: START, to: think, prompt: "Think of ${{ inputs.topic }}."}
  - {from: think, to: END}
`
	fleetCalls = 4 // of models for each run
)

// fleet is some workers of one store, with the model that they ask.
type fleet struct {
	t       *testing.T
	dir     string
	store   string
	models  *modeltest.Server
	workers []*fleetWorker
	life    context.Context // of what is waited for
	end     context.CancelFunc

	mu    sync.Mutex
	asked map[string][]time.Time // requests by topic, role, and how many results they hold
	calls int
}

type fleetWorker struct {
	*process
	said api.Serving
}

var startedBefore = regexp.MustCompile(`was started before, as run (\w+)`)

var fleetTopic = regexp.MustCompile(`topic-\d+`)

// newFleet is a fleet without workers in a directory of its own; its store is one of that directory.
func newFleet(t *testing.T) *fleet {
	f := &fleet{t: t, dir: t.TempDir(), asked: map[string][]time.Time{}}
	f.store = filepath.Join(f.dir, ".wf")
	for name, text := range map[string]string{"fleet.yaml": fleetYAML, "part.yaml": fleetPartYAML, "notes.txt": "hello\n"} {
		write(t, f.dir, name, text)
	}
	f.life, f.end = context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(f.end)
	f.models = modeltest.Serve(t, f.answer)
	trustAll(t, f.dir)
	return f
}

// answer has the model read a file, and then say something about the topic.
func (f *fleet) answer(r modeltest.Request) modeltest.Answer {
	role := "plan"
	if strings.Contains(string(r.Body), "You think.") {
		role = "think"
	}
	topic, results := fleetTopic.FindString(string(r.Body)), strings.Count(string(r.Body), `"role":"tool"`)
	f.mu.Lock()
	place := fmt.Sprint(topic, " ", role, " ", results)
	f.asked[place] = append(f.asked[place], time.Now())
	f.calls++
	f.mu.Unlock()
	a := modeltest.Text("About " + topic + ".")
	if results == 0 {
		a = modeltest.Calls(modeltest.Call{ID: "call_1", Name: "read_file", Args: `{"path":"notes.txt"}`})
	}
	a.Before = func() { <-time.After(300 * time.Millisecond) } // a kill meets most runs in the middle of something
	return a
}

// known is how many requests were made.
func (f *fleet) known() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// command is wf at the store of the fleet.
func (f *fleet) command(args ...string) *exec.Cmd {
	cmd := wfIn(f.dir, append(args, "--store", f.store)...)
	cmd.Env = append(cmd.Env, "OPENAI_BASE_URL="+f.models.URL, "OPENAI_API_KEY=test")
	return cmd
}

// wf performs a command that must succeed.
func (f *fleet) wf(args ...string) []byte {
	f.t.Helper()
	out, err := f.command(args...).Output()
	if err != nil {
		f.t.Fatalf("wf %s: %v\n%s\n%s", args, err, out, stderrOf(err))
	}
	return out
}

func stderrOf(err error) []byte {
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		return e.Stderr
	}
	return nil
}

// until waits for what no event tells of; the test ends where it does not come.
func (f *fleet) until(is func() bool) {
	f.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-f.life.Done():
			f.t.Fatalf("nothing goes on any more: the runs are %v", f.list())
		case <-tick.C:
		}
	}
}

// serve starts another worker.
func (f *fleet) serve() *fleetWorker {
	f.t.Helper()
	w := &fleetWorker{process: startCommand(f.t, f.command("serve", "--listen", "127.0.0.1:0", "-o", "json"))}
	if err := json.Unmarshal(w.line, &w.said); err != nil {
		f.t.Fatal(err)
	}
	return w
}

// at performs a command at one of the workers. A worker that is gone is waited for by wf, here not for long.
func (f *fleet) at(try int, args ...string) ([]byte, error) {
	f.mu.Lock()
	w := f.workers[try%len(f.workers)]
	f.mu.Unlock()
	patience, over := context.WithTimeout(f.life, 5*time.Second)
	defer over()
	return ending(patience, wfIn(f.dir, append(args, "--hub", w.said.Listen[0].URL, "--hub-token-file", w.said.TokenFile)...))
}

// ending performs a command, and ends it with a context.
func ending(ctx context.Context, cmd *exec.Cmd) ([]byte, error) {
	same := exec.CommandContext(ctx, cmd.Path, cmd.Args[1:]...)
	same.Dir, same.Env = cmd.Dir, cmd.Env
	return same.Output()
}

// begin begins a run; a second try with its request id begins no other one, and shows that, wherever it is by then.
func (f *fleet) begin(topic string) protocol.RunID {
	for try := 0; f.life.Err() == nil; try++ {
		out, err := f.at(try, "run", "fleet.yaml", "-i", "topic="+topic, "--request-id", topic, "--detach", "-o", "json")
		var run struct{ ID protocol.RunID }
		if json.Unmarshal(out, &run) == nil && run.ID != "" {
			return run.ID
		}
		if err == nil {
			f.t.Errorf("the run of %s is shown as %s", topic, out)
			return ""
		}
		if was := startedBefore.FindSubmatch(stderrOf(err)); was != nil {
			return protocol.RunID(was[1])
		}
	}
	f.t.Errorf("the run of %s does not begin", topic)
	return ""
}

// follow follows a run, and gives its events when it has ended.
func (f *fleet) follow(run protocol.RunID) <-chan string {
	out := make(chan string, 1)
	cmd := f.command("log", string(run), "-f", "--events", "-o", "jsonl")
	go func() {
		b, err := ending(f.life, cmd)
		if err != nil {
			f.t.Errorf("%s: %v\n%s", cmd, err, stderrOf(err))
		}
		out <- string(b)
	}()
	return out
}

// listed is a line of wf ls.
type listed struct {
	ID        protocol.RunID     `json:"id"`
	Status    protocol.RunStatus `json:"status"`
	Reason    string             `json:"reason"`
	Head      string             `json:"head"`
	Parent    string             `json:"parent"` // RUN:STEP of which it is a sub-workflow
	RequestID string             `json:"request_id"`
}

// list are all runs; nil where the store does not answer.
func (f *fleet) list() []listed {
	out, err := f.command("ls", "--all", "--limit", "0", "-o", "json").Output()
	var l struct{ Items []listed }
	if err != nil || json.Unmarshal(out, &l) != nil {
		return nil
	}
	return l.Items
}

// topicOf is that of a run, or of the run that it is a part of.
func (f *fleet) topicOf(r listed) string {
	f.t.Helper()
	if r.Parent == "" {
		return r.RequestID
	}
	return fleetTopic.FindString(string(f.wf("show", string(r.ID), "-o", "json")))
}

// settle answers what is asked until so many runs are done, and gives the runs that took an answer.
func (f *fleet) settle(n int) (answered map[protocol.RunID]bool) {
	answered = map[protocol.RunID]bool{}
	var mu sync.Mutex
	free := make(chan struct{}, 8)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for try := 0; f.life.Err() == nil; try++ {
		done := 0
		var answering sync.WaitGroup
		for i, r := range f.list() {
			switch {
			case r.Parent != "":
			case r.Status == protocol.Done:
				done++
			case r.Status == protocol.Waiting:
				answering.Go(func() {
					free <- struct{}{}
					defer func() { <-free }()
					if _, err := f.at(try+i, "answer", string(r.ID)+":asks#1", "--choice", "yes", "--record"); err == nil { // else it was answered, or the worker or the database is away
						mu.Lock()
						answered[r.ID] = true
						mu.Unlock()
					}
				})
			case r.Status.Final(), r.Status == protocol.Suspended:
				f.t.Errorf("run %s is %s (%s)", r.ID, r.Status, r.Reason)
				f.end()
			}
		}
		if answering.Wait(); done == n {
			return answered
		}
		<-tick.C
	}
	f.t.Errorf("the runs do not end: %v", f.list())
	return answered
}

// records are the CIDs of the steps of all runs, by topic and step.
func (f *fleet) records() map[string]string {
	f.t.Helper()
	out := map[string]string{}
	for _, r := range f.list() {
		var v struct {
			Steps []struct {
				ID  string `json:"id"`
				CID string `json:"cid"`
			} `json:"steps"`
		}
		if err := json.Unmarshal(f.wf("show", string(r.ID), "-o", "json"), &v); err != nil {
			f.t.Fatal(err)
		}
		for _, s := range v.Steps {
			out[f.topicOf(r)+" "+s.ID] = s.CID
		}
	}
	return out
}

// event is a line of wf log -o jsonl.
type event struct {
	TS   time.Time          `json:"ts"`
	Type protocol.EventType `json:"type"`
	Step string             `json:"step"`
}

func (f *fleet) events(run protocol.RunID) (out []event) {
	f.t.Helper()
	for line := range strings.Lines(string(f.wf("log", string(run), "-o", "jsonl"))) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			f.t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

// acts are the times at which commands began, by topic and step.
func (f *fleet) acts() map[string][]time.Time {
	f.t.Helper()
	b, err := os.ReadFile(filepath.Join(f.dir, "acts"))
	if err != nil {
		f.t.Fatal(err)
	}
	out := map[string][]time.Time{}
	for line := range strings.Lines(string(b)) {
		words := strings.Fields(line)
		ns, err := strconv.ParseInt(words[len(words)-1], 10, 64)
		if err != nil || len(words) != 3 {
			f.t.Fatalf("acts has the line %q", line)
		}
		key := words[0] + " " + words[1]
		out[key] = append(out[key], time.Unix(0, ns))
	}
	return out
}
