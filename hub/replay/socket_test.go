package replay

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"wf/protocol"
)

// A write that takes longer than it may ends the socket, and the reason is too_slow, which bye
// tells the client; one that is in time leaves the socket open.
func TestASlowWriteEndsTheSocketAsTooSlow(t *testing.T) {
	for _, c := range []struct {
		takes time.Duration
		want  error
	}{{time.Second, nil}, {time.Second + 1, protocol.ErrTooSlow}} {
		synctest.Test(t, func(t *testing.T) { // the clock is that of the bubble
			ctx, fail := context.WithCancelCause(t.Context())
			defer fail(nil)
			k := &socket{s: &Server{WriteTimeout: time.Second}, ctx: ctx, fail: fail}
			err := k.write(func(func([]byte) error) error {
				<-time.After(c.takes)
				return nil
			})
			if !errors.Is(err, c.want) || (c.want == nil) != (ctx.Err() == nil) || c.want != nil && !errors.Is(context.Cause(ctx), c.want) {
				t.Errorf("after %v: write says %v, the socket ended with %v, want %v", c.takes, err, context.Cause(ctx), c.want)
			}
		})
	}
}
