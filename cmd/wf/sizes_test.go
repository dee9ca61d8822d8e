package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"wf/cas"
	"wf/protocol"
)

// sizesEnv is how many definitions the size suite draws, and more sizes with it; unset it is
// sizesShort.
const (
	sizesEnv   = "WF_SIZES"
	sizesShort = 3
)

// envValueMax is the longest value of an environment variable that Linux takes, its name and
// sign left out: MAX_ARG_STRLEN, 32 pages.
const envValueMax = 128<<10 - len("BIG=") - 1

// textLengths are what texts are drawn around: every threshold of the code.
func textLengths() []int {
	out := append(cas.Lengths(), 0, 1, envValueMax, 200<<10)
	slices.Sort(out)
	return slices.Compact(out)
}

// itemCounts are what items and steps are drawn around.
func itemCounts() []int {
	return append(cas.Counts(), 1, 64) // visits performed at once
}

// sizes are one draw: the lengths of the texts of a run, and how many items it has.
type sizes struct {
	answer, agent, output, input, item, env int
	items                                   int
}

// around draws a length below, at or beyond a threshold.
func around(rng *rand.Rand, thresholds []int, most int) int {
	for {
		if n := thresholds[rng.IntN(len(thresholds))] + rng.IntN(3) - 1; n >= 0 && n <= most {
			return n
		}
	}
}

func drawSizes(rng *rand.Rand) sizes {
	l := textLengths()
	return sizes{
		// An agent that says nothing is asked again, and an empty answer is none.
		answer: max(1, around(rng, l, 1<<30)), agent: max(1, around(rng, l, 1<<30)),
		output: around(rng, l, 1<<30), input: around(rng, l, 1<<30), item: around(rng, l, 4<<10), env: around(rng, l, envValueMax),
		items: around(rng, itemCounts(), 1<<30),
	}
}

// text is n bytes that no other text of the run has, and that hardly shrink.
func text(name string, n int) string {
	seed := [32]byte{}
	copy(seed[:], name)
	rng := rand.New(rand.NewChaCha8(seed))
	b := make([]byte, 0, n+len(name)+20)
	for len(b) < n {
		b = append(b, name...)
		b = append(strconv.AppendUint(b, rng.Uint64(), 16), ' ')
	}
	for i := n - 1; i >= 0 && b[i] == ' '; i-- {
		b[i] = 'x'
	}
	return string(b[:n])
}

// sizesYAML passes a text of every kind through every kind of role.
const sizesYAML = `
wf: 1
name: sizes
limits: {steps: 100000}
inputs: {long: {type: string, required: true}, big: {type: string, required: true}, items: {type: array, required: true}}
defaults: {timeout: 2m}
roles:
  print: {run: cat printed.txt}
  takes: {run: 'printf %s "$BIG" | wc -c; echo once >>takes.log', env: {BIG: "${{ inputs.big }}"}}
  writer: {prompt: You write., model: script/replies.yaml}
  asked: {ask: "${{ inputs.long }}"}
  one: {set: {text: "${{ item }}", n: "${{ index }}"}}
  child: {workflow: child.yaml, with: {long: "${{ inputs.long }}"}}
  last: {set: {n: "${{ len(output.said) }}"}}
edges:
  - {from: START, to: print}
  - {from: print, to: takes, prompt: "${{ output.text }}"}
  - {from: takes, to: writer, prompt: "${{ steps.print.text }}"}
  - {from: writer, to: asked, prompt: "${{ output.text }}"}
  - {from: asked, to: one, for_each: inputs.items, max_parallel: 7, prompt: "${{ index }} ${{ item }}"}
  - {from: one, to: child}
  - {from: child, to: last, prompt: "${{ output.said }}"}
  - {from: last, to: END}
outputs: {answer: "${{ steps.asked.text }}", said: "${{ steps.child.output.said }}", n: "${{ steps.last.output.n }}", written: "${{ steps.writer.text }}"}
`

const sizesChildYAML = `
wf: 1
name: child
inputs: {long: {type: string, required: true}}
roles:
  writer: {prompt: You write too., model: script/replies.yaml}
  pass: {set: {said: "${{ inputs.long }}"}}
edges:
  - {from: START, to: writer, prompt: "${{ inputs.long }}"}
  - {from: writer, to: pass, prompt: "${{ output.text }}"}
  - {from: pass, to: END}
outputs: {said: "${{ steps.pass.output.said }}"}
`

// sizeRun is a directory in which a run of one draw is carried out.
type sizeRun struct {
	t   *testing.T
	dir string
	z   sizes
}

