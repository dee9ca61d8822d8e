package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"wf/api"
	"wf/daemon"
	"wf/hub/client"
	"wf/hub/queue"
	"wf/protocol"
)

// Two hubs share a database and serve two workers.
type twoHubs struct {
	t     *testing.T
	root  string
	dsn   string
	begun string // a file to which each run adds its topic

	hubs    [2]*process
	said    [2]api.HubServing
	clients [2]*client.API
}

const notesYAML = `
wf: 1
name: notes
inputs: {topic: {type: string, required: true}, file: {type: string, required: true}}
roles:
  note: {run: 'echo "$TOPIC" >> "$FILE"', env: {TOPIC: "${{ inputs.topic }}", FILE: "${{ inputs.file }}"}}
`

func newTwoHubs(t *testing.T) *twoHubs {
	h := &twoHubs{t: t, root: t.TempDir(), dsn: database(t)}
	h.begun = filepath.Join(h.root, "begun")
	write(t, h.root, "begun", "")
	for i := range h.hubs {
		h.mkdir(h.name(i))
		h.serve(i)
	}
	for _, name := range []string{"ada", "bob"} {
		h.mkdir(name)
		write(t, filepath.Join(h.root, name), "notes.yaml", notesYAML)
		trustAll(t, filepath.Join(h.root, name))
		h.work(name)
	}
	return h
}

func (h *twoHubs) mkdir(name string) {
	h.t.Helper()
	if err := os.Mkdir(filepath.Join(h.root, name), 0o700); err != nil {
		h.t.Fatal(err)
	}
}

func (h *twoHubs) name(i int) string { return []string{"left", "right"}[i] }

