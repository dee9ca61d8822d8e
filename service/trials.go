package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"wf/api"
	"wf/protocol"
	"wf/roles"
	"wf/service/compose"
)

// Check is a command that tells whether a run is good. It runs in the workspace of the run as a run role would, confined
// where an agent could have written what it executes, and reads the run as JSON (wf.run/v1).
type Check struct {
	Command string // what sh -c runs; "" lets the outcome of the run decide
	Sandbox string // SandboxOn, SandboxOff, or "" as for run roles of the versions
	// Show is called with each line that the command writes, without its end; one of longLine bytes or more may come in parts. nil
	// is not.
	Show func(line string)
}

// The exit status of a check that cannot tell, as git bisect has it.
const cannotTell = 125

// A Judgement is what a check says of a run.
type Judgement struct {
	Verdict api.Verdict
	Exit    *int   // of the command; nil where the outcome of the run decides
	Why     string // the verdict
	Last    string // the last line that the command wrote
}

// Judge says whether a run of l that has stopped is good; dir is its workspace. agents reports that an agent may have written
// what the command executes.
func (c *Check) Judge(ctx context.Context, l *Local, v *api.Run, dir string, agents bool) (Judgement, error) {
	if c.Command == "" {
		why := "the run is " + string(v.Status)
		if v.Reason != "" {
			why += ": " + v.Reason
		}
		switch v.Status {
		case protocol.Done:
			return Judgement{Verdict: api.Good, Why: why}, nil
		case protocol.Cancelled:
			return Judgement{Verdict: api.Unresolved, Why: why}, nil
		}
		return Judgement{Verdict: api.Bad, Why: why}, nil
	}
	code, last, err := c.run(ctx, l, v, dir, c.confined(l, agents))
	if err != nil {
		return Judgement{}, err
	}
	j := Judgement{Verdict: api.Bad, Exit: &code, Why: fmt.Sprintf("the check ended with %d", code), Last: last}
	if last != "" {
		j.Why += ": " + last
	}
	switch code {
	case 0:
		j.Verdict = api.Good
	case cannotTell:
		j.Verdict = api.Unresolved
	}
	return j, nil
}

// run runs the command as a role of the workflow would, and gives its exit status and the last line it wrote.
func (c *Check) run(ctx context.Context, l *Local, v *api.Run, dir string, confined bool) (code int, last string, err error) {
	of, err := json.Marshal(v)
	if err != nil {
		return 0, "", err
	}
	command := *l.Engine.Performers[protocol.ActRun].(*roles.Run)
	command.Messages = nil
	role := protocol.Role{Name: "check", Action: protocol.ActRun, Run: c.Command, ContinueOnError: true, Stdin: &protocol.Stdin{Text: "-"}}
	turn := protocol.Turn{Run: v.ID, Workflow: v.Workflow, Step: protocol.StepID{Role: role.Name, N: 1, Index: -1}, Visit: 1, Attempt: 1, Key: string(v.ID) + "/check",
		Role: role, Inputs: protocol.JSON("{}"), Stdin: &protocol.Stdin{Text: string(of) + "\n"}, Workspace: dir, Confined: confined,
		Env: map[string]string{"WF_RUN": string(v.ID), "WF_RUN_STATUS": string(v.Status), "WF_STORE": l.Store.Name()}}
	open := "" // a line that has not ended
	said, err := command.Perform(ctx, turn, func(_ context.Context, data ...protocol.Data) error {
		for _, x := range data {
			if d, ok := x.(protocol.Delta); ok && c.Show != nil {
				open = c.show(open + d.Text)
			}
		}
		return nil
	})
	if open != "" {
		c.Show(open)
	}
	if err != nil {
		return 0, "", fmt.Errorf("the check of run %s: %w", v.ID, err)
	}
	var ended struct {
		Code *int `json:"exit_code"`
	}
	if err := json.Unmarshal(said.Data, &ended); err != nil || ended.Code == nil {
		return 0, "", fmt.Errorf("the check of run %s told no exit status: %w", v.ID, errors.Join(err, protocol.ErrCorrupt))
	}
	if said.Text != nil {
		lines := strings.Split(strings.TrimSpace(*said.Text), "\n")
		last = lines[len(lines)-1]
	}
	return *ended.Code, last, nil
}

// longLine is how many bytes of a line wait for its end.
const longLine = 8 << 10

// show shows the lines of a text, and gives back the one that has not ended.
func (c *Check) show(text string) string {
	for {
		line, rest, whole := strings.Cut(text, "\n")
		if !whole && len(text) < longLine {
			return text
		}
		c.Show(line)
		text = rest
	}
}

// confined reports whether the command runs in the sandbox: where an agent may have written what it executes.
func (c *Check) confined(l *Local, agents bool) bool {
	switch c.Sandbox {
	case protocol.SandboxOn:
		return true
	case protocol.SandboxOff:
		return false
	}
	return agents || l.Engine.ConfineAll
}

// goesOn reports whether a run is to be driven: it has begun, or was interrupted, or waits, or a limit may be another
// now. What stopped by an error did so by its definition.
func goesOn(v *api.Run) bool {
	return !v.Status.Final() && (v.Status != protocol.Suspended || v.Suspended == protocol.ByInterrupt || v.Suspended == protocol.ByLimit)
}

// ownLimit takes a limit of an earlier call back.
func ownLimit(w *protocol.Workflow) []protocol.LimitChanged {
	most := w.Limits.Cost
	if most == 0 {
		most = mostOfALimit
	}
	return []protocol.LimitChanged{{Limit: "cost_usd", Max: most}}
}

// ofDefinition reports whether an error with which no run began is one of its definition, models or inputs.
func ofDefinition(err error) bool {
	code := protocol.CodeOf(err)
	return slices.ContainsFunc([]*protocol.Error{protocol.ErrInvalid, protocol.ErrInputs, protocol.ErrModel, protocol.ErrPrice, protocol.ErrUntrusted, protocol.ErrUsage, compose.ErrUnconfined},
		func(e *protocol.Error) bool { return e.Code == code })
}
