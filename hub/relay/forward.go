package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"

	"wf/hub/guard"
	"wf/hub/reply"
	"wf/protocol"
)

// passedOff are headers of clients that are for the hub and not for its workers.
var passedOff = []string{"Authorization", "Cookie", "Origin", "Referer", "Connection", "Upgrade", headerBy, headerScopes, headerJob, headerEpoch}

// newProxy passes requests on to the worker of a link, and its answers back as they come; what is
// taken of their headers says shield.
func (l *link) newProxy() *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Transport:     l.via,
		FlushInterval: -1, // streams
		Rewrite: func(p *httputil.ProxyRequest) {
			for _, h := range passedOff {
				p.Out.Header.Del(h)
			}
			p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = "http", "agent", "agent"
			id, _ := guard.Of(p.In.Context())
			introduce(p.Out.Header, id)
		},
		ModifyResponse: func(r *http.Response) error {
			_, _, err := mediaOf(r.StatusCode, r.Header)
			return err
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			var big *http.MaxBytesError
			switch {
			case errors.As(err, &big):
				reply.Error(w, reply.BodyError(err))
			case errors.Is(err, errForeignAnswer):
				l.hub.Log.Warn("an answer is not passed on", "worker", l.id, "path", r.URL.Path, "why", err)
				reply.Error(w, fmt.Errorf("worker %s: %w", l.id, err))
			case r.Context().Err() == nil:
				reply.Error(w, fmt.Errorf("worker %s: %w: %w", l.id, protocol.ErrWorkerAway, err))
			}
		},
		ErrorLog: slog.NewLogLogger(l.hub.Log.Handler(), slog.LevelDebug),
	}
}

// forward passes a request on to the worker.
func (l *link) forward(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	l.proxy.ServeHTTP(newShield(w, l.hub.Patience), r.WithContext(ctx))
}

// ofRun serves what belongs to a run, from the worker that has it.
func (h *Hub) ofRun(w http.ResponseWriter, r *http.Request) error {
	l, err := h.owner(r.Context(), protocol.RunID(r.PathValue("id")))
	if err != nil {
		w.Header().Set("Retry-After", "1")
		return err
	}
	l.forward(w, r)
	return nil
}

// has reports whether the worker serves a path, without reading what is there: with
// If-None-Match: * the answer is that nothing changed.
func (l *link) has(ctx context.Context, path string) bool {
	if l.stalled() {
		return false
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, workerBase+path, nil)
	if err != nil {
		return false
	}
	introduce(r.Header, hubIdentity)
	r.Header.Set("If-None-Match", "*")
	res, err := l.via.RoundTrip(r)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusOK { // of a worker that knows no ETag
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<20)) // so that the stream serves again
	}
	return res.StatusCode == http.StatusOK || res.StatusCode == http.StatusNotModified
}
