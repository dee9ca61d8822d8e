package wire

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"wf/agentkit/model"
	"wf/agentkit/ratelimit"
)

// How long a server may be silent: before its answer begins, since reading a long prompt takes its
// time, and within it.
const (
	DefaultIdle  = 10 * time.Minute
	DefaultPause = 5 * time.Minute
)

// MaxResponse bounds what one response may hold, in bytes.
const MaxResponse = 64 << 20

// MaxRefusal is how much of an error body is read.
const MaxRefusal = 64 << 10

// Client is the HTTP client of all adapters. It keeps a connection for each of many calls at
// once, and follows no redirect: a key must not travel to a host that was not named.
var Client = &http.Client{
	Transport:     transport(),
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func transport() http.RoundTripper {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport
	}
	t = t.Clone()
	t.MaxIdleConnsPerHost = t.MaxIdleConns
	return t
}

var errSilent = errors.New("the server is silent")

// A Call is one request to a model.
type Call struct {
	Name   string // of the model, for messages
	URL    string
	Header map[string]string // see Post
	Body   []byte
	Idle   time.Duration // without a word from the server; 0 is DefaultIdle, and DefaultPause once the answer began

	KeyFrom string             // the variable that the key comes from, "" is not known
	Account *ratelimit.Account // whose limits hold; nil has none
	Most    int64              // tokens of the answer at most, 0 is not known
	Used    func() int64       // tokens of prompt and answer, once it was read; negative is not known, as is nil
	Clock   *model.Clock       // starts when the request may be sent; nil is none
}

// Do makes the request, once the limits let it, and reads its answer. It ends both after c.Idle. The error is ctx's
// as it is, or a *model.Error.
func (c Call) Do(ctx context.Context, read func(context.Context, http.Header, io.Reader) error) error {
	for {
		a, err := c.ask(ctx)
		if err != nil {
			return err
		}
		if c.Clock != nil {
			c.Clock.Start = time.Now()
		}
		result, err := c.exchange(ctx, a, read)
		a.done(result)
		if !a.stale(ctx, err) {
			return err
		}
	}
}

// exchange is one attempt of Do.
func (c Call) exchange(ctx context.Context, a *attempt, read func(context.Context, http.Header, io.Reader) error) (result ratelimit.Result, err error) {
	name, idle, pause := c.Name, c.Idle, c.Idle
	if idle <= 0 {
		idle, pause = DefaultIdle, DefaultPause
	}
	calling, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	silence := time.AfterFunc(idle, func() { stop(errSilent) })
	defer silence.Stop()

	result.Used = -1
	res, err := a.post(calling, c.URL, c.Body, c.Header)
	if err == nil {
		defer res.Body.Close()
		switch kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";"); {
		case res.StatusCode >= 300:
			refused := c.refusal(res)
			result.Used, result.RetryAfter, err = 0, refused.RetryAfter, refused
		case strings.TrimSpace(strings.ToLower(kind)) == "text/html":
			result.Used, err = 0, page(name, res)
		default:
			err = read(ctx, res.Header, &counted{r: res.Body, left: MaxResponse, alive: func() { idle = pause; silence.Reset(idle) }})
			if err == nil && c.Used != nil {
				result.Used = c.Used()
			}
		}
	}
	switch {
	case err == nil:
		return result, nil
	case ctx.Err() != nil:
		return result, ctx.Err()
	case errors.Is(context.Cause(calling), errSilent):
		return result, &model.Error{Class: model.Timeout, Message: fmt.Sprintf("model %s: nothing was heard for %v", name, idle), Err: errSilent}
	}
	return result, model.AsError(name, err)
}

// Key names a request. With it in the header Idempotency-Key, net/http sends a POST again when
// an idle connection was closed under it.
func Key(body []byte) string {
	digest := sha256.Sum256(body)
	return hex.EncodeToString(digest[:])
}

// refusal reads why a server refused.
func (c Call) refusal(res *http.Response) *model.Error {
	text, err := io.ReadAll(io.LimitReader(res.Body, MaxRefusal))
	class := model.ClassOfStatus(res.StatusCode)
	if spent().Match(text) {
		class = model.Unavailable
	}
	return &model.Error{
		Class: class, Status: res.StatusCode, RetryAfter: RetryAfter(res.Header, time.Now()), Err: err,
		Message:  fmt.Sprintf("model %s: status %d: %s%s", c.Name, res.StatusCode, ErrorText(text), c.fix(res.StatusCode)),
		Overflow: model.OverflowOf(res.StatusCode, text),
	}
}

// fix says what to do about a status that no waiting mends.
func (c Call) fix(status int) string {
	switch {
	case (status == http.StatusUnauthorized || status == http.StatusForbidden) && c.KeyFrom != "":
		return ". Fix: look at the key in " + c.KeyFrom
	case status == http.StatusNotFound:
		return ". Fix: look at the name of the model (wf models --probe lists those of servers) and at the base URL of the provider"
	}
	return ""
}

// page is an answer that is a web page: something else than a server of models stands there.
func page(name string, res *http.Response) *model.Error {
	text, err := io.ReadAll(io.LimitReader(res.Body, MaxRefusal))
	return &model.Error{
		Class: model.Unavailable, Status: res.StatusCode, Err: err,
		Message: fmt.Sprintf("model %s: status %d with a web page in the place of an answer: %s. Fix: look at the base URL of "+
			"the provider, and for a proxy that wants a login", name, res.StatusCode, ErrorText(text)),
	}
}

// counted bounds a body and tells that the server is alive.
type counted struct {
	r     io.Reader
	left  int64
	alive func()
}

func (c *counted) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, fmt.Errorf("the response holds more than %d bytes", int64(MaxResponse))
	}
	n, err := c.r.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	c.alive()
	return n, err
}
