package relay

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"wf/hub/queue"
	"wf/hub/reply"
	"wf/hub/server"
	"wf/protocol"
)

// errForeignAnswer is an answer of a worker that is none of the API.
var errForeignAnswer = &protocol.Error{Code: "bad_answer", Message: "the worker answered with what is not of the API", Hint: "update wf at the worker, or take its token out of the hub's"}

// policies has the media types of the API; what a worker says to be of another type is not passed
// on. The value is the policy for a browser that shows such an answer by itself: it runs nothing.
var policies = map[string]string{
	"application/json":              sandboxed,
	"application/x-ndjson":          sandboxed,
	"application/vnd.ipld.car":      sandboxed,
	server.MediaFile:                sandboxed,
	"application/vnd.ipld.dag-cbor": sandboxed,
	"application/vnd.ipld.raw":      sandboxed,
	"text/event-stream":             sandboxed,
	"image/svg+xml":                 "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox",
}

const sandboxed = "default-src 'none'; frame-ancestors 'none'; sandbox"

// shield is between the answer of a worker and the client. The hub's own headers stay as they
// are; of those of the worker only a few are taken, and none that says to a browser what it may do:
// the media type, if it is one of the API, the length, the version, where a new run is, when to
// come again. An answer before the answer (1xx) and trailers are dropped, and no connection is
// handed over. The client has a while for each piece of the body, so that one that does not read
// holds nothing for ever.
type shield struct {
	to       http.ResponseWriter
	deadline *http.ResponseController
	patience time.Duration
	said     http.Header // by the worker
	begun    bool
	refused  bool // the answer is not passed on
}

func newShield(w http.ResponseWriter, patience time.Duration) *shield {
	return &shield{to: w, deadline: http.NewResponseController(w), patience: patience, said: http.Header{}}
}

// Header is where the headers of the worker are put.
func (s *shield) Header() http.Header { return s.said }

// WriteHeader passes the status on, with the headers that are taken.
func (s *shield) WriteHeader(status int) {
	if s.begun || status < 200 {
		return
	}
	s.begun = true
	own := s.to.Header()
	media, policy, err := mediaOf(status, s.said)
	if err != nil {
		s.refused = true
		reply.Error(s.to, err)
		return
	}
	if media != "" {
		own.Set("Content-Type", media)
		own.Set("Content-Security-Policy", policy)
	}
	if n, err := strconv.ParseUint(s.said.Get("Content-Length"), 10, 63); err == nil && media != "" {
		own.Set("Content-Length", strconv.FormatUint(n, 10))
	}
	if at := s.said.Get("Location"); strings.HasPrefix(at, "/v1/runs/") && queue.Plain(at, 512) {
		own.Set("Location", at)
	}
	if n, err := strconv.ParseUint(s.said.Get("Retry-After"), 10, 16); err == nil {
		own.Set("Retry-After", strconv.FormatUint(n, 10))
	}
	own.Set("Cache-Control", "no-store")
	if tag := s.said.Get("ETag"); tag != "" && queue.Plain(tag, 512) {
		own.Set("ETag", tag)
		own.Set("Cache-Control", "private, no-cache")
	}
	if media == server.MediaFile {
		own.Set("Content-Disposition", "attachment")
		own.Set("Accept-Ranges", "bytes")
		if at, ok := rangeOf(s.said.Get("Content-Range")); ok && status == http.StatusPartialContent {
			own.Set("Content-Range", at)
		}
	}
	if media == "text/event-stream" {
		own.Set("X-Accel-Buffering", "no") // of proxies before the hub
	}
	s.to.WriteHeader(status)
}

// rangeOf reads which bytes of how many an answer has.
func rangeOf(text string) (string, bool) {
	var first, last, size uint64
	n, err := fmt.Sscanf(text, "bytes %d-%d/%d", &first, &last, &size)
	return fmt.Sprintf("bytes %d-%d/%d", first, last, size), n == 3 && err == nil
}

// mediaOf is the type of a worker's answer with its policy, "" for one without a body. What is no
// answer of the API is an error wrapping errForeignAnswer.
func mediaOf(status int, head http.Header) (media, policy string, err error) {
	if status == http.StatusNoContent || status == http.StatusNotModified {
		return "", "", nil
	}
	said := head.Get("Content-Type")
	media, _, err = mime.ParseMediaType(said)
	policy, ok := policies[media]
	switch {
	case err != nil || !ok:
		return "", "", fmt.Errorf("content of the type %.100q: %w", said, errForeignAnswer)
	case status/100 == 3:
		return "", "", fmt.Errorf("status %d: %w", status, errForeignAnswer)
	case head.Get("Content-Encoding") != "":
		return "", "", fmt.Errorf("content that is encoded as %.100q: %w", head.Get("Content-Encoding"), errForeignAnswer)
	}
	return media, policy, nil
}

// Write passes a piece of the body on.
func (s *shield) Write(b []byte) (int, error) {
	if !s.begun {
		s.WriteHeader(http.StatusOK)
	}
	if s.refused {
		return len(b), nil // dropped
	}
	// Where deadlines cannot be set (a recorder) the client reads.
	_ = s.deadline.SetWriteDeadline(time.Now().Add(s.patience))
	return s.to.Write(b)
}

// FlushError is for http.ResponseController: streams are passed on as they come.
func (s *shield) FlushError() error {
	if err := s.deadline.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}
