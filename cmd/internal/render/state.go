package render

import (
	"wf/api"
	"wf/protocol"
)

// A State is the state of a run for people: its status, or why no process drives it.
type State struct {
	Status protocol.RunStatus
	Idle   api.Idle
}

// StateOf is the state of a run.
func StateOf(v *api.Run) State { return State{Status: v.Status, Idle: v.Idle} }

// Word is the state in a word or two.
func (s State) Word() string {
	switch s.Idle {
	case api.NotStarted:
		return "not started"
	case "":
		return string(s.Status)
	}
	return string(s.Idle)
}

// Sign stands in front of a run.
func (s State) Sign(p Paint) string {
	switch s.Idle {
	case api.Interrupted:
		return p.Yellow("!")
	case api.NotStarted, api.Answered:
		return p.Yellow("○")
	}
	return p.status(s.Status)
}

// Why says why no process drives a run, "" for all others.
func (s State) Why() string {
	switch s.Idle {
	case api.Interrupted:
		return "no process drives the run: the last one was killed or could not go on. What is recorded is not lost"
	case api.NotStarted:
		return "no process has driven the run yet"
	case api.Answered:
		return "the answer is recorded, and no process goes on with the run"
	}
	return ""
}

// AtRest names the open steps of a run that no process drives for what they are.
func AtRest(v *api.Run) {
	if v.Idle == "" {
		return
	}
	for _, s := range v.Steps {
		if s.Status == "running" {
			s.Status = string(api.Interrupted)
		}
	}
}
