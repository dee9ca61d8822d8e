package api

import (
	"wf/protocol"
	"wf/protocol/tree"
)

// Artifacts are the files that a run, or a step of it, keeps: wf.artifacts/v1.
type Artifacts struct {
	Schema    string         `json:"schema"`
	Run       protocol.RunID `json:"run"`
	Artifacts []Artifact     `json:"artifacts"`
	Next      string         `json:"next,omitempty"` // give it as after to read on; left out at the end
}

// Artifact is a file that a step keeps, or that it left out.
type Artifact struct {
	Step string `json:"step"`
	Path string `json:"path"`
	Mode string `json:"mode"`          // file, exec, link or omitted
	Size int64  `json:"size"`          // bytes
	CID  string `json:"cid,omitempty"` // of its content
	Why  string `json:"why,omitempty"` // it was omitted: name, special, size, secret, unstable or denied
}

// NewArtifact is what a tree of a step has.
func NewArtifact(step string, it tree.Item) Artifact {
	return Artifact{Step: step, Path: it.Path, Mode: string(it.Mode), Size: it.Size, CID: it.Link.String(), Why: it.Why}
}
