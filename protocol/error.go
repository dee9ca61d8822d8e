package protocol

import (
	"errors"
	"fmt"
)

// Error is a failure with a code that travels: over the wire, in -o json, and to the exit status.
//
// It is compared by Code, so that errors.Is finds a sentinel through any wrapping.
type Error struct {
	Code    string `json:"code"` // stable, snake_case
	Message string `json:"message"`
	Hint    string `json:"fix"` // what to do, for people
}

func (e *Error) Error() string { return e.Message }

// With is the failure e as it happened: what happened, and what to do about it where the hint is not
// "".
func (e *Error) With(hint, format string, args ...any) error {
	x := *e
	x.Message = fmt.Sprintf(format, args...)
	if hint != "" {
		x.Hint = hint
	}
	return &x
}

// Flat is an error without what it wraps: its code, text and hint, as they travel.
func Flat(err error) *Error {
	return &Error{CodeOf(err), err.Error(), HintOf(err)}
}

// Hinted keeps the code and the text of an error and replaces its hint; one without a code stays as
// it is.
func Hinted(err error, hint string) error {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	x := *e
	x.Message, x.Hint = err.Error(), hint
	return &x
}

// Is makes errors of one code equal.
func (e *Error) Is(target error) bool {
	t, ok := errors.AsType[*Error](target)
	return ok && t.Code == e.Code
}

