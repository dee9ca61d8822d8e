package api

import (
	"strings"

	"wf/protocol"
)

// Commit is a git commit of what the steps of runs wrote: wf.commit/v1.
type Commit struct {
	Schema   string          `json:"schema"`
	Commit   string          `json:"commit,omitempty"` // its hash; left out where none was made
	Trailers []string        `json:"trailers"`         // such as Wf-Step: 7K3Q8XW2NM:coder#2
	Paths    []CommittedPath `json:"paths"`
}

// CommittedPath is a path of a commit, and which steps wrote what the commit adds to it.
type CommittedPath struct {
	Path string   `json:"path"`
	By   []Author `json:"by"`            // none where no run tells: a user wrote it
	Why  string   `json:"why,omitempty"` // it cannot be told
}

// Author is a step of a run, or several of which it was one.
type Author struct {
	Run protocol.RunID `json:"run"`
	By  []string       `json:"by"`
}

// StepTrailer is the name of the trailer of a commit that names a step.
const StepTrailer = "Wf-Step"

// Trailer is the line of a commit message that names the author.
func (a Author) Trailer() string {
	var steps []string
	for _, by := range a.By {
		if strings.Contains(by, "#") && !strings.Contains(by, ":") { // not outside, nor of another run
			by = string(a.Run) + ":" + by
		}
		steps = append(steps, by)
	}
	return StepTrailer + ": " + strings.Join(steps, " or ")
}
