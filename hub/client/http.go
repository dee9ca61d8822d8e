package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"wf/api"
	"wf/protocol"
)

// API speaks to the HTTP API of a worker or a hub. Errors carry the codes of the server; one
// that does not answer is an error wrapping ErrUnreachable. It is safe for concurrent use.
type API struct {
	base  string
	via   *http.Client
	token string
}

// Options of an API; the zero value is right for a unix socket.
type Options struct {
	Token string      // "" is none
	TLS   *tls.Config // for https; nil is the system's
	// Own says that the token may go over TCP of this machine only to a process of the own user;
	// elsewhere requests end with an error wrapping ErrForeignServer before anything is sent. It is
	// for tokens that the user did not name for this address. https is proved by its certificate.
	Own bool
	// HTTP is what reaches the server, whatever the address: one in this process, for example.
	HTTP *http.Client
}

// New makes an API of a server; the address is read as by Reach. Nothing is sent yet.
func New(address string, o Options) (*API, error) {
	if o.HTTP != nil {
		return &API{base: "http://wf", via: o.HTTP, token: o.Token}, nil
	}
	base, via, err := Reach(address, o.TLS)
	if err != nil {
		return nil, err
	}
	if o.Own && strings.HasPrefix(base, "http://") && !strings.HasPrefix(address, "unix:") {
		via.Transport.(*http.Transport).DialContext = dialOwn
	}
	return &API{base: base, via: via, token: o.Token}, nil
}

// Close closes the connections that are idle.
func (a *API) Close() { a.via.CloseIdleConnections() }

// Base is what paths are appended to, and HTTP what reaches it.
func (a *API) Base() string { return a.base }

// HTTP is a client that speaks to the server alone. It adds no token.
func (a *API) HTTP() *http.Client { return a.via }

// Authorize puts the token into the headers of a request.
func (a *API) Authorize(h http.Header) {
	if a.token != "" {
		h.Set("Authorization", "Bearer "+a.token)
	}
}

// maxAnswer bounds an answer that is read into memory.
const maxAnswer = api.MaxAnswer

// send gives the answer to a request. One that is an error is closed, and given for its status.
func (a *API) send(r *http.Request) (*http.Response, error) {
	a.Authorize(r.Header)
	answer, err := a.via.Do(r)
	if err != nil {
		return nil, cmp.Or(r.Context().Err(), unreachable(err))
	}
	if err := failureOf(answer); err != nil {
		_ = answer.Body.Close() // it was read
		return answer, err
	}
	return answer, nil
}

// receive reads the answer to what into out, as JSON or as its bytes.
func receive(what string, answer *http.Response, out any) error {
	defer answer.Body.Close()
	b, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("%s: the answer broke off: %w: %w", what, ErrUnreachable, err)
	case len(b) > maxAnswer:
		return protocol.ErrTooLarge.With("ask for less at once, or on the machine of the server", "%s: the answer has more than %d bytes", what, maxAnswer)
	}
	if raw, ok := out.(*[]byte); ok {
		*raw = b
		return nil
	}
	if err := json.Unmarshal(b, out); err != nil {
		return fmt.Errorf("%s: the answer is no JSON: %w", what, err)
	}
	return nil
}