// The sentinels, each declared once. Wrap them with %w.
var (
	ErrNotFound     = &Error{"not_found", "no such block", "wf ls and wf show list what there is"}
	ErrCorrupt      = &Error{"corrupt", "stored bytes are damaged", "wf verify names every fault"}
	ErrInvalidBlock = &Error{"invalid_block", "not strict DAG-CBOR", "the message names the byte and the rule"}
	ErrHeadMoved    = &Error{"head_moved", "another wf wrote to this run", "try again"}
	ErrFenced       = &Error{"fenced", "another process has taken the run over", "follow it with wf log -f"}
	ErrNoDirectory  = &Error{"store_is_database", "the store is a database, and has no directory", "the manual of the database says how it is done there"}
	ErrUnreachable  = &Error{"store_unreachable", "the database of the store cannot be reached", "try again once it answers: nothing acknowledged is lost"}
	ErrBusy         = &Error{"store_busy", "the store is held by another process", "try again when it is done"}
	ErrStore        = &Error{"store_unreadable", "the store cannot be opened", "wf verify works on a damaged store too"}
	ErrNewerStore   = &Error{"store_newer", "the store was written by a newer wf", "install that version"}
	ErrReadOnly     = &Error{"store_read_only", "the store cannot be written", "check permissions, or choose another with --store"}
	ErrDiskFull     = &Error{"disk_full", "no space left for the store", "free some space, then wf resume: nothing acknowledged is lost"}
	ErrRunLive      = &Error{"run_live", "another process drives this run", "follow it with wf log -f, or stop that process"}
	// ErrServeStopped is the cause with which a daemon that ends suspends its runs.
	ErrServeStopped = &Error{"serve_stopped", "wf serve was stopped", "it goes on with the run when it starts again; wf resume does so now"}

	ErrForeign       = &Error{"foreign_run", "the run came from elsewhere", "wf store adopt RUN lets it go on here"}
	ErrRolledBack    = &Error{"rolled_back", "the store was put back to an older copy", "put the newer copy back, or accept this one with wf store adopt"}
	ErrHeld          = &Error{"store_held", "the store was restored from a backup, and nothing goes on in it", "wf store adopt lists its runs, and lets them go on"}
	ErrUntrusted     = &Error{"untrusted", "it was not trusted", "wf trust FILE"}
	ErrCausedTooDeep = &Error{"caused_too_deep", "notifications start runs in a row", "look at what the notifications of these runs start: wf show RUN tells what a run was caused by"}

	ErrUnknownRun = &Error{"unknown_session", "no such run", "wf ls lists the runs"}
	// ErrRunDeleted is of a run of which only a Tombstone is left.
	ErrRunDeleted = &Error{"run_deleted", "the run was deleted", "its id stays taken; to do the same again, start it under another request id"}
	// ErrNotFinal refuses what is done to runs that have ended alone.
	ErrNotFinal     = &Error{"run_not_final", "the run has not ended", "wf cancel ends it"}
	ErrUnknownStep  = &Error{"unknown_step", "no such step", "wf show lists the steps of a run"}
	ErrFutureCursor = &Error{"future_cursor", "the cursor lies beyond the newest event", "start from 0"}
	ErrBadCursor    = &Error{"bad_cursor", "not a cursor", "a cursor is the seq of the last event held"}
	ErrAmbiguous    = &Error{"ambiguous_ref", "the reference fits more than one thing", "give more characters"}

	ErrUsage      = &Error{"usage", "wrong usage", "--help shows how"}
	ErrInvalid    = &Error{"invalid_workflow", "the workflow is not valid", "wf validate lists every error"}
	ErrInputs     = &Error{"invalid_inputs", "the inputs do not fit the workflow", "wf run FILE --help-inputs"}
	ErrSemantics  = &Error{"unknown_semantics", "the run needs rules this binary lacks", "install a newer wf"}
	ErrModel      = &Error{"model_unavailable", "no model answers", "name one with --model, in the workflow or in .wf/config.yaml"}
	ErrPrice      = &Error{"unknown_price", "limits.cost_usd cannot hold: a price is unknown", "set the price under prices: in .wf/config.yaml, or bound the run by limits.tokens"}
	ErrWaiting    = &Error{"waiting", "the visit waits for an answer", "wf answer"}
	ErrAnswer     = &Error{"invalid_answer", "the answer does not fit what is asked", "wf show tells what the run waits for"}
	ErrNotWaiting = &Error{"not_waiting", "nothing there waits for an answer", "wf show tells what the run waits for"}
	ErrNotRunning = &Error{"not_running", "nothing runs in it", "wf show tells what it waits for"}
	ErrGroupBusy  = &Error{"group_busy", "the concurrency group is busy", "wait until the run that holds it has ended, or cancel that run"}
	ErrLacks      = &Error{"worker_lacks", "this worker lacks what a role needs", "wf serve --has NAME says what a worker has, WF_HAS=NAME does so for any command"}
	ErrFinal      = &Error{"run_final", "the run has ended", "wf fork goes on from any of its steps"}
	ErrVerify     = &Error{"verify_failed", "the check found a fault", "each finding names its repair"}

	ErrUnknownArtifact = &Error{"unknown_artifact", "no such artifact", "wf artifact RUN lists those of a run"}
	ErrRestoreOpen     = &Error{"restore_open", "files are being restored there, and that has not ended", "wf restore --continue goes on, wf restore --abort goes back"}
	ErrExists          = &Error{"file_exists", "a file is there already", "--force replaces it"}

	// ErrUnseen refuses what would go by a look at a workspace that could not be had.
	ErrUnseen = &Error{"workspace_unseen", "a part of the workspace cannot be looked at", "have its owner give the mode back (chmod u+rwx), or take it out of the workspace"}
	// ErrLeft is the alarm of a command that ended: other programs would act on what it left.
	ErrLeft = &Error{"left_behind", "a command left what git acts on outside of the sandbox, and it could not be removed", "remove it before you use git there"}

	ErrCacheMiss     = &Error{"cache_miss", "there is no result to reuse", "start the run without --offline to have it performed"}
	ErrRequestReused = &Error{"request_reused", "the request id was used for another request", "send this request with an id of its own"}

	ErrMemory    = &Error{"memory_refused", "the memory refuses this", ""}
	ErrEmbedding = &Error{"embedding_model", "the memory is indexed with another embedding model", "wf memory reindex --model MODEL indexes it with another one"}

	ErrMethod      = &Error{"method_not_allowed", "the path does not take this method", describes}
	ErrMedia       = &Error{"unsupported_media_type", "the body is not in the form that is wanted", ""}
	ErrUpgrade     = &Error{"upgrade_required", "this is a WebSocket", "connect with a client of WebSockets"}
	ErrMisdirected = &Error{"misdirected", "this server does not go by that name", "use the address that it prints, or allow the name with --host"}
	ErrInsecure    = &Error{"insecure_listen", "beyond this machine only with TLS and a token", "listen on 127.0.0.1, or give --tls-cert and --tls-key"}
	ErrInUse       = &Error{"address_in_use", "the address is taken", "stop the process that listens there, or choose another with --listen"}
)

// CodeOf is the code of the first Error in err's tree, or "".
func CodeOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}

// OfStore reports whether an error is one of the store and not of the run that was read: another run could not be read either.
func OfStore(err error) bool {
	return errors.Is(err, ErrBusy) || errors.Is(err, ErrStore) || errors.Is(err, ErrUnreachable)
}

// HintOf is the hint of the first Error in err's tree, or "".
func HintOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Hint
	}
	return ""
}

// Failure is a visit that did not work. Code and Phase go into the record; Class decides
// whether the role's retry applies.
type Failure struct {
	ErrorInfo
	Class string // timeout, rate_limit, server_error, invalid_output, exit_code, exit_75, …
	// Suspend parks the run instead of failing the visit: credentials, an unreachable model.
	Suspend bool
	// Keeps says that a further attempt goes on where this one ended: see AttemptFailed.
	Keeps bool
	Err   error // what it wraps, or nil
	// Detail is added to the message in the journal alone: what is not the same on every machine,
	// such as the id of a run.
	Detail string
}

// Unwrap gives the cause.
func (f *Failure) Unwrap() error { return f.Err }
