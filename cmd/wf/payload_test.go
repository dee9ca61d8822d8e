package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"wf/agentkit/modeltest"
	"wf/protocol"
)

const payloadYAML = `
wf: 1
name: payloads
inputs: {big: {type: string, required: true}}
limits: {steps: 50}
defaults: {timeout: 1m, model: openai/test}
roles:
  said: {run: cat big.txt}
  given:
    run: cat big.json
    output: {type: object, required: [data], properties: {data: {type: string}}}
  item:
    set: {value: "${{ item }}"}
  agent: {prompt: You work.}
  hang: {run: 'if [ -e was ]; then exit 0; fi; : >was; echo >here; exec sleep 20', timeout: 1m}
  you: {ask: "Say much."}
  sum:
    set:
      input: "${{ len(inputs.big) }}"
      said: "${{ len(steps.said.text) }}"
      given: "${{ len(steps.given.output.data) }}"
      items: "${{ map(steps.item.output, len(.value)) }}"
      agent: "${{ len(steps.agent.text) }}"
      answer: "${{ len(steps.you.text) }}"
      whole: "${{ steps.you.text }}"
edges:
  - {from: START, to: said}
  - {from: said, to: given}
  - {from: given, to: item, for_each: "[inputs.big, 'small']"}
  - {from: item, to: agent}
  - {from: agent, to: hang}
  - {from: hang, to: you}
  - {from: you, to: sum}
  - {from: sum, to: END}
outputs:
  input: "${{ steps.sum.output.input }}"
  said: "${{ steps.sum.output.said }}"
  given: "${{ steps.sum.output.given }}"
  items: "${{ steps.sum.output.items }}"
  agent: "${{ steps.sum.output.agent }}"
  answer: "${{ steps.sum.output.answer }}"
  whole: "${{ steps.sum.output.whole }}"
`

// A payload of any size, at the bound of a chunk and beyond it, goes the whole way: as an input,
// as text and as data of a command, as the value of an item, as what an agent says and as an
// answer; through a kill, and in an archive. The size suite takes longer ones the same way.
func TestPayloadsAroundTheSizeOfAChunkGoTheWholeWay(t *testing.T) {
	if testing.Short() {
		t.Skip("runs of many megabytes")
	}
	t.Parallel()
	for _, size := range []int{protocol.ChunkSize - 1, protocol.ChunkSize, protocol.ChunkSize + 1} {
		t.Run(fmt.Sprint(size), func(t *testing.T) { payloadsGoTheWholeWay(t, size) })
	}
}

func payloadsGoTheWholeWay(t *testing.T, size int) {
	dir := t.TempDir()
	big := noise("big", size-1) + "." // no line end, which would be cut off
	quoted, err := json.Marshal(big)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "payloads.yaml", payloadYAML)
	write(t, dir, "big.txt", big)
	write(t, dir, "big.json", `{"data":`+string(quoted)+`}`)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range (modeltest.Answer{Say: []modeltest.Piece{{Text: big}, {Finish: "stop"}}}).OpenAI() {
			fmt.Fprintf(w, "data: %s\n\n", e)
		}
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	defer server.Close()
	store := filepath.Join(dir, ".wf")
	command := func(args ...string) *exec.Cmd {
		cmd := exec.Command("wf", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "OPENAI_BASE_URL="+server.URL+"/v1", "OPENAI_API_KEY=test", "HOME="+dir, "XDG_STATE_HOME=", "XDG_DATA_HOME=", "WF_STORE="+store)
		return cmd
	}
	wf := func(in string, exit int, args ...string) string {
		t.Helper()
		cmd := command(args...)
		var out, errOut bytes.Buffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(in), &out, &errOut
		err := cmd.Run()
		if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != exit {
			t.Fatalf("wf %s: %v\n%.2000s\n%.2000s", strings.Join(args, " "), err, errOut.String(), out.String())
		}
		return out.String()
	}
	killedWhere(t, filepath.Join(dir, "here"), command("run", "payloads.yaml", "-i", "big=@big.txt", "-q", "--request-id", "r"))
	wf("", 8, "resume", "-1", "-q")
	wf(big, 0, "answer", "-1", "-", "-q")
	whole := func(run string) (string, payloadView) {
		t.Helper()
		v, ok := viewOf(t, wf, run)
		if !ok {
			t.Fatalf("the run is %s: %s", v.Status, v.Reason)
		}
		o := v.Outputs
		for name, n := range map[string]int{"input": o.Input, "said": o.Said, "given": o.Given, "agent": o.Agent, "answer": o.Answer} {
			if n != size {
				t.Errorf("%s has %d bytes, want %d", name, n, size)
			}
		}
		if len(o.Items) != 2 || o.Items[0] != size || o.Items[1] != 5 || o.Whole != big || v.Info.Inputs.Big != big {
			t.Errorf("items %v, output %d bytes, input %d bytes", o.Items, len(o.Whole), len(v.Info.Inputs.Big))
		}
		for _, s := range v.Steps {
			if strings.HasPrefix(s.ID, "said") || strings.HasPrefix(s.ID, "agent") || strings.HasPrefix(s.ID, "you") {
				if s.Text != big {
					t.Errorf("%s: a text of %d bytes, want %d", s.ID, len(s.Text), size)
				}
			}
		}
		wf("", 0, "verify", run)
		messages := wf("", 0, "messages", run+":agent#1", "-o", "json")
		replayed := wf("", 0, "replay", run, "--check", "-o", "json")
		wf("", 0, "replay", run)
		wf("", 0, "log", run)
		return messages + replayed, v
	}
	before, v := whole("-1")
	if !strings.Contains(before, big[:60]) {
		t.Errorf("the agent was not sent the input it follows from: %.300s", before)
	}
	wf("", 0, "export", "-1", "-o", "run.car", "-q")
	wf("", 0, "verify", "run.car")
	store = filepath.Join(dir, "other")
	wf("", 0, "import", "run.car", "-q")
	after, w := whole("-1")
	if w.Head != v.Head || w.ID == "" {
		t.Errorf("the import has the head %s, want %s", w.Head, v.Head)
	}
	if strings.ReplaceAll(after, w.ID, v.ID) != before {
		t.Errorf("messages and replay differ after the import")
	}
}

// killedWhere starts a program and kills it when something is written to the pipe at path.
func killedWhere(t *testing.T, path string, program *exec.Cmd) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	here, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	var errOut bytes.Buffer
	program.Stderr = &errOut
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- program.Wait()
		here.Close() // who reads it would wait for ever
	}()
	if _, err := here.Read(make([]byte, 1)); err != nil {
		t.Fatalf("it ended before it was there: %v\n%.2000s", <-ended, errOut.String())
	}
	if err := program.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-ended
}

// payloadView is what the test reads of wf.run/v1.
type payloadView struct {
	ID, Head, Status, Reason string
	Info                     struct{ Inputs struct{ Big string } }
	Outputs                  struct {
		Input, Said, Given, Agent, Answer int
		Items                             []int
		Whole                             string
	}
	Steps []struct{ ID, Text string }
}

// viewOf is wf show; ok where the run is done.
func viewOf(t *testing.T, wf func(string, int, ...string) string, run string) (v payloadView, ok bool) {
	t.Helper()
	if err := json.Unmarshal([]byte(wf("", 0, "show", run, "-o", "json")), &v); err != nil {
		t.Fatal(err)
	}
	return v, v.Status == "done"
}