// call sends in as JSON, unless it is nil, and reads the answer into out. The status is 0 where there was none.
func (a *API) call(ctx context.Context, method, path string, head http.Header, in, out any) (status int, err error) {
	var body io.Reader
	if in != nil {
		b, err := protocol.PlainJSON(in)
		if err != nil {
			return 0, err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, a.base+path, body)
	if err != nil {
		return 0, err
	}
	if head != nil {
		req.Header = head
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	answer, err := a.send(req)
	if answer == nil {
		return 0, err
	}
	if err == nil {
		err = receive(method+" "+path, answer, out)
	}
	return answer.StatusCode, err
}

func (a *API) read(ctx context.Context, path string, out any) error {
	_, err := a.call(ctx, http.MethodGet, path, nil, nil, out)
	return err
}

func (a *API) post(ctx context.Context, path string, in, out any) error {
	_, err := a.call(ctx, http.MethodPost, path, nil, in, out)
	return err
}

// Info is what is at the other end: wf.info/v1.
type Info struct{ Kind, Name, Version string } // kind is agent or hub

// Info asks who is there.
func (a *API) Info(ctx context.Context) (i Info, err error) {
	err = a.read(ctx, "/v1/info", &i)
	return i, err
}

// Ready is nil where the server takes requests, and ErrNotReady where it is there and does not yet, or no longer.
func (a *API) Ready(ctx context.Context) error {
	return a.read(ctx, "/readyz", new(struct{}))
}

// Block reads a block. The hash is the caller's to check.
func (a *API) Block(ctx context.Context, l protocol.Link) (raw []byte, err error) {
	err = a.read(ctx, "/v1/blocks/"+l.String(), &raw)
	return raw, err
}

// segment is a name as a part of a path. A dot or two would be taken for this directory, or the one above.
func segment(name string) string {
	if name == "." || name == ".." {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return url.PathEscape(name)
}

// Agents and Queue are those of a hub: wf.agents/v1 and wf.queue/v1.
func (a *API) Agents(ctx context.Context) (raw []byte, err error) {
	err = a.read(ctx, "/v1/agents", &raw)
	return raw, err
}

// Queue lists the jobs that wait at a hub: wf.queue/v1.
func (a *API) Queue(ctx context.Context) (raw []byte, err error) {
	err = a.read(ctx, "/v1/queue", &raw)
	return raw, err
}

// CancelJob takes a job out of the queue of a hub: wf.queued/v1. One that a worker has begun is an
// error with the code job_begun, an unknown one has unknown_job.
func (a *API) CancelJob(ctx context.Context, id string) (raw []byte, err error) {
	err = a.post(ctx, "/v1/queue/"+segment(id)+"/cancel", nil, &raw)
	return raw, err
}

// RetryJob has a job tried again that was given up: wf.queued/v1. Without its content it is an error with the code body_gone.
func (a *API) RetryJob(ctx context.Context, id string) (raw []byte, err error) {
	err = a.post(ctx, "/v1/queue/"+segment(id)+"/retry", nil, &raw)
	return raw, err
}

// PurgeJob has a hub forget a job: wf.queued/v1, as it was. It needs the scope admin, as the methods for workers do.
func (a *API) PurgeJob(ctx context.Context, id string) (raw []byte, err error) {
	err = a.post(ctx, "/v1/queue/"+segment(id)+"/purge", nil, &raw)
	return raw, err
}

// DrainWorker says whether a worker gets jobs, and lists the workers: wf.agents/v1.
func (a *API) DrainWorker(ctx context.Context, id string, drain bool) (raw []byte, err error) {
	verb := "/drain"
	if !drain {
		verb = "/undrain"
	}
	err = a.post(ctx, "/v1/agents/"+segment(id)+verb, nil, &raw)
	return raw, err
}

// ForgetWorker has a hub forget a worker that is gone, and lists the others: wf.agents/v1.
func (a *API) ForgetWorker(ctx context.Context, id string) (raw []byte, err error) {
	err = a.post(ctx, "/v1/agents/"+segment(id)+"/forget", nil, &raw)
	return raw, err
}

// NewCode has the server make a code, which belongs to the token of the client. It needs the scope admin.
func (a *API) NewCode(ctx context.Context) (c api.Code, err error) {
	err = a.post(ctx, "/v1/codes", struct{}{}, &c)
	return c, err
}

func runPath(run protocol.RunID, more ...string) string {
	p := "/v1/runs/" + segment(string(run))
	for _, m := range more {
		p += "/" + segment(m)
	}
	return p
}

// NewRequestID makes an id for a start.
func NewRequestID() string { return rand.Text() }

// FreshHeader marks a start whose request id was made just now and never sent before: a hub
// that has just started need not wait for workers that may have started it already.
const FreshHeader = "Wf-Fresh"

// Waiting says why a run that was submitted has no first event yet: what a hub says of the job,
// or why it was not reached.
type Waiting struct {
	State    string `json:"state"`  // queued, leased
	Reason   string `json:"reason"` // of a queued one
	Agent    string `json:"agent"`
	Attempts int    `json:"attempts"`
	Err      error  `json:"-"`
}

// Submit starts a run and returns when its first event is durable. Until then it keeps what is
// to be started, and submits it again with the same id whenever the server forgot it, was away
// or did not answer: the id makes sure that one run comes of it. A start without an id is given one. tell, if
// it is not nil, is told of every such wait. fresh is false where the id had started a run before.
func (a *API) Submit(ctx context.Context, s *api.Start, tell func(Waiting)) (run protocol.RunID, fresh bool, err error) {
	if s.RequestID == "" {
		s.RequestID, fresh = NewRequestID(), true
	}
	for n := 0; ; n++ {
		head := http.Header{}
		if fresh && n == 0 {
			head.Set(FreshHeader, "1")
		}
		var out struct {
			ID    protocol.RunID `json:"id"`
			Fresh bool           `json:"fresh"`
			Waiting
		}
		status, err := a.call(ctx, http.MethodPost, "/v1/runs", head, s, &out)
		switch {
		case ctx.Err() != nil:
			return "", false, ctx.Err()
		case err == nil && (status == http.StatusOK || status == http.StatusCreated):
			return out.ID, out.Fresh || fresh, sound(out.ID != "", "/v1/runs")
		case err != nil && !passing(status, err):
			return "", false, err
		case err == nil:
			n = 0 // the server held the request for as long as it likes to
		}
		out.Waiting.Err = err
		if tell != nil {
			tell(out.Waiting)
		}
		select {
		case <-ctx.Done():
			return "", false, ctx.Err()
		case <-time.After(backoff(n)):
		}
	}
}

// passing reports whether a failure may be over when one asks again.
func passing(status int, err error) bool {
	switch protocol.CodeOf(err) {
	case "no_worker", protocol.ErrWorkerAway.Code, protocol.ErrShuttingDown.Code, protocol.ErrRateLimited.Code, protocol.ErrBusy.Code, protocol.ErrUnreachable.Code, ErrUnreachable.Code:
		return true
	}
	return status == http.StatusBadGateway || status == http.StatusGatewayTimeout // of a proxy on the way
}
