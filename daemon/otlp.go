package daemon

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/protocol"
	"wf/service/trace"
	"wf/store"
)

// An exporter sends the traces of runs to a collector of OpenTelemetry as the runs end:
//
//	ended and not in sent ─► trace ─► POST /v1/traces ─► sent
//	                           ▲            │ the collector is away
//	                           └── later ◄──┘
//
// A trace is sent at least once; one that is sent again has the same ids. Runs that had ended when it was begun with, and
// runs that came from elsewhere, are not sent.
type exporter struct {
	url     string
	headers http.Header
	client  *http.Client
	s       store.Store
	e       *engine.Engine
	tracer  trace.Reader
	log     *slog.Logger

	sent *sentTraces
	runs cas.MovedRuns // that were not looked at
}

const (
	sendTime    = 30 * time.Second       // of one request
	sendMost    = 5 * time.Minute        // between two tries
	answerMost  = 64 << 10               // bytes of an answer that are read
	gatherRuns  = 300 * time.Millisecond // commits gather for so long before runs are looked at
	headersName = "OTEL_EXPORTER_OTLP_HEADERS"
)

// newExporter sends to a collector; environ is asked for the headers of requests, which may hold a key.
func newExporter(to string, environ func(string) string, s store.Store, e *engine.Engine, tracer trace.Reader, log *slog.Logger) (*exporter, error) {
	u, err := url.Parse(to)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		return nil, protocol.ErrUsage.With("write the address of a collector, such as http://127.0.0.1:4318", "--otlp %q is no http or https URL", to)
	case u.User != nil:
		return nil, protocol.ErrUsage.With("set "+headersName+"=authorization=Basic%20… in its place", "--otlp: a command line shows a password to all users of the machine")
	}
	if !strings.HasSuffix(u.Path, "/v1/traces") {
		u = u.JoinPath("v1/traces")
	}
	x := &exporter{url: u.String(), headers: http.Header{}, s: s, e: e, tracer: tracer, log: log, runs: cas.MovedRuns{Store: s}}
	for _, pair := range strings.Split(environ(headersName), ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		if value, err = url.PathUnescape(strings.TrimSpace(value)); !ok || err != nil {
			return nil, protocol.ErrUsage.With("write name=value,name=value", "%s is no list of headers", headersName)
		}
		x.headers.Set(strings.TrimSpace(name), value)
	}
	x.client = &http.Client{Timeout: sendTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	x.sent = &sentTraces{path: filepath.Join(s.Dir(), Dir, "otlp-"+shortSum(x.url)+".jsonl")}
	return x, nil
}

