package api

import "context"

// A Caller is the identity behind a request, as the guard of a server let it in.
type Caller struct {
	Name  string
	Owner bool // may do everything: the user whose process answers
	Runs  bool // may start runs, and so have models asked
}

type callerKey struct{}

// WithCaller gives a context of a request of c.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf is the caller of a request; ok is false where the process itself asks.
func CallerOf(ctx context.Context) (c Caller, ok bool) {
	c, ok = ctx.Value(callerKey{}).(Caller)
	return c, ok
}