func newSizeRun(t *testing.T, z sizes) *sizeRun {
	r := &sizeRun{t, t.TempDir(), z}
	items := []string{}
	for i := range z.items {
		items = append(items, text(fmt.Sprint("item", i), z.item))
	}
	inputs, err := json.Marshal(map[string]any{"long": text("input", z.input), "big": text("big", z.env), "items": items})
	if err != nil {
		t.Fatal(err)
	}
	write(t, r.dir, "sizes.yaml", sizesYAML)
	write(t, r.dir, "child.yaml", sizesChildYAML)
	write(t, r.dir, "inputs.json", string(inputs))
	write(t, r.dir, "printed.txt", text("printed", z.output))
	write(t, r.dir, "answer.txt", text("answer", z.answer))
	reply, err := json.Marshal(text("agent", z.agent))
	if err != nil {
		t.Fatal(err)
	}
	write(t, r.dir, "replies.yaml", fmt.Sprintf("writer#1:\n  - {text: %s}\n", reply))
	return r
}

// command is wf with a store in the directory, and nothing from outside.
func (r *sizeRun) command(store string, args ...string) *exec.Cmd {
	cmd := exec.Command("wf", args...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "HOME="+r.dir, "XDG_STATE_HOME="+filepath.Join(r.dir, "state"), "XDG_DATA_HOME=", "WF_STORE="+filepath.Join(r.dir, store))
	return cmd
}

// wf runs a command that ends with a status, and gives what it printed.
func (r *sizeRun) wf(status int, store string, args ...string) []byte {
	r.t.Helper()
	cmd := r.command(store, args...)
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	var exit *exec.ExitError
	if got := cmd.ProcessState.ExitCode(); got != status || err != nil && !errors.As(err, &exit) {
		r.t.Fatalf("wf %v ended with %d, want %d: %v\n%.2000s\n%.2000s", args, got, status, err, &errOut, out)
	}
	return out
}

// whole carries the run out; killed says after how many events its processes are killed, each
// that is still there then. It gives the run as JSON.
func (r *sizeRun) whole(killed ...int) shownRun {
	r.t.Helper()
	args := []string{"run", "sizes.yaml", "-I", "inputs.json", "--request-id", "r", "--no-input", "-q"}
	for _, n := range killed {
		r.killedAfter(n, args...)
		args = []string{"resume", "-1", "--no-input", "-q"}
	}
	if len(killed) == 0 || r.status() != protocol.Waiting { // else it was killed at its very end
		r.wf(8, "store", args...)
	}
	answer := r.command("store", "answer", "-1", "-", "--record")
	in, err := os.Open(filepath.Join(r.dir, "answer.txt"))
	if err != nil {
		r.t.Fatal(err)
	}
	defer in.Close()
	answer.Stdin = in
	if out, err := answer.CombinedOutput(); err != nil {
		r.t.Fatalf("answer: %v\n%.2000s", err, out)
	}
	args = []string{"resume", "-1", "--no-input", "-q"}
	if len(killed) > 0 {
		r.killedAfter(killed[len(killed)-1]+r.z.items, args...)
	}
	if r.status() != protocol.Done {
		r.wf(0, "store", args...)
	}
	return r.show("store")
}

// status is how the run is, without the texts that show has.
func (r *sizeRun) status() protocol.RunStatus {
	r.t.Helper()
	var listed struct {
		Items []struct{ Status protocol.RunStatus }
	}
	if err := json.Unmarshal(r.wf(0, "store", "ls", "-o", "json"), &listed); err != nil || len(listed.Items) != 1 {
		r.t.Fatalf("wf ls has %d runs (%v)", len(listed.Items), err)
	}
	return listed.Items[0].Status
}

// killedAfter starts a command and kills it -9 once its run has so many events.
func (r *sizeRun) killedAfter(events int, args ...string) {
	r.t.Helper()
	cmd := r.command("store", args...)
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	store, _ := followUntil(r.t, filepath.Join(r.dir, "store"), protocol.Seq(events), ended)
	if err := store.Close(); err != nil {
		r.t.Error(err)
	}
	if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		r.t.Fatal(err)
	}
	<-ended
}

// shownRun is what the suite looks at of wf show -o json.
type shownRun struct {
	ID, Status, Reason, Head string
	Outputs                  map[string]any
	Steps                    []struct {
		ID, CID, Status, Text, Child string
		EdgePrompt                   string `json:"edge_prompt"`
	}
}

func (s shownRun) step(id string) (prompt, text string) {
	for _, x := range s.Steps {
		if x.ID == id {
			return x.EdgePrompt, x.Text
		}
	}
	return "", ""
}

func (s shownRun) records() []string {
	var out []string
	for _, x := range s.Steps {
		out = append(out, x.ID+" "+x.CID)
	}
	slices.Sort(out)
	return out
}

func (r *sizeRun) show(store string) (s shownRun) {
	r.t.Helper()
	if err := json.Unmarshal(r.wf(0, store, "show", "-1", "-o", "json"), &s); err != nil {
		r.t.Fatal(err)
	}
	return s
}

// cutPrompt is a prompt as it is handed over.
func cutPrompt(s string) string {
	const mark = "…[cut]"
	if len(s) <= protocol.EdgePromptMax {
		return s
	}
	return s[:protocol.EdgePromptMax-len(mark)] + mark
}

