package protocol

import (
	"context"
	"errors"
)

// Errors of live streams. The codes of replay_error are these and those of ErrUnknownRun,
// ErrRunDeleted, ErrBadCursor and ErrFutureCursor.
var (
	ErrBadRequest   = &Error{"bad_request", "not a frame of the replay protocol", "reference of the protocol: docs/replay.md"}
	ErrUnauthorized = &Error{"unauthorized", "no valid token", "give the token as Authorization: Bearer, or log in"}
	ErrForbidden    = &Error{"forbidden", "not allowed with this token or from this origin", "use a token with the scope that is named"}
	ErrGap          = &Error{"gap", "the journal cannot be read without a hole", "wf verify names the fault"}
	ErrWorkerAway   = &Error{"agent_unavailable", "the worker that has the run is not connected", "it is tried again when the worker is back"}
	ErrWorkerMoved  = &Error{"agent_moved", "another worker has the run now", "ask again"}
	ErrTooSlow      = &Error{"too_slow", "the client did not read in time", "connect again with the last seq: nothing is lost"}
	ErrTooLarge     = &Error{"too_large", "longer than a frame may be", "a frame from a client has up to 64 KiB"}
	ErrRateLimited  = &Error{"rate_limited", "too many at once", "close some, or wait and try again"}
	ErrShuttingDown = &Error{"shutting_down", "the server stops", "connect again with the last seq"}
	ErrInternal     = &Error{"internal", "the server failed", "its log says more"}
)

// replayErrors are the errors that a replay_error may carry, by their codes.
var replayErrors = func() map[string]*Error {
	m := map[string]*Error{}
	for _, e := range []*Error{ErrBadRequest, ErrUnauthorized, ErrForbidden, ErrUnknownRun, ErrRunDeleted, ErrBadCursor, ErrFutureCursor, ErrGap,
		ErrWorkerAway, ErrWorkerMoved, ErrTooSlow, ErrTooLarge, ErrRateLimited, ErrShuttingDown, ErrInternal, ErrNotFound} {
		m[e.Code] = e
	}
	return m
}()

// ReplayError makes the frame that tells a client of err. A code that the protocol does not
// have becomes internal, a damaged journal gap, an ended context shutting_down.
func ReplayError(id string, err error) *Frame {
	f := &Frame{Type: FrameReplayError, ID: id, Code: CodeOf(err), Message: err.Error()}
	switch {
	case errors.Is(err, ErrCorrupt):
		f.Code = ErrGap.Code
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		f.Code, f.Message = ErrShuttingDown.Code, ErrShuttingDown.Message
	case replayErrors[f.Code] == nil:
		f.Code = ErrInternal.Code
	}
	return f
}

// Err is the error that a replay_error tells of: it wraps the sentinel of its code.
func (f *Frame) Err() error {
	e := &Error{Code: f.Code, Message: f.Message}
	if known := replayErrors[f.Code]; known != nil {
		e.Hint = known.Hint
	}
	return e
}
