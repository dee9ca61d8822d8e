package wire

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"wf/agentkit/model"
	"wf/agentkit/ratelimit"
)

// attempt is one request of a call. Of an account without limits it is the zero attempt, and nothing is noted of it.
type attempt struct {
	grant                  *ratelimit.Grant
	sent, reused, answered atomic.Bool
}

// bytesPerToken makes an estimate of what a prompt takes that is rather too high: text of the West has four and more,
// others three.
const bytesPerToken = 3

// unknownAnswer is reserved for an answer of which it is not known how long it may be.
const unknownAnswer = 4_096

// ask waits until the limits of the account let one more request through. The error is ctx's as it is, or a
// *model.Error.
func (c Call) ask(ctx context.Context) (*attempt, error) {
	most := c.Most
	if most <= 0 && c.Used != nil {
		most = unknownAnswer
	}
	g, err := c.Account.Ask(ctx, int64(len(c.Body)/bytesPerToken)+most)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, &model.Error{Class: model.Unavailable, Message: "model " + c.Name + ": " + err.Error(), Err: err}
	}
	return &attempt{grant: g}, nil
}

// post sends the request. Under limits net/http may not send it once more by itself: each request asks.
func (a *attempt) post(ctx context.Context, to string, body []byte, header map[string]string) (*http.Response, error) {
	if a.grant != nil {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			GotConn:              func(i httptrace.GotConnInfo) { a.reused.Store(i.Reused) },
			WroteHeaders:         func() { a.sent.Store(true) },
			WroteRequest:         func(httptrace.WroteRequestInfo) { a.grant.Sent() },
			GotFirstResponseByte: func() { a.answered.Store(true) },
		})
	}
	req, err := request(ctx, to, body, header)
	if err != nil {
		return nil, err
	}
	if a.grant != nil {
		req.GetBody = nil
	}
	return Client.Do(req)
}

// stale reports whether the request met a connection that the server had closed meanwhile, as net/http judges it: it
// is sent once more, by another one.
func (a *attempt) stale(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() == nil && a.grant != nil && a.reused.Load() && !a.answered.Load()
}

func (a *attempt) done(r ratelimit.Result) {
	r.Sent = a.sent.Load()
	a.grant.Done(r)
}
