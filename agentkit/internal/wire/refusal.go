package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"wf/agentkit/model"
	"wf/protocol/lazy"
	"wf/roles"
)

// ErrorText finds the message in an error body, whatever its shape.
func ErrorText(body []byte) string {
	var shape struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
	}
	text := strings.TrimSpace(string(body))
	if json.Unmarshal(body, &shape) == nil {
		var inner struct {
			Message string `json:"message"`
		}
		var plain string
		switch {
		case json.Unmarshal(shape.Error, &inner) == nil && inner.Message != "":
			text = inner.Message
		case json.Unmarshal(shape.Error, &plain) == nil && plain != "":
			text = plain
		case shape.Message != "":
			text = shape.Message
		}
	}
	text = roles.HideKeys(text) // a server may echo the key that it refuses
	const most = 500
	if r := []rune(strings.ToValidUTF8(text, "�")); len(r) > most {
		return string(r[:most]) + "…"
	}
	if text == "" {
		return "no reason given"
	}
	return strings.ToValidUTF8(text, "�")
}

// Failed is an error inside a stream; status is that of its kind, 0 where it has none.
func Failed(name string, status int, data []byte) *model.Error {
	e := &model.Error{Class: model.ServerError, Status: status, Overflow: model.OverflowOf(status, data),
		Message: fmt.Sprintf("model %s: the stream holds an error: %s", name, ErrorText(data))}
	switch {
	case e.Overflow != nil:
		e.Class = model.Invalid
	case status != 0:
		e.Class = model.ClassOfStatus(status)
	}
	return e
}

// spent is an account without money, which is none that may answer a little later, whatever the status:
// OpenAI says it with 429, Anthropic with 400.
var spent = lazy.Regexp(`"(insufficient_quota|billing_hard_limit_reached|billing_not_active|billing_error)"|(?i)credit balance is too low`)

// RetryAfter reads Retry-After (seconds or a date) and retry-after-ms; 0 is none. A date counts
// from the server's own Date, or else from now: the clock of this machine may be wrong.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	if ms, ok := span(h.Get("Retry-After-Ms"), time.Millisecond); ok {
		return ms
	}
	v := h.Get("Retry-After")
	if s, ok := span(v, time.Second); ok {
		return s
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	if sent, err := http.ParseTime(h.Get("Date")); err == nil {
		now = sent
	}
	return max(at.Sub(now), 0)
}

// forever is longer than any wait.
const forever = 100 * 365 * 24 * time.Hour

// span reads a number of units, at most forever.
func span(v string, unit time.Duration) (time.Duration, bool) {
	n, err := strconv.ParseFloat(v, 64)
	if errors.Is(err, strconv.ErrRange) {
		err = nil // infinite, or next to nothing
	}
	if err != nil || !(n > 0) { // NaN is neither
		return 0, false
	}
	return time.Duration(min(n*float64(unit), float64(forever))), true
}