// run sends until ctx ends.
func (x *exporter) run(ctx context.Context) {
	defer x.sent.close()
	var told string
	for tries := 0; ctx.Err() == nil; {
		wait := gatherRuns
		now, err := x.s.Changes(ctx)
		if err == nil {
			err = x.round(ctx)
		}
		if err == nil {
			tries, told = 0, ""
			_, err = awaitChange(ctx, x.s, now, time.Minute)
		}
		if err != nil && ctx.Err() == nil {
			wait = backOff(tries, err)
			tries++
			if told != err.Error() {
				told = err.Error()
				x.log.Warn("traces cannot be sent; they are kept, and sent later", "to", x.url, "why", err)
			}
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

// backOff is how long to wait behind some tries: 1 s and twice as long each time, as the collector asks, and never the
// same for all its clients.
func backOff(tries int, why error) time.Duration {
	wait := min(time.Second<<min(tries, 10), sendMost)
	if asked := new(laterError); errors.As(why, &asked) {
		wait = min(max(wait, asked.after), sendMost)
	}
	return wait + rand.N(wait/2)
}

// round looks at the runs that have moved, and sends those that have ended.
func (x *exporter) round(ctx context.Context) error {
	if err := x.s.MayGoOn(ctx); errors.Is(err, protocol.ErrHeld) {
		return nil // of a store that was restored what ends by then has ended before
	} else if err != nil {
		return err
	}
	heads, err := x.runs.Due(ctx)
	if err != nil {
		return err
	}
	fresh, err := x.sent.open()
	if err != nil {
		return err
	}
	for _, h := range heads {
		run := protocol.RunOf(h.Name)
		if !x.sent.has(run) {
			ended, err := x.ended(ctx, h)
			if err == nil && ended {
				switch {
				case fresh:
					err = x.sent.add(run)
				default:
					err = x.send(ctx, h, run)
				}
			}
			if err != nil {
				return fmt.Errorf("run %s: %w", run, err)
			}
		}
		x.runs.Done(h)
	}
	if fresh {
		return x.sent.begin()
	}
	return nil
}

// ended reports whether a run that is no part of another has ended.
func (x *exporter) ended(ctx context.Context, h cas.Head) (bool, error) {
	data, err := x.s.Block(ctx, h.Link)
	if err != nil {
		return false, err
	}
	var last protocol.Event
	if err := protocol.DecodeEvent(data, &last); err != nil {
		return false, err
	}
	if last.Type != protocol.EvDone && last.Type != protocol.EvCancelled {
		return false, nil
	}
	st, err := x.e.State(ctx, protocol.RunOf(h.Name))
	if err != nil {
		return false, err
	}
	return st.Status().Final() && (st.Info.Parent == nil || st.Info.Forked.Defined()), nil
}

// send sends the trace of a run, and notes that.
func (x *exporter) send(ctx context.Context, h cas.Head, run protocol.RunID) error {
	st, err := x.e.State(ctx, run)
	if err != nil {
		return err
	}
	if x.e.Foreign(ctx, h, st) {
		return x.sent.add(run) // it was traced where it was driven
	}
	err = x.tracer.Write(ctx, run, api.TraceOptions{}, func(line []byte) error { return x.post(ctx, line) })
	var refused *refusedError
	switch {
	case errors.As(err, &refused):
		x.log.Error("the collector does not take a trace; it is not sent again", "run", run, "to", x.url, "why", err)
	case err != nil:
		return err
	}
	return x.sent.add(run)
}

// laterError is an answer after which a request may be sent again, after a while.
type laterError struct {
	status string
	after  time.Duration
}

func (e *laterError) Error() string { return "the collector answers " + e.status }

// refusedError is an answer to a request that no collector will take.
type refusedError struct{ status, why string }

func (e *refusedError) Error() string {
	return "the collector answers " + strings.TrimSuffix(e.status+": "+e.why, ": ")
}

// post sends one request: https://opentelemetry.io/docs/specs/otlp/#otlphttp-response.
func (x *exporter) post(ctx context.Context, body []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, x.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header = x.headers.Clone()
	r.Header.Set("Content-Type", "application/json")
	answer, err := x.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(io.LimitReader(answer.Body, answerMost))
	switch code := answer.StatusCode; {
	case code == http.StatusBadRequest, code == http.StatusRequestEntityTooLarge, code == http.StatusUnprocessableEntity:
		return &refusedError{answer.Status, firstLine(said)}
	case code < 200 || code > 299: // also those that a change of its settings mends: nothing is lost meanwhile
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
		return &laterError{answer.Status, time.Duration(seconds) * time.Second}
	case err != nil:
		return err
	}
	var partial struct {
		PartialSuccess struct {
			RejectedSpans json.Number `json:"rejectedSpans"`
			ErrorMessage  string      `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(said, &partial) == nil && cmp.Or(partial.PartialSuccess.RejectedSpans, "0") != "0" {
		x.log.Warn("the collector left spans out", "spans", partial.PartialSuccess.RejectedSpans, "why", firstLine([]byte(partial.PartialSuccess.ErrorMessage)))
	}
	return nil
}

// firstLine is the beginning of what a collector said, for a log.
func firstLine(said []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
	return strconv.QuoteToGraphic(line[:min(len(line), 200)])
}
