package guard

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"wf/protocol"
)

// credentials are those of a request, with the identity that they prove.
type credentials struct {
	Identity
	again func() (Identity, bool) // looks at them anew; nil for those that cannot end
}

// identify finds the identity of a request; nil for one without credentials.
func (g *Guard) identify(r *http.Request) (*credentials, error) {
	if g.Keys == nil {
		id := g.Peer
		id.proof = proof{own: true}
		return &credentials{Identity: id}, nil
	}
	if _, err := g.Keys.current(); err != nil {
		g.log().Error("the tokens cannot be read: every request is refused", "error", err)
	}
	if token, ok := bearer(r); ok {
		if id, ok := g.Keys.byToken(token); ok {
			return &credentials{id, func() (Identity, bool) { return g.Keys.byToken(token) }}, nil
		}
		id, at, ok := g.Keys.byLogin(token)
		if !ok {
			return nil, fmt.Errorf("the token is not valid, or the login has ended: %w", protocol.ErrUnauthorized)
		}
		if err := mayUse(r, at); err != nil {
			return nil, err
		}
		return &credentials{id, func() (Identity, bool) {
			id, _, ok := g.Keys.byLogin(token)
			return id, ok
		}}, nil
	}
	return nil, nil // a cookie is none: browsers send it to every port of the machine
}

// lasting gives a context that ends when the credentials do, or allow something else than they
// did: a token was taken out of the file, a login is over. Call done when the request is.
func (g *Guard) lasting(ctx context.Context, c *credentials) (_ context.Context, done func()) {
	if c.again == nil {
		return ctx, func() {}
	}
	every := cmp.Or(g.recheck, recheckEvery)
	ctx, end := context.WithCancelCause(ctx)
	var look func()
	look = func() {
		if ctx.Err() != nil {
			return
		}
		if id, ok := c.again(); !ok || !id.same(c.Identity) {
			end(fmt.Errorf("the token or login is good no longer: %w", protocol.ErrUnauthorized))
			return
		}
		time.AfterFunc(every, look)
	}
	first := time.AfterFunc(every, look)
	return ctx, func() {
		first.Stop()
		end(nil)
	}
}
