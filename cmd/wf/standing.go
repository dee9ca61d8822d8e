package main

import (
	"wf/api"
	"wf/protocol"
)

// A standing is where a run stands, for people: its status, or why no process drives it.
type standing struct {
	status protocol.RunStatus
	idle   api.Idle
}

func standingOf(v *api.Run) standing { return standing{v.Status, v.Idle} }

// word is the standing in a word or two.
func (s standing) word() string {
	switch s.idle {
	case api.NotStarted:
		return "not started"
	case "":
		return string(s.status)
	}
	return string(s.idle)
}

// sign stands in front of a run.
func (s standing) sign(p paint) string {
	switch s.idle {
	case api.Interrupted:
		return p.yellow("!")
	case api.NotStarted, api.Answered:
		return p.yellow("○")
	}
	return p.status(s.status)
}

// why says why no process drives a run, "" for all others.
func (s standing) why() string {
	switch s.idle {
	case api.Interrupted:
		return "no process drives the run: the last one was killed or could not go on. What is recorded is not lost"
	case api.NotStarted:
		return "no process has driven the run yet"
	case api.Answered:
		return "the answer is recorded, and no process goes on with the run"
	}
	return ""
}

// resumes is the command that goes on with a run that no process drives: a sub-workflow goes on
// with the run that it is a part of.
func resumes(run protocol.RunID, parent *protocol.ParentRun, forked bool) string {
	if parent != nil && !forked {
		run = parent.Run
	}
	return "wf resume " + string(run)
}

// atRest names the open steps of a run that no process drives for what they are.
func atRest(v *api.Run) {
	if v.Idle == "" {
		return
	}
	for _, s := range v.Steps {
		if s.Status == "running" {
			s.Status = string(api.Interrupted)
		}
	}
}
