// Package reply writes what the servers of wf answer: JSON, and errors with their codes.
//
//	{"schema":"wf.error/v1","code":"unknown_session","message":"…","fix":"wf ls lists the runs"}
//
// The status of an error is looked up by its code in one table; an error without a code is
// "internal", status 500.
package reply

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"

	"wf/protocol"
)

// ErrorSchema names the JSON form of an error.
const ErrorSchema = "wf.error/v1"

// Failure is an error on the wire: wf.error/v1.
type Failure struct {
	Schema  string `json:"schema"`
	Code    string `json:"code"`    // stable, snake_case; "internal" where there is none
	Message string `json:"message"` // what, where, why
	Fix     string `json:"fix"`     // what to do, or ""

	HeadSeq protocol.Seq `json:"headSeq,omitempty"` // of future_cursor: the newest event
}

// statuses is the one table from codes to statuses; a code that is not listed is 500.
var statuses = map[string]int{
	protocol.ErrBadRequest.Code: http.StatusBadRequest,
	protocol.ErrUsage.Code:      http.StatusBadRequest,
	protocol.ErrBadCursor.Code:  http.StatusBadRequest,

	protocol.ErrUnauthorized.Code:  http.StatusUnauthorized,
	protocol.ErrForbidden.Code:     http.StatusForbidden,
	protocol.ErrUntrusted.Code:     http.StatusForbidden,
	protocol.ErrCausedTooDeep.Code: http.StatusConflict,
	protocol.ErrNotFound.Code:      http.StatusNotFound,
	protocol.ErrUnknownRun.Code:    http.StatusNotFound,
	protocol.ErrRunDeleted.Code:    http.StatusGone,

	protocol.ErrAmbiguous.Code:    http.StatusConflict,
	protocol.ErrFutureCursor.Code: http.StatusConflict,
	protocol.ErrHeadMoved.Code:    http.StatusConflict,
	protocol.ErrGroupBusy.Code:    http.StatusConflict,
	protocol.ErrRunLive.Code:      http.StatusConflict,
	protocol.ErrForeign.Code:      http.StatusConflict,
	protocol.ErrRolledBack.Code:   http.StatusConflict,
	protocol.ErrHeld.Code:         http.StatusConflict,
	protocol.ErrNotWaiting.Code:   http.StatusConflict,
	protocol.ErrFinal.Code:        http.StatusConflict,
	protocol.ErrNotFinal.Code:     http.StatusConflict,
	protocol.ErrWaiting.Code:      http.StatusConflict,
	protocol.ErrUnknownStep.Code:  http.StatusNotFound,

	protocol.ErrRequestReused.Code: http.StatusConflict,
	protocol.ErrNotRunning.Code:    http.StatusConflict,

	protocol.ErrTooLarge.Code:    http.StatusRequestEntityTooLarge,
	protocol.ErrMethod.Code:      http.StatusMethodNotAllowed,
	protocol.ErrMisdirected.Code: http.StatusMisdirectedRequest,
	protocol.ErrInvalid.Code:     http.StatusUnprocessableEntity,
	protocol.ErrInputs.Code:      http.StatusUnprocessableEntity,
	protocol.ErrPrice.Code:       http.StatusUnprocessableEntity,
	protocol.ErrMemory.Code:      http.StatusUnprocessableEntity,
	protocol.ErrEmbedding.Code:   http.StatusConflict,
	protocol.ErrRateLimited.Code: http.StatusTooManyRequests,

	protocol.ErrSemantics.Code: http.StatusNotImplemented,
	protocol.ErrBusy.Code:      http.StatusServiceUnavailable,
	protocol.ErrModel.Code:     http.StatusServiceUnavailable,
	protocol.ErrDiskFull.Code:  http.StatusInsufficientStorage,

	protocol.ErrWorkerAway.Code:   http.StatusServiceUnavailable,
	protocol.ErrShuttingDown.Code: http.StatusServiceUnavailable,
}

// Status is the HTTP status of an error.
func Status(err error) int {
	if s, ok := statuses[protocol.CodeOf(err)]; ok {
		return s
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// FailureOf is the wire form of an error.
func FailureOf(err error) Failure {
	f := Failure{Schema: ErrorSchema, Code: protocol.CodeOf(err), Message: err.Error(), Fix: protocol.HintOf(err)}
	if f.Code == "" {
		f.Code = "internal"
	}
	return f
}

// Badf is a request that cannot be understood: an error wrapping protocol.ErrBadRequest.
func Badf(format string, args ...any) error {
	return &protocol.Error{Code: protocol.ErrBadRequest.Code, Message: fmt.Sprintf(format, args...), Hint: "GET /v1/openapi.json describes every request"}
}

// BodyError says why a JSON body could not be read: an error wrapping protocol.ErrTooLarge or
// protocol.ErrBadRequest.
func BodyError(err error) error {
	var big *http.MaxBytesError
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &big):
		return protocol.ErrTooLarge.With("send less: large texts belong in files of the workspace", "the body has more than %d bytes", big.Limit)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return Badf("the body breaks off in the middle of its JSON")
	case errors.Is(err, io.EOF):
		return Badf("the body is empty, a JSON object is wanted")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return Badf("the body did not come in time")
	case errors.As(err, &syntax):
		return Badf("the body is no JSON at byte %d: %v", syntax.Offset, syntax)
	case errors.As(err, &kind) && kind.Field != "":
		return Badf("%s: a JSON %s is given, %s is wanted", kind.Field, kind.Value, wanted[kind.Type.Kind()])
	case errors.As(err, &kind):
		return Badf("the body holds a JSON %s where %s is wanted", kind.Value, wanted[kind.Type.Kind()])
	}
	return Badf("body: %s", strings.TrimPrefix(err.Error(), "json: "))
}

// wanted are the kinds of fields in the words of JSON.
var wanted = map[reflect.Kind]string{
	reflect.Struct: "an object", reflect.Map: "an object", reflect.Slice: "an array", reflect.String: "a string",
	reflect.Bool: "true or false", reflect.Int: "a whole number", reflect.Int64: "a whole number", reflect.Float64: "a number",
}

// Error answers with an error.
func Error(w http.ResponseWriter, err error) {
	JSON(w, Status(err), FailureOf(err))
}

// JSON answers with one object. A value that cannot be encoded is answered as an internal
// error: half an object is never sent.
func JSON(w http.ResponseWriter, status int, v any) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		b.Reset()
		status = http.StatusInternalServerError
		if err := enc.Encode(FailureOf(err)); err != nil {
			panic(err) // four strings can be encoded
		}
	}
	Bytes(w, status, "application/json", b.Bytes())
}

// WriteTime is how long a client may take to read a whole answer.
const WriteTime = 30 * time.Second

// Bytes answers with a whole body of a media type.
func Bytes(w http.ResponseWriter, status int, media string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", media)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
	// A client that does not read must not hold the answer for ever. Where deadlines cannot be set
	// (a recorder, a stream of a hub) the other end has its own.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(WriteTime))
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has gone needs no answer
}