// serve starts a hub, the second one with the tokens of the first.
func (h *twoHubs) serve(i int) {
	h.t.Helper()
	state, address := filepath.Join(h.root, h.name(i), "files"), "127.0.0.1:0"
	if h.said[i].PID != 0 { // as before
		address = strings.TrimPrefix(h.said[i].Listen[0].URL, "http://")
	} else if i > 0 {
		h.mkdir(filepath.Join(h.name(i), "files"))
		for _, from := range []string{h.said[0].TokenFile, h.said[0].AgentToken} {
			b, err := os.ReadFile(from)
			if err == nil {
				err = os.WriteFile(filepath.Join(state, filepath.Base(from)), b, 0o600)
			}
			if err != nil {
				h.t.Fatal(err)
			}
		}
	}
	h.hubs[i] = startProcess(h.t, filepath.Join(h.root, h.name(i)), "hub", "--listen", address, "--data", h.dsn, "--state", state)
	if err := json.Unmarshal(h.hubs[i].line, &h.said[i]); err != nil {
		h.t.Fatal(err)
	}
	token, err := daemon.ReadToken(h.said[0].TokenFile)
	if err == nil && h.clients[i] == nil {
		h.clients[i], err = client.New(h.said[i].Listen[0].URL, client.Options{Token: token})
		h.t.Cleanup(h.clients[i].Close)
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// work starts a worker that is connected to both hubs.
func (h *twoHubs) work(name string) *process {
	h.t.Helper()
	return startProcess(h.t, filepath.Join(h.root, name), "serve", "--name", name, "--listen", "unix",
		"--hub", h.said[0].Listen[0].URL, "--hub", h.said[1].Listen[0].URL, "--hub-token-file", h.said[0].AgentToken)
}

// until waits for what comes; beyond five minutes it never does.
func (h *twoHubs) until(what string, is func() bool) {
	h.t.Helper()
	(&shared{t: h.t}).until(what, is)
}

// workers are those that a hub knows and that are connected to any.
func (h *twoHubs) workers(i int) (live []queue.Worker) {
	h.t.Helper()
	raw, err := h.clients[i].Agents(h.t.Context())
	var list struct{ Items []queue.Worker }
	if err == nil {
		err = json.Unmarshal(raw, &list)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	for _, w := range list.Items {
		if w.Live {
			live = append(live, w)
		}
	}
	return live
}

// jobs are those that wait or were given up, as a hub lists them.
func (h *twoHubs) jobs(i int) []queue.Entry {
	h.t.Helper()
	list, err := jobsOf(h.t.Context(), h.clients[i])
	if err != nil {
		h.t.Fatal(err)
	}
	return list
}

// submit submits a job at one hub, and where that is gone at the other.
func (h *twoHubs) submit(i int, topic string) (protocol.RunID, error) {
	both := client.Several([]*client.API{h.clients[i], h.clients[1-i]})
	run, _, err := both.Submit(h.t.Context(), &api.Start{Workflow: "notes", RequestID: "job-" + topic, Inputs: map[string]json.RawMessage{"topic": quoted(topic), "file": quoted(h.begun)}}, nil)
	return run, err
}

func quoted(s string) json.RawMessage {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string
	}
	return b
}

// topics are those of the runs that have begun, in their order.
func (h *twoHubs) topics() []string {
	h.t.Helper()
	b, err := os.ReadFile(h.begun)
	if err != nil {
		h.t.Fatal(err)
	}
	return strings.Fields(string(b))
}

// D-08: 50 jobs are submitted to two hubs that share a database, and one of them is killed in the middle. Each job begins once, and the
// other hub shows all that there is. Then the other one is killed, and the first one, started again, goes on with what it has never heard.
func TestTwoHubsServeOneFleet(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts two hubs and two workers, and waits for a lease")
	}
	h := newTwoHubs(t)
	for i := range h.hubs {
		h.until("both workers are connected", func() bool { return len(h.workers(i)) == 2 })
	}
	runs := h.all(t, 0, 50, func() { h.hubs[0].kill() })
	h.check(runs, 1)
	h.serve(0)
	h.hubs[1].kill()
	more := h.all(t, 50, 60, func() {})
	for topic, run := range more {
		runs[topic] = run
	}
	h.check(runs, 0)
	out, err := wfIn(h.root, "run", "notes", "-i", "topic=last", "-i", "file="+h.begun, "--hub", h.said[1].Listen[0].URL+","+h.said[0].Listen[0].URL, "--hub-token-file", h.said[0].TokenFile).CombinedOutput()
	if last := h.topics(); err != nil || last[len(last)-1] != "last" {
		t.Errorf("wf run by the address of a hub that is gone, and of another: %v\n%s", err, out)
	}
	again, err := h.submit(0, "topic-3")
	if err != nil || again != runs["topic-3"] {
		t.Errorf("a request that the other hub took is run %s again, %v; it was %s", again, err, runs["topic-3"])
	}
}

// all submits jobs to both hubs, with disturb in the middle, and gives their runs by their topics.
func (h *twoHubs) all(t *testing.T, from, to int, disturb func()) map[string]protocol.RunID {
	runs := map[string]protocol.RunID{}
	var mu sync.Mutex
	var all sync.WaitGroup
	next := make(chan int)
	for n := range 8 {
		all.Go(func() {
			for k := range next {
				topic := fmt.Sprint("topic-", k)
				run, err := h.submit(n%2, topic)
				if err != nil {
					t.Errorf("%s: %v", topic, err)
				}
				mu.Lock()
				runs[topic] = run
				mu.Unlock()
			}
		})
	}
	for k := from; k < to; k++ {
		if k == from+(to-from)/2 {
			disturb()
		}
		next <- k
	}
	close(next)
	all.Wait()
	return runs
}

// check waits until all runs are done, by what a hub says, and looks at how often each began.
func (h *twoHubs) check(runs map[string]protocol.RunID, at int) {
	h.t.Helper()
	h.until("no job is left", func() bool {
		left := h.jobs(at)
		for _, e := range left {
			if e.State == queue.Dead {
				h.t.Fatalf("given up: %+v", e)
			}
		}
		return len(left) == 0
	})
	both := h.said[0].Listen[0].URL + "," + h.said[1].Listen[0].URL // one of them is gone
	var listed []api.Row
	h.until("all runs are done", func() bool {
		out, err := wfIn(h.root, "ls", "--limit", "0", "-o", "jsonl", "--hub", both, "--hub-token-file", h.said[0].TokenFile).Output()
		if err != nil {
			h.t.Fatalf("wf ls: %v: %s", err, stderrOf(err))
		}
		listed = nil
		done := 0
		for line := range strings.Lines(string(out)) {
			var r api.Row
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				h.t.Fatalf("%v: %s", err, line)
			}
			if listed = append(listed, r); r.Status == protocol.Done {
				done++
			}
		}
		return done == len(runs)
	})
	if len(listed) != len(runs) {
		h.t.Errorf("%d runs are listed, %d jobs were submitted", len(listed), len(runs))
	}
	ids := map[protocol.RunID]bool{}
	for _, r := range listed {
		ids[r.ID] = true
	}
	times := map[string]int{}
	for _, topic := range h.topics() {
		times[topic]++
	}
	for topic, run := range runs {
		if times[topic] != 1 || !ids[run] {
			h.t.Errorf("%s began %d times; its run %s is listed: %v", topic, times[topic], run, ids[run])
		}
	}
	if len(times) != len(runs) {
		h.t.Errorf("%d jobs have begun, of %d", len(times), len(runs))
	}
}