// holds checks that every text came through whole.
func (r *sizeRun) holds(s shownRun) {
	r.t.Helper()
	printed, agent, input := text("printed", r.z.output), text("agent", r.z.agent), text("input", r.z.input)
	if s.Status != string(protocol.Done) {
		r.t.Fatalf("the run is %s: %s", s.Status, s.Reason)
	}
	if _, got := s.step("print#1"); got != printed {
		r.t.Errorf("a command printed %d bytes, %d are shown", len(printed), len(got))
	}
	if got, _ := s.step("takes#1"); got != cutPrompt(printed) {
		r.t.Errorf("a prompt of %d bytes has %d", len(printed), len(got))
	}
	if _, got := s.step("takes#1"); strings.TrimSpace(got) != strconv.Itoa(r.z.env) {
		r.t.Errorf("a variable of %d bytes arrived with %s", r.z.env, got)
	}
	for name, want := range map[string]string{"answer": text("answer", r.z.answer), "said": input, "written": agent} {
		if got, _ := s.Outputs[name].(string); got != want {
			r.t.Errorf("the output %s has %d bytes, want %d", name, len(got), len(want))
		}
	}
	log, err := os.ReadFile(filepath.Join(r.dir, "takes.log"))
	if err != nil {
		r.t.Error(err)
	}
	if n := strings.Count(string(log), "\n"); n == 0 {
		r.t.Error("a command did not act")
	}
	items := 0
	for _, x := range s.Steps {
		if strings.HasPrefix(x.ID, "one#1[") && x.Status == "ok" {
			items++
		}
	}
	if items != r.z.items {
		r.t.Errorf("%d of %d items concluded", items, r.z.items)
	}
}

// everyWay reads the run in every other way, here and after a move to another store.
func (r *sizeRun) everyWay(s shownRun) {
	r.t.Helper()
	r.wf(0, "store", "verify", "--all")
	r.wf(0, "store", "replay", s.ID, "--check")
	events := 0
	for line := range bytes.Lines(r.wf(0, "store", "replay", s.ID, "-o", "jsonl")) {
		if !json.Valid(line) {
			r.t.Fatalf("event %d is no JSON", events+1)
		}
		events++
	}
	messages := r.wf(0, "store", "messages", s.ID+":writer#1", "-o", "json")
	if !bytes.Contains(messages, []byte(cutPrompt(text("printed", r.z.output)))) {
		r.t.Error("the messages of the agent lack its prompt")
	}
	var child string
	for _, x := range s.Steps {
		if x.Child != "" {
			child = x.Child
		}
	}
	childMessages := r.wf(0, "store", "messages", child+":writer#1", "-o", "json")
	r.wf(0, "store", "export", s.ID, "-o", "run.car")
	r.wf(0, "store", "verify", "run.car")
	r.wf(0, "other", "import", "run.car")
	r.wf(0, "other", "verify", "--all")
	var moved shownRun
	if err := json.Unmarshal(r.wf(0, "other", "show", s.ID, "-o", "json"), &moved); err != nil {
		r.t.Fatal(err)
	}
	r.holds(moved)
	if moved.Head != s.Head || !slices.Equal(moved.records(), s.records()) {
		r.t.Error("the run has other records after a move")
	}
	for id, want := range map[string][]byte{s.ID: messages, child: childMessages} {
		if got := r.wf(0, "other", "messages", id+":writer#1", "-o", "json"); !bytes.Equal(got, want) {
			r.t.Errorf("the messages of run %s are others after a move", id)
		}
	}
	if got := bytes.Count(r.wf(0, "other", "replay", s.ID, "-o", "jsonl"), []byte("\n")); got != events {
		r.t.Errorf("%d events after a move, %d before", got, events)
	}
}

// Texts, answers, items and events of every length that the code treats in a way of its own go
// through run, kill, resume, show, messages, replay, export, import and verify, and give the same
// records whether the processes were killed or not.
func TestEverySizeGoesTheWholeWay(t *testing.T) {
	draws := sizesShort
	if s := os.Getenv(sizesEnv); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("%s=%s: %v", sizesEnv, s, err)
		}
		draws = n
	} else if testing.Short() {
		t.Skip("starts some 100 processes")
	}
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	all := []sizes{{answer: 5 << 20, agent: 5 << 20, output: 200 << 10, input: 5 << 20, item: 1100, env: envValueMax, items: 257}}
	for range draws - 1 {
		all = append(all, drawSizes(rng))
	}
	for _, z := range all {
		kills := []int{2 + rng.IntN(6), 3 + rng.IntN(8)} // drawn here: the subtests run side by side
		t.Run(fmt.Sprintf("%+v", z), func(t *testing.T) {
			t.Parallel()
			quiet := newSizeRun(t, z)
			s := quiet.whole()
			quiet.holds(s)
			quiet.everyWay(s)
			killed := newSizeRun(t, z)
			again := killed.whole(kills...)
			killed.holds(again)
			killed.wf(0, "store", "verify", "--all")
			if a, b := s.records(), again.records(); !slices.Equal(a, b) {
				t.Errorf("killed, the run concluded otherwise:\n%v\n%v", a, b)
			}
		})
	}
}
