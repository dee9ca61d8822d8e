package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"wf/hub/guard"
	"wf/metrics"
	"wf/protocol"
)

func TestReadinessSaysNoMoreThanYesOrNo(t *testing.T) {
	for _, test := range []struct {
		ready  func(context.Context) error
		status int
		body   string
	}{
		{nil, 200, `{"schema":"wf.ready/v1","ready":true}`},
		{func(context.Context) error { return nil }, 200, `{"schema":"wf.ready/v1","ready":true}`},
		{func(context.Context) error { return errors.New("/home/ada/.wf is locked by 4711") }, 503, `{"schema":"wf.ready/v1","ready":false}`},
	} {
		s := &Server{Ready: test.ready}
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil)) // without an identity
		if w.Code != test.status || strings.TrimSpace(w.Body.String()) != test.body || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%d %s %v, want %d %s", w.Code, w.Body, w.Header(), test.status, test.body)
		}
	}
}

func TestMetricsWantTheirScopeAndAreServed(t *testing.T) {
	r := new(metrics.Registry)
	r.Gauge("wf_x", "X.").Set(3)
	s := &Server{Metrics: r}
	for scope, status := range map[guard.Scope]int{guard.Metrics: 200, guard.Admin: 200, guard.Read: 403, guard.Run: 403, guard.Answer: 403, guard.Worker: 403} {
		req := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		req = req.WithContext(guard.With(req.Context(), guard.Identity{Name: "p", Scopes: []guard.Scope{scope}}))
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, req)
		if w.Code != status || status == 200 != strings.Contains(w.Body.String(), "wf_x 3\n") {
			t.Errorf("with %s: %d %s, want %d", scope, w.Code, w.Body, status)
		}
	}
}

func TestRequestsAreCountedByKindAndStatus(t *testing.T) {
	r := new(metrics.Registry)
	m := NewMeter(r, slog.New(slog.DiscardHandler))
	inner := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/runs/R":
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusNotFound)
		case "/v1/replay":
			// What streams need passes through.
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
		default:
			_, _ = io.WriteString(w, "x")
		}
	})
	for _, path := range []string{"/", "/assets/app.js", "/healthz", "/readyz", "/metrics", "/v1/runs", "/v1/runs/R", "/v1/runs/R/steps/a", "/v1/runs/R/archive", "/v1/archives", "/v1/replay",
		"/v1/sessions/R/events", "/v1/agent", "/v1/agents", "/v1/queue", "/v1/hooks/ada", "/v1/memories/items/12", "/v1/blocks/bafy", "/v1/ada", "/v1/"} {
		m.Wrap(inner).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil))
	}
	m.Refused(protocol.ErrForbidden.Code)
	var b strings.Builder
	if _, err := r.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`wf_http_requests_total{class="page",status="200"} 2`, `wf_http_requests_total{class="health",status="200"} 2`, `wf_http_requests_total{class="metrics",status="200"} 1`,
		`wf_http_requests_total{class="runs",status="200"} 1`, `wf_http_requests_total{class="run",status="404"} 1`, `wf_http_requests_total{class="run",status="200"} 1`,
		`wf_http_requests_total{class="archive",status="200"} 2`, `wf_http_requests_total{class="replay",status="200"} 2`, `wf_http_requests_total{class="agent",status="200"} 1`,
		`wf_http_requests_total{class="other",status="200"} 2`, `wf_http_requests_total{class="memories",status="200"} 1`, `wf_http_requests_total{class="hooks",status="200"} 1`, `wf_http_request_seconds_count{class="run"} 2`,
		`wf_http_open{class="run"} 0`, `wf_http_refused_total{class="forbidden"} 1`,
	} {
		if !strings.Contains(b.String(), line+"\n") {
			t.Errorf("there is no %s", line)
		}
	}
	for _, none := range []string{"ada", "bafy", `wf_http_request_seconds_count{class="replay"}`} {
		if strings.Contains(b.String(), none) {
			t.Errorf("%s is there", none)
		}
	}
}
