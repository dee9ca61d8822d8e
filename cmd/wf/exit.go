package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"wf/agentkit/config"
	"wf/agentkit/embed"
	"wf/agentkit/mcp"
	"wf/api"
	"wf/cmd/internal/help"
	"wf/cmd/internal/render"
	"wf/daemon"
	"wf/hub/client"
	"wf/hub/reply"
	"wf/protocol"
	"wf/service"
	"wf/service/compose"
)

// Outcomes of a run, and of a check, that are not errors of wf itself.
var (
	errRunFailed    = &protocol.Error{Code: "run_failed", Message: "the run failed", Hint: "wf log shows the step that failed"}
	errRunCancelled = &protocol.Error{Code: "run_cancelled", Message: "the run was cancelled", Hint: "wf fork goes on from any of its steps"}
	errRunSuspended = &protocol.Error{Code: "run_suspended", Message: "the run is suspended", Hint: "wf resume goes on"}
	errRunLimit     = &protocol.Error{Code: "limit_reached", Message: "the run reached a limit", Hint: "wf resume with a higher limit goes on"}
	errDifference   = &protocol.Error{Code: "difference", Message: "the check found a difference", Hint: "the lines above name it"}
	errConflicts    = &protocol.Error{Code: "conflicts", Message: "files were left alone", Hint: "--force replaces them, and keeps what it replaces"}
	errRefused      = &protocol.Error{Code: "refused", Message: "nothing was done", Hint: "--yes does it without asking"}
)

// exits is the one table of exit statuses. An error is looked up by its code; one without a
// code, or whose code is not listed, gives 1.
var exits = []help.ExitStatus{
	{Status: 0, Meaning: "done; for a run only after its done event is durable"},
	{Status: 1, Meaning: "the run failed, is suspended by an error or stalled, or the check found a difference", Codes: []string{
		errRunFailed.Code, errRunCancelled.Code, errRunSuspended.Code, errDifference.Code, errRefused.Code, errConflicts.Code,
		protocol.ErrInvalidBlock.Code, protocol.ErrNotFound.Code, protocol.ErrHeadMoved.Code, protocol.ErrServeStopped.Code, protocol.ErrCausedTooDeep.Code, protocol.ErrCacheMiss.Code, service.ErrNothingStaged.Code, service.ErrGit.Code, protocol.ErrLeft.Code,
	}},
	{Status: 2, Meaning: "wrong usage", Codes: []string{
		protocol.ErrUsage.Code, protocol.ErrInputs.Code, protocol.ErrAnswer.Code, protocol.ErrMedia.Code, protocol.ErrUpgrade.Code, protocol.ErrUnknownRun.Code, protocol.ErrUnknownStep.Code, protocol.ErrMethod.Code, protocol.ErrNotRunning.Code, protocol.ErrRunDeleted.Code, protocol.ErrNotFinal.Code, protocol.ErrAmbiguous.Code,
		protocol.ErrFutureCursor.Code, protocol.ErrBadCursor.Code, protocol.ErrNotWaiting.Code, protocol.ErrFinal.Code, protocol.ErrMisdirected.Code,
		protocol.ErrInsecure.Code, daemon.ErrNone.Code, protocol.ErrMemory.Code, protocol.ErrRequestReused.Code, protocol.ErrUnknownArtifact.Code, protocol.ErrExists.Code, protocol.ErrRestoreOpen.Code, service.ErrNotBisectable.Code,
	}},
	{Status: 3, Meaning: "invalid workflow, config or version, nothing ran", Codes: []string{
		protocol.ErrInvalid.Code, protocol.ErrSemantics.Code, protocol.ErrPrice.Code, config.ErrConfig.Code,
	}},
	{Status: 4, Meaning: "model, credentials or sandbox unavailable, or trust wanting", Codes: []string{
		protocol.ErrModel.Code, protocol.ErrUnauthorized.Code, protocol.ErrForbidden.Code, mcp.ErrUntrusted.Code, protocol.ErrForeign.Code, protocol.ErrUntrusted.Code, protocol.ErrLacks.Code,
		compose.ErrUnconfined.Code, protocol.ErrUnseen.Code, client.ErrForeignServer.Code, protocol.ErrEmbedding.Code, embed.ErrDimension.Code, embed.ErrTable.Code, embed.ErrAnswer.Code,
	}},
	{Status: 5, Meaning: "store unreadable, busy or disk full", Codes: []string{
		protocol.ErrStore.Code, protocol.ErrNoDirectory.Code, protocol.ErrUnreachable.Code, protocol.ErrFenced.Code, protocol.ErrBusy.Code, protocol.ErrDiskFull.Code, protocol.ErrReadOnly.Code,
		protocol.ErrNewerStore.Code, protocol.ErrRunLive.Code, protocol.ErrGroupBusy.Code, client.ErrUnreachable.Code, protocol.ErrWorkerAway.Code, protocol.ErrInUse.Code, protocol.ErrHeld.Code,
	}},
	{Status: 6, Meaning: "a limit or budget was hit (suspended)", Codes: []string{errRunLimit.Code}},
	{Status: 7, Meaning: "verification failed (corrupt, incomplete, rolled back)", Codes: []string{protocol.ErrVerify.Code, protocol.ErrCorrupt.Code, protocol.ErrRolledBack.Code}},
	{Status: 8, Meaning: "waiting for a person, timer or signal", Codes: []string{protocol.ErrWaiting.Code}},
	{Status: 129, Meaning: "the terminal was closed (the run is suspended safely)"},
	{Status: 130, Meaning: "interrupted by Ctrl-C (the run is suspended safely)"},
	{Status: 143, Meaning: "terminated (the run is suspended safely)"},
}

