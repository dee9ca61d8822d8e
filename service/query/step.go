package query

import (
	"wf/api"
	"wf/protocol"
)

// StepOf finds a visit of a run.
func StepOf(v *api.Run, id string) (*api.Step, error) {
	for _, s := range v.Steps {
		if s.ID == id {
			return s, nil
		}
	}
	return nil, protocol.ErrUnknownRun.With("wf show "+string(v.ID)+" lists the steps", "run %s has no step %s", v.ID, id)
}
