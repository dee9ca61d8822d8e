package model

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/tmc/langchaingo/llms"

	"wf/protocol"
)

// Class is what a failed call means for the caller.
type Class string

// The classes of failed calls. The first three may go away by themselves; unavailable needs a
// person, invalid another request.
const (
	RateLimit   Class = "rate_limit"   // 429
	ServerError Class = "server_error" // 5xx, a cut stream, an error event
	Timeout     Class = "timeout"      // 408, 504, a deadline of the transport
	Unavailable Class = "unavailable"  // 401, 403, unknown model, no such host, no listener, a wrong certificate
	Invalid     Class = "invalid"      // any other refusal of the request
)

// Temporary reports whether the same call may work a little later.
func (c Class) Temporary() bool { return c == RateLimit || c == ServerError || c == Timeout }

// MayPass reports whether the same call may work some minutes later, when its server is less busy or runs again.
func (e *Error) MayPass() bool {
	return e.Class.Temporary() || errors.Is(e.Err, syscall.ECONNREFUSED)
}

// Error is a failed model call.
type Error struct {
	Class      Class
	Status     int           // HTTP status, 0 where there was no response
	RetryAfter time.Duration // what the server asked for, 0 for nothing
	Message    string        // what, in which model; never a key
	Err        error         // the cause, or nil
	Overflow   *Overflow     // the request holds more than the model reads; nil is any other reason
}

func (e *Error) Error() string {
	if e.Err != nil && !strings.Contains(e.Message, e.Err.Error()) {
		return e.Message + ": " + e.Err.Error()
	}
	return e.Message
}

// Unusable is a model that cannot be asked before a person has changed something; what is how it is called.
func Unusable(what, format string, args ...any) *Error {
	return &Error{Class: Unavailable, Message: what + ": " + fmt.Sprintf(format, args...), Err: protocol.ErrModel}
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// ClassOfStatus tells what an HTTP status means.
func ClassOfStatus(status int) Class {
	switch {
	case status == http.StatusTooManyRequests:
		return RateLimit
	case status == http.StatusRequestTimeout, status == http.StatusGatewayTimeout:
		return Timeout
	case status >= 500, status == http.StatusTooEarly:
		return ServerError
	case status == http.StatusUnauthorized, status == http.StatusForbidden,
		status == http.StatusNotFound, status == http.StatusPaymentRequired:
		return Unavailable
	}
	return Invalid
}

// AsError classifies the error of any model; name is the model's, for the message. An error
// that is, or wraps, an *Error is given back as it is.
func AsError(name string, err error) *Error {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e
	}
	e := &Error{Class: classOf(err), Message: fmt.Sprintf("model %s: %v", name, err), Err: err}
	if lc := (*llms.Error)(nil); e.Class == Invalid {
		e.Overflow = OverflowOf(0, []byte(err.Error()))
		if e.Overflow == nil && errors.As(err, &lc) && lc.Code == llms.ErrCodeTokenLimit {
			e.Overflow = &Overflow{}
		}
	}
	return e
}

func classOf(err error) Class {
	var dns *net.DNSError
	var op *net.OpError
	var lc *llms.Error
	var certificate *tls.CertificateVerificationError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &dns) && !dns.IsTemporary, errors.As(err, &op) && op.Op == "dial", errors.As(err, &certificate):
		return Unavailable
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return Timeout
	case errors.As(err, &lc):
		return foreignClass[lc.Code]
	}
	return foreignText(err.Error())
}

// foreignClass maps langchaingo's codes.
var foreignClass = map[llms.ErrorCode]Class{
	llms.ErrCodeUnknown:             ServerError,
	llms.ErrCodeAuthentication:      Unavailable,
	llms.ErrCodeRateLimit:           RateLimit,
	llms.ErrCodeInvalidRequest:      Invalid,
	llms.ErrCodeResourceNotFound:    Unavailable,
	llms.ErrCodeTimeout:             Timeout,
	llms.ErrCodeCanceled:            ServerError,
	llms.ErrCodeQuotaExceeded:       Unavailable,
	llms.ErrCodeContentFilter:       Invalid,
	llms.ErrCodeTokenLimit:          Invalid,
	llms.ErrCodeProviderUnavailable: ServerError,
	llms.ErrCodeNotImplemented:      Invalid,
}

// foreignText reads the status from errors that langchaingo's models give as text alone:
// "API returned unexpected status code: 429: …".
func foreignText(text string) Class {
	const mark = "status code: "
	if _, rest, ok := strings.Cut(text, mark); ok {
		var status int
		if _, err := fmt.Sscanf(rest, "%d", &status); err == nil {
			return ClassOfStatus(status)
		}
	}
	return ServerError
}