// statusOf is the exit status of an error.
func statusOf(err error) int {
	var sig signalled
	switch {
	case err == nil:
		return 0
	case errors.As(err, &sig):
		return 128 + int(sig.sig)
	case errors.Is(err, syscall.ENOSPC):
		return 5
	case errors.Is(err, context.Canceled):
		return 130
	}
	code := protocol.CodeOf(err)
	for _, e := range exits {
		if code != "" && slices.Contains(e.Codes, code) {
			return e.Status
		}
	}
	return 1
}

// lastSteps is how many steps of a run a person is shown.
const lastSteps = 200

// outcome is what the state of a run is to the caller of wf: nil when it is done.
func outcome(v *api.Run) error {
	for _, c := range v.CleanupFailed {
		if c.Code == protocol.ErrLeft.Code {
			return protocol.ErrLeft.With("", "ALARM: run %s is %s, and its always role %s left what git acts on: wf log %s names it", v.ID, v.Status, c.Role, v.ID)
		}
	}
	switch v.Status {
	case protocol.Done:
		return nil
	case protocol.Failed:
		return errRunFailed.With(failedHint(v), "run %s failed%s", v.ID, render.Because(v.Reason))
	case protocol.Cancelled:
		return errRunCancelled.With("", "run %s was cancelled%s", v.ID, render.Because(v.Reason))
	case protocol.Waiting:
		return protocol.ErrWaiting.With(render.Next(v), "run %s waits%s", v.ID, render.WaitsFor(v))
	case protocol.Suspended:
		return suspended(v)
	}
	if stands := render.StateOf(v); stands.Idle != "" {
		return errRunSuspended.With(render.ResumeCommand(v)+" goes on with it", "run %s is not over: %s", v.ID, stands.Why())
	}
	return errRunSuspended.With("wf watch "+string(v.ID)+" follows it", "run %s is not over", v.ID)
}

// failedHint names what shows why a run failed.
func failedHint(v *api.Run) string {
	id := string(v.ID)
	if v.Cause == nil {
		return protocol.ShellCommand("wf", "log", id) + " shows the step that failed"
	}
	return protocol.ShellCommand("wf", "explain", id) + " shows why; " + protocol.ShellCommand("wf", "log", id+":"+v.Cause.Step) + " shows the step that caused it"
}

// suspended tells a limit, a missing model and other errors apart: they have exit statuses of
// their own.
func suspended(v *api.Run) error {
	resume := "wf resume " + string(v.ID)
	if v.Mend != nil {
		return errRunSuspended.With("a run keeps its definition: "+render.NextMend(v), "run %s is suspended%s", v.ID, render.Because(v.Reason))
	}
	if v.Suspended == protocol.ByLimit {
		return errRunLimit.With(render.Next(v), "run %s is suspended%s", v.ID, render.Because(v.Reason))
	}
	if why := (&protocol.Error{Code: v.Code}); v.Code != "" && statusOf(why) != statusOf(errRunSuspended) {
		hint := "put it right, then " + resume
		for _, known := range []*protocol.Error{mcp.ErrUntrusted, protocol.ErrUnseen} {
			if v.Code == known.Code {
				hint = known.Hint + "; then " + resume
			}
		}
		return why.With(hint, "%s; run %s is suspended, nothing is lost", v.Reason, v.ID)
	}
	return errRunSuspended.With("put it right, then "+resume, "run %s is suspended%s", v.ID, render.Because(v.Reason))
}

// finish reports an error and gives the exit status.
func (a *app) finish(err error) int {
	a.Close()
	status := statusOf(err)
	if err == nil || errors.As(err, new(silent)) {
		return status
	}
	message, hint := messageOf(err), a.Commands(protocol.HintOf(err))
	fmt.Fprintln(a.Err, a.Err.Red("error:")+" "+message)
	if hint != "" {
		fmt.Fprintln(a.Err, a.Err.Bold("fix:")+"   "+hint)
	}
	if a.AsJSON() && !a.Answered {
		code := protocol.CodeOf(err)
		if code == "" {
			code = "error"
		}
		if err := a.Answer(errorJSON{reply.Failure{Schema: reply.ErrorSchema, Code: code, Message: message, Fix: hint, Hint: hint}, status}); err != nil {
			fmt.Fprintln(a.Err, "error: "+err.Error())
		}
	}
	return status
}

// errorJSON is wf.error/v1 as servers write it too, with the exit status.
type errorJSON struct {
	reply.Failure
	Exit int `json:"exit"`
}

// silent is an error that the answer has told already; only its exit status is left.
type silent struct{ error }

func (s silent) Unwrap() error { return s.error }

// messageOf is an error as a sentence for people, without control characters.
func messageOf(err error) string {
	return strings.TrimRight(render.Visible(err.Error()), "\n")
}
