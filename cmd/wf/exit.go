package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"wf/agentkit/config"
	"wf/agentkit/embed"
	"wf/agentkit/mcp"
	"wf/agentkit/memory"
	"wf/cmd/internal/help"
	"wf/daemon"
	"wf/hub/client"
	"wf/protocol"
	"wf/service/compose"
)

// Outcomes of a run, and of a check, that are not errors of wf itself.
var (
	errRunFailed    = &protocol.Error{Code: "run_failed", Message: "the run failed", Hint: "wf log shows the step that failed"}
	errRunCancelled = &protocol.Error{Code: "run_cancelled", Message: "the run was cancelled", Hint: "wf fork goes on from any of its steps"}
	errRunSuspended = &protocol.Error{Code: "run_suspended", Message: "the run is suspended", Hint: "wf resume goes on"}
	errRunLimit     = &protocol.Error{Code: "limit_reached", Message: "the run reached a limit", Hint: "wf resume with a higher limit goes on"}
	errDifference   = &protocol.Error{Code: "difference", Message: "the check found a difference", Hint: "the lines above name it"}
	errRefused      = &protocol.Error{Code: "refused", Message: "nothing was done", Hint: "--yes does it without asking"}
)

// exits is the one table of exit statuses. An error is looked up by its code; one without a
// code, or whose code is not listed, gives 1.
var exits = []struct {
	status  int
	meaning string
	codes   []string
}{
	{0, "done; for a run only after its done event is durable", nil},
	{1, "the run failed, is suspended by an error or stalled, or the check found a difference", []string{
		errRunFailed.Code, errRunCancelled.Code, errRunSuspended.Code, errDifference.Code, errRefused.Code,
		protocol.ErrInvalidBlock.Code, protocol.ErrNotFound.Code, protocol.ErrHeadMoved.Code,
	}},
	{2, "wrong usage", []string{
		protocol.ErrUsage.Code, protocol.ErrInputs.Code, protocol.ErrUnknownRun.Code, protocol.ErrAmbiguous.Code,
		protocol.ErrFutureCursor.Code, protocol.ErrBadCursor.Code, protocol.ErrNotWaiting.Code, protocol.ErrFinal.Code, protocol.ErrMisdirected.Code,
		protocol.ErrInsecure.Code, daemon.ErrNone.Code, memory.ErrNote.Code,
	}},
	{3, "invalid workflow, config or version, nothing ran", []string{
		protocol.ErrInvalid.Code, protocol.ErrSemantics.Code, protocol.ErrPrice.Code, config.ErrConfig.Code,
	}},
	{4, "model, credentials or sandbox unavailable, or trust wanting", []string{
		protocol.ErrModel.Code, protocol.ErrUnauthorized.Code, protocol.ErrForbidden.Code, mcp.ErrUntrusted.Code, protocol.ErrForeign.Code, protocol.ErrUntrusted.Code,
		compose.ErrUnconfined.Code, client.ErrForeignServer.Code, memory.ErrModel.Code, embed.ErrDimension.Code, embed.ErrTable.Code, embed.ErrAnswer.Code,
	}},
	{5, "store unreadable, busy or disk full", []string{
		protocol.ErrStore.Code, protocol.ErrBusy.Code, protocol.ErrDiskFull.Code, protocol.ErrReadOnly.Code,
		protocol.ErrNewerStore.Code, protocol.ErrRunLive.Code, client.ErrUnreachable.Code, protocol.ErrWorkerAway.Code, protocol.ErrInUse.Code,
	}},
	{6, "a limit or budget was hit (suspended)", []string{errRunLimit.Code}},
	{7, "verification failed (corrupt, incomplete, rolled back)", []string{protocol.ErrVerify.Code, protocol.ErrCorrupt.Code, protocol.ErrRolledBack.Code}},
	{8, "waiting for a person, timer or signal", []string{protocol.ErrWaiting.Code}},
	{129, "the terminal was closed (the run is suspended safely)", nil},
	{130, "interrupted by Ctrl-C (the run is suspended safely)", nil},
	{143, "terminated (the run is suspended safely)", nil},
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
		if code != "" && slices.Contains(e.codes, code) {
			return e.status
		}
	}
	return 1
}

// meanings are the exit statuses as help shows them.
func meanings() (out []help.ExitStatus) {
	for _, e := range exits {
		out = append(out, help.ExitStatus{Status: e.status, Meaning: e.meaning})
	}
	return out
}

func exitCodesTopic() *cobra.Command {
	topic := &cobra.Command{Use: "exit-codes", Short: "What the exit statuses mean"}
	topic.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		if _, err := fmt.Fprint(cmd.OutOrStdout(), help.Exits(meanings())); err != nil {
			cmd.PrintErrln(err)
		}
	})
	return topic
}
