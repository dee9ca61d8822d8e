package main

import (
	"wf/agentkit/mcp"
	"wf/api"
	"wf/cmd/internal/render"
	"wf/protocol"
)

// lastSteps is how many steps of a run a person is shown.
const lastSteps = 200

// outcome is what the state of a run is to the caller of wf: nil when it is done.
func outcome(v *api.Run) error {
	switch v.Status {
	case protocol.Done:
		return nil
	case protocol.Failed:
		return fail(errRunFailed, "wf log "+string(v.ID)+" shows the step that failed", "run %s failed%s", v.ID, render.Because(v.Reason))
	case protocol.Cancelled:
		return fail(errRunCancelled, "", "run %s was cancelled%s", v.ID, render.Because(v.Reason))
	case protocol.Waiting:
		return fail(protocol.ErrWaiting, render.Next(v), "run %s waits%s", v.ID, render.WaitsFor(v))
	case protocol.Suspended:
		return suspended(v)
	}
	if stands := render.StateOf(v); stands.Idle != "" {
		return fail(errRunSuspended, render.ResumeCommand(v.ID, v.Info.Parent, v.Info.ForkedFrom != nil)+" goes on with it", "run %s is not over: %s", v.ID, stands.Why())
	}
	return fail(errRunSuspended, "wf watch "+string(v.ID)+" follows it", "run %s is not over", v.ID)
}

// suspended tells a limit, a missing model and other errors apart: they have exit statuses of
// their own.
func suspended(v *api.Run) error {
	resume := "wf resume " + string(v.ID)
	if v.Mend != nil {
		return fail(errRunSuspended, "a run keeps its definition: "+render.NextMend(v), "run %s is suspended%s", v.ID, render.Because(v.Reason))
	}
	if v.Suspended == protocol.ByLimit {
		return fail(errRunLimit, render.Next(v), "run %s is suspended%s", v.ID, render.Because(v.Reason))
	}
	if why := (&protocol.Error{Code: v.Code}); v.Code != "" && statusOf(why) != statusOf(errRunSuspended) {
		hint := "put it right, then " + resume
		if v.Code == mcp.ErrUntrusted.Code {
			hint = mcp.ErrUntrusted.Hint + "; then " + resume
		}
		return fail(why, hint, "%s; run %s is suspended, nothing is lost", v.Reason, v.ID)
	}
	return fail(errRunSuspended, "put it right, then "+resume, "run %s is suspended%s", v.ID, render.Because(v.Reason))
}
