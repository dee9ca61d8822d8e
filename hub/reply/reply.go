// Package reply writes what the servers of wf answer: JSON, and errors with their codes.
//
//	{"schema":"wf.error/v1","code":"unknown_session","message":"…","fix":"GET /v1/runs lists the runs","hint":"wf ls lists the runs"}
//
// The status of an error is looked up by its code in the one table of protocol.Codes; an error without a
// code of that table is "internal", status 500.
package reply

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"

	"wf/protocol"
	"wf/protocol/lazy"
)

// ErrorSchema names the JSON form of an error.
const ErrorSchema = "wf.error/v1"

// Failure is an error on the wire: wf.error/v1.
type Failure struct {
	Schema  string `json:"schema"`
	Code    string `json:"code"`    // stable, snake_case. Codes may be added: treat one that is not known by its status
	Message string `json:"message"` // what, where, why
	Fix     string `json:"fix"`     // what to do
	Hint    string `json:"hint"`    // what commands of wf show in its place, or ""

	HeadSeq protocol.Seq `json:"headSeq,omitempty"` // of future_cursor: the newest event
}

// FixOf is what a client of any kind does about an error: its hint, unless that is for the command line, which a
// client of HTTP does not have; then what the table of codes says.
func FixOf(err error) string {
	if hint := protocol.HintOf(err); hint != "" && !forTerminals().MatchString(hint) {
		return hint
	}
	return codeOf(err).Do
}

// forTerminals finds what is typed in a terminal: a command of wf, or a flag.
var forTerminals = lazy.Regexp(`\bwf [a-z]|(?:^|[\s(])--[a-z]`)

// codeOf is the row of an error in the table of codes.
func codeOf(err error) protocol.Code {
	code := protocol.CodeOf(err)
	if code == "" && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		code = protocol.ErrShuttingDown.Code
	}
	return protocol.CodeNamed(code)
}

// Status is the HTTP status of an error.
func Status(err error) int { return codeOf(err).Status }

// FailureOf is the wire form of an error.
func FailureOf(err error) Failure {
	return Failure{Schema: ErrorSchema, Code: codeOf(err).Name, Message: err.Error(), Fix: FixOf(err), Hint: protocol.HintOf(err)}
}

// Badf is a request that cannot be understood: an error wrapping protocol.ErrBadRequest.
func Badf(format string, args ...any) error {
	return protocol.ErrBadRequest.With(protocol.CodeNamed(protocol.ErrBadRequest.Code).Do, format, args...)
}

// NotFound is a request for what is not served: an error wrapping protocol.ErrNotFound.
func NotFound(r *http.Request) error {
	return protocol.ErrNotFound.With(protocol.CodeNamed(protocol.ErrNotFound.Code).Do, "nothing is served at %s", r.URL.Path)
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
