package server

import (
	"log/slog"
	"net/http"
	"strings"
	"time"

	"wf/metrics"
)

// A Meter counts the requests that a guard let in, by the kind of their path and their status.
type Meter struct {
	log      *slog.Logger
	requests *metrics.Counter
	seconds  *metrics.Histogram
	open     *metrics.Gauge
	refused  *metrics.Counter
}

// NewMeter registers what it counts; each request is a line of the log at the level debug.
func NewMeter(r *metrics.Registry, log *slog.Logger) *Meter {
	class := metrics.Label{Name: "class"}
	return &Meter{log: log,
		requests: r.Counter("wf_http_requests_total", "Requests that were let in, by the kind of their path and their status; streams when they end.", class, metrics.Label{Name: "status"}),
		seconds:  r.Histogram("wf_http_request_seconds", "Time that answers took, by the kind of their path; without streams.", metrics.Seconds, class),
		open:     r.Gauge("wf_http_open", "Requests that are being answered, by the kind of their path; streams are open as long as their client reads.", class),
		refused:  r.Counter("wf_http_refused_total", "Requests that were refused before they reached the API, by the code of the error.", class),
	}
}

// Refused counts a request that a guard refused.
func (m *Meter) Refused(code string) { m.refused.Inc(code) }

// Wrap counts what a handler answers.
func (m *Meter) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		class, began := classOf(r.URL.Path), time.Now()
		seen := &status{ResponseWriter: w}
		m.open.Add(1, class)
		defer func() {
			took := time.Since(began)
			m.open.Add(-1, class)
			m.requests.Inc(class, seen.text())
			if !streams[class] {
				m.seconds.Observe(took.Seconds(), class)
			}
			m.log.Debug("request", "method", r.Method, "path", r.URL.Path, "status", seen.code, "seconds", took.Seconds())
		}()
		next.ServeHTTP(seen, r)
	})
}

// status is a response with its status noted.
type status struct {
	http.ResponseWriter
	code int
}

// WriteHeader notes the first status that is final, or that hands the connection over.
func (s *status) WriteHeader(code int) {
	if s.code == 0 && (code >= 200 || code == http.StatusSwitchingProtocols) {
		s.code = code
	}
	s.ResponseWriter.WriteHeader(code)
}

// Unwrap lets http.ResponseController reach deadlines, flushing and the connection.
func (s *status) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// text is the status as it is counted: 200 where none was written, which is what a client then sees.
func (s *status) text() string {
	if s.code == 0 {
		s.code = http.StatusOK
	}
	return string([]byte{byte('0' + s.code/100%10), byte('0' + s.code/10%10), byte('0' + s.code%10)})
}

// streams are the kinds whose requests last as long as their reader wants.
var streams = map[string]bool{"replay": true, "agent": true, "archive": true}

// classOf is the kind of a path: none tells a run, step or person from others.
func classOf(path string) string {
	rest, api := strings.CutPrefix(path, "/v1/")
	if !api {
		switch path {
		case "/metrics":
			return "metrics"
		case "/healthz", "/readyz":
			return "health"
		}
		return "page"
	}
	first, more, _ := strings.Cut(rest, "/")
	switch first {
	case "runs":
		switch {
		case more == "":
			return "runs"
		case strings.HasSuffix(more, "/archive"), strings.HasSuffix(more, "/archive/contents"), strings.HasSuffix(more, "/archive/parts"):
			return "archive"
		}
		return "run"
	case "archives":
		return "archive"
	case "replay", "sessions":
		return "replay"
	case "agent":
		return "agent"
	case "memories", "blocks", "workflows", "agents", "queue", "hooks":
		return first
	}
	return "other"
}
