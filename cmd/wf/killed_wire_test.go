package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/agentkit/modeltest"
	"wf/api"
	"wf/files/filestest"
)

// sevenCalls is a role that works with its tools as they are: the shell in its sandbox.
const sevenCalls = `wf: 1
name: seven
roles:
  worker: {prompt: You work., tools: [{shell: auto}], timeout: 1m}
edges:
  - {from: START, to: worker, prompt: Begin.}
  - {from: worker, to: END}
`

// A visit of seven tool calls is killed on a wire model, while the model thinks about the next
// call and while a tool runs. After wf resume no call that has a result was made again, the one
// whose outcome is unknown was not repeated, and the provider refused no request.
func TestW20KilledInAVisitOfSevenCallsOnEitherWire(t *testing.T) {
	t.Parallel()
	for _, wire := range wires {
		for _, moment := range []struct {
			name     string
			thinking bool // killed while the model is asked for call 4, else while call 4 runs
		}{{"while the model answers", true}, {"while a tool runs", false}} {
			t.Run(wire.name+" "+moment.name, func(t *testing.T) {
				t.Parallel()
				killed := make(chan struct{}) // closed when the process is gone
				asked := make(chan struct{}, 1)
				s := modeltest.Serve(t, func(r modeltest.Request) modeltest.Answer {
					n := r.Results() + 1
					if n > crashCalls {
						return modeltest.Text("All seven are done.")
					}
					command := fmt.Sprintf("echo %d >>log", n)
					if n == 4 && !moment.thinking {
						command += "; until [ -e go ]; do sleep 0.01; done"
					}
					args, err := json.Marshal(map[string]string{"command": command})
					if err != nil {
						panic(err) // of strings
					}
					a := modeltest.Calls(modeltest.Call{ID: fmt.Sprintf("call_%d", n), Name: "shell", Args: string(args)})
					if n == 4 && moment.thinking {
						a.Before = func() {
							select {
							case asked <- struct{}{}:
								<-killed
							default: // asked again, after the kill
							}
						}
					}
					return a
				})
				p := newPlace(t, wire.env(s))
				write(t, p.dir, "seven.yaml", sevenCalls)
				at := asked
				if !moment.thinking {
					at = linesIn(t, filepath.Join(p.dir, "log"), 4)
				}
				p.killed(at, "run", "seven.yaml", "--model", wire.model, "-q")
				close(killed)
				write(t, p.dir, "go", "")

				p.wf(0, "resume", "-1", "-q")
				log, err := os.ReadFile(filepath.Join(p.dir, "log"))
				if err != nil {
					t.Fatal(err)
				}
				if got := strings.Fields(string(log)); strings.Join(got, " ") != "1 2 3 4 5 6 7" {
					t.Errorf("the calls ran as %v, want each of the seven once", got)
				}
				var v api.Run
				p.read(&v, "show", "-1")
				if len(v.Steps) != 1 || v.Steps[0].ToolCalls != crashCalls || len(v.Steps[0].Attempts) != 1 {
					t.Errorf("steps %+v, want one with %d calls in one attempt", v.Steps, crashCalls)
				}
				unknown := 0
				for _, r := range s.Requests() {
					if strings.Contains(string(r.Body), "outcome of this call is unknown") {
						unknown++
					}
				}
				if told := unknown > 0; told == moment.thinking {
					t.Errorf("the model was told of an unknown outcome: %v", told)
				}
				p.prove()
			})
		}
	}
}

// linesIn tells when a file has that many lines, which a process in the background writes.
func linesIn(t *testing.T, file string, n int) chan struct{} {
	there := make(chan struct{})
	go func() {
		err := filestest.Await(t.Context(), filepath.Dir(file), func() bool {
			b, err := os.ReadFile(file)
			return err == nil && strings.Count(string(b), "\n") >= n
		})
		if err == nil {
			close(there)
		}
	}()
	return there
}
