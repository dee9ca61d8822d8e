package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/agentkit/modeltest"
)

const taskYAML = `wf: 1
name: plan
roles:
  clerk: {prompt: You keep notes., context: task, tools: [{shell: auto}], timeout: 1m}
edges:
  - {from: START, to: clerk, prompt: Plan the migration.}
  - {from: clerk, to: END}
`

// taskCalls is what a model does on its task, one call after the other.
var taskCalls = []modeltest.Call{
	{Name: "shell", Args: `{"command":"echo 1 >>log"}`},
	{Name: "task_update_state", Args: `{"state":"One line is there."}`},
	{Name: "shell", Args: `{"command":"echo 2 >>log"}`},
	{Name: "task_waiting_on_user", Args: `{"question":"Which DB?"}`},
	{Name: "shell", Args: `{"command":"echo 3 >>log"}`},
	{Name: "task_update_state", Args: `{"state":"Three lines are there."}`},
	{Name: "task_complete", Args: `{"final_response":"Planned for Postgres.","summary":"Planned the migration to Postgres."}`},
}

// taskServer names a goal, then makes the calls, by how many results it is shown.
func taskServer(t *testing.T, hold func(n int) func()) *modeltest.Server {
	return modeltest.Serve(t, func(r modeltest.Request) modeltest.Answer {
		if strings.Contains(string(r.Body), "You name the goal of a task") {
			return modeltest.Text("Plan the migration")
		}
		n := r.Results()
		c := taskCalls[min(n, len(taskCalls)-1)]
		c.ID = fmt.Sprintf("call_%d", n)
		a := modeltest.Calls(c)
		a.Before = hold(n)
		return a
	})
}

// W-20 for tasks: killed while the model thinks, in the middle of a task, on either wire. The
// task goes on, asks, is answered by another process, and completes; no call is made twice, and
// every request begins with all of the one before, or was sent before the kill already.
func TestW20R04R05ATaskKilledOnEitherWireGoesOn(t *testing.T) {
	t.Parallel()
	for _, wire := range []struct {
		name, model string
		env         func(*modeltest.Server) string
	}{
		{"OpenAI", "openai/test", func(s *modeltest.Server) string { return "OPENAI_BASE_URL=" + s.URL }},
		{"Anthropic", "anthropic/test", func(s *modeltest.Server) string { return "ANTHROPIC_BASE_URL=" + s.Root }},
	} {
		t.Run(wire.name, func(t *testing.T) {
			t.Parallel()
			killed := make(chan struct{}) // closed when the process is gone
			asked := make(chan struct{}, 1)
			s := taskServer(t, func(n int) func() {
				if n != 2 {
					return nil
				}
				return func() {
					select {
					case asked <- struct{}{}:
						<-killed
					default: // asked again, after the kill
					}
				}
			})
			p := newPlace(t, wire.env(s))
			write(t, p.dir, "plan.yaml", taskYAML)
			p.killed(asked, "run", "plan.yaml", "--model", wire.model, "-q")
			close(killed)

			p.wf(8, "resume", "-1", "-q")
			p.wf(0, "answer", "-1", "Postgres", "-q")
			log, err := os.ReadFile(filepath.Join(p.dir, "log"))
			if err != nil || strings.Join(strings.Fields(string(log)), " ") != "1 2 3" {
				t.Errorf("the calls ran as %q, %v", log, err)
			}
			var shown struct {
				Goal, State, Question, Summary string
				Final                          string `json:"final_response"`
			}
			p.read(&shown, "task", "show", "-1")
			if shown.Goal != "Plan the migration" || shown.State != "Three lines are there." || shown.Question != "Which DB?" ||
				shown.Summary != "Planned the migration to Postgres." || shown.Final != "Planned for Postgres." {
				t.Errorf("the task is %+v", shown)
			}
			c := p.prove()
			for _, call := range c.Items[2:] { // behind the goal and the first turn
				if call.Miss != "" && call.Miss != "short" {
					t.Errorf("call %d missed the cache: %s", call.Call, call.Miss)
				}
			}
			requests := s.Requests()
			after := requests[len(requests)-3]
			for _, want := range []string{"echo 1", "echo 2", "One line is there.", "Which DB?", "Postgres"} {
				if !bytes.Contains(after.Body, []byte(want)) {
					t.Errorf("the request after the answer lacks %q", want)
				}
			}
			if wire.name != "OpenAI" {
				return // marks of the cache move
			}
			var before []byte
			sent := map[string]bool{}
			for i, r := range requests[1:] {
				now := r.Messages()
				if !bytes.HasPrefix(now, before) && !sent[string(now)] {
					t.Errorf("request %d does not begin with all of the one before", i+2)
				}
				before, sent[string(now)] = now, true
			}
			var last struct {
				Messages []struct{ Content string }
			}
			if err := json.Unmarshal(requests[len(requests)-1].Body, &last); err != nil {
				t.Fatal(err)
			}
			if end := last.Messages[len(last.Messages)-1].Content; !strings.HasSuffix(end, "Goal: Plan the migration\nState: Three lines are there.\n</task>") {
				t.Errorf("the last request ends with %q", end)
			}
		})
	}
}
