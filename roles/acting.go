package roles

import "context"

type actingKey struct{}

// Acting is how a performer begins what acts outside of the journal: a context within its own that ends when another process may soon
// do the same again, or the cause why it must not begin. end is called when nothing acts any more.
type Acting func(ctx context.Context) (acting context.Context, end context.CancelFunc, err error)

// WithActing has BeginActing call a under ctx.
func WithActing(ctx context.Context, a Acting) context.Context {
	return context.WithValue(ctx, actingKey{}, a)
}

// BeginActing is called before a command begins, or anything else that is not to overlap with another attempt of the visit; where
// nothing else may go on with the run, acting is ctx. A visit whose acting ended, and whose ctx did not, goes on as after a crash.
func BeginActing(ctx context.Context) (acting context.Context, end context.CancelFunc, err error) {
	if a, ok := ctx.Value(actingKey{}).(Acting); ok {
		return a(ctx)
	}
	return ctx, func() {}, nil
}
