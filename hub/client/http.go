package client

import (
	"bytes"
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

// API speaks to the HTTP API of an agent or a hub. Errors carry the codes of the server; one
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
const maxAnswer = 256 << 20

// call sends in as JSON, unless it is nil, and reads the answer into out.
func (a *API) call(ctx context.Context, method, path string, head http.Header, in, out any) (status int, err error) {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
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
	a.Authorize(req.Header)
	answer, err := a.via.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		return 0, unreachable(err)
	}
	defer answer.Body.Close()
	if err := failureOf(answer); err != nil {
		return answer.StatusCode, err
	}
	b, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return answer.StatusCode, fmt.Errorf("%s %s: the answer broke off: %w: %w", method, path, ErrUnreachable, err)
	case len(b) > maxAnswer:
		return answer.StatusCode, tooLong(method, path)
	}
	if raw, ok := out.(*[]byte); ok {
		*raw = b
		return answer.StatusCode, nil
	}
	if err := json.Unmarshal(b, out); err != nil {
		return answer.StatusCode, fmt.Errorf("%s %s: the answer is no JSON: %w", method, path, err)
	}
	return answer.StatusCode, nil
}

func tooLong(method, path string) error {
	return protocol.ErrTooLarge.With("ask for less at once, or on the machine of the server", "%s %s: the answer has more than %d bytes", method, path, maxAnswer)
}

func (a *API) read(ctx context.Context, path string, out any) error {
	_, err := a.call(ctx, http.MethodGet, path, nil, nil, out)
	return err
}

// Info is what is at the other end: wf.info/v1.
type Info struct {
	Kind    string   `json:"kind"` // agent or hub
	Name    string   `json:"name"`
	Version string   `json:"version"`
	Scopes  []string `json:"scopes"`
}

// Info asks who is there.
func (a *API) Info(ctx context.Context) (i Info, err error) { return i, a.read(ctx, "/v1/info", &i) }

// Block reads a block. The hash is the caller's to check.
func (a *API) Block(ctx context.Context, l protocol.Link) (raw []byte, err error) {
	return raw, a.read(ctx, "/v1/blocks/"+l.String(), &raw)
}

// Agents and Queue are those of a hub: wf.agents/v1 and wf.queue/v1.
func (a *API) Agents(ctx context.Context) (raw []byte, err error) {
	return raw, a.read(ctx, "/v1/agents", &raw)
}

// Queue lists the jobs that wait at a hub: wf.queue/v1.
func (a *API) Queue(ctx context.Context) (raw []byte, err error) {
	return raw, a.read(ctx, "/v1/queue", &raw)
}

// CancelJob takes a job out of the queue of a hub: wf.queued/v1. One that an agent has begun is an
// error with the code job_begun, an unknown one has unknown_job.
func (a *API) CancelJob(ctx context.Context, id string) (raw []byte, err error) {
	_, err = a.call(ctx, http.MethodPost, "/v1/queue/"+url.PathEscape(id)+"/cancel", nil, nil, &raw)
	return raw, err
}

// Code is a one-time code for a browser: wf.code/v1.
type Code struct {
	Code    string   `json:"code"`
	Expires string   `json:"expires"` // RFC 3339
	URLs    []string `json:"urls"`    // to open, with the code
}

// NewCode has the server make a code. It needs the scope admin.
func (a *API) NewCode(ctx context.Context) (c Code, err error) {
	_, err = a.call(ctx, http.MethodPost, "/v1/codes", nil, struct{}{}, &c)
	return c, err
}

func runPath(run protocol.RunID, more ...string) string {
	p := "/v1/runs/" + url.PathEscape(string(run))
	for _, m := range more {
		p += "/" + url.PathEscape(m)
	}
	return p
}

// act posts to a run: answer, cancel, resume, fork or messages. It returns the run, for a fork the new one, and the
// step that was answered.
func (a *API) act(ctx context.Context, run protocol.RunID, verb string, body any) (protocol.RunID, string, error) {
	var out api.Accepted
	if _, err := a.call(ctx, http.MethodPost, runPath(run, verb), nil, body, &out); err != nil {
		return "", "", err
	}
	if out.Step == nil {
		return out.ID, "", nil
	}
	return out.ID, *out.Step, nil
}

// Start is what a run is started with; package hub/server describes the fields.
type Start struct {
	Workflow    string                     `json:"workflow"`
	Inputs      map[string]json.RawMessage `json:"inputs,omitempty"`
	Title       string                     `json:"title,omitempty"`
	Description string                     `json:"description,omitempty"`
	Type        string                     `json:"type,omitempty"`
	Scope       string                     `json:"scope,omitempty"`
	Tags        []string                   `json:"tags,omitempty"`
	CreatedBy   string                     `json:"created_by,omitempty"`
	TargetUser  string                     `json:"target_user,omitempty"`
	RequestID   string                     `json:"request_id,omitempty"` // "" makes a new one
	Models      map[string][]string        `json:"models,omitempty"`
	Context     string                     `json:"context,omitempty"` // conversation, task or fresh; "" is as the roles say

	AllowSecretInputs []string `json:"allow_secret_inputs,omitempty"`

	Fresh bool `json:"-"` // RequestID was made just now, and never sent
}

// NewRequestID makes an id for a Start.
func NewRequestID() string { return rand.Text() }

// FreshHeader marks a Start whose request id was made just now and never sent before: a hub
// that has just started need not wait for agents that may have started it already.
const FreshHeader = "Wf-Fresh"

// Waiting says why a run that was submitted has no first event yet: what a hub says of the job,
// or why it was not reached.
type Waiting struct {
	State    string `json:"state"` // queued, leased
	Agent    string `json:"agent"`
	Attempts int    `json:"attempts"`
	Err      error  `json:"-"`
}

// Submit starts a run and returns when its first event is durable. Until then it keeps what is
// to be started, and submits it again with the same id whenever the server forgot it, was away
// or did not answer: the id makes sure that one run comes of it. tell, if it is not nil, is
// told of every such wait. fresh is false where the id had started a run before.
func (a *API) Submit(ctx context.Context, s Start, tell func(Waiting)) (run protocol.RunID, fresh bool, err error) {
	if s.RequestID == "" {
		s.RequestID, s.Fresh = NewRequestID(), true
	}
	fresh = s.Fresh
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
		t := time.NewTimer(backoff(n))
		select {
		case <-ctx.Done():
			t.Stop()
			return "", false, ctx.Err()
		case <-t.C:
		}
	}
}

// passing reports whether a failure may be over when one asks again.
func passing(status int, err error) bool {
	switch protocol.CodeOf(err) {
	case protocol.ErrWorkerAway.Code, protocol.ErrShuttingDown.Code, protocol.ErrRateLimited.Code, protocol.ErrBusy.Code, ErrUnreachable.Code:
		return true
	}
	return status == http.StatusBadGateway || status == http.StatusGatewayTimeout // of a proxy on the way
}
