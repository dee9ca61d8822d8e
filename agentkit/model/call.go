package model

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/tmc/langchaingo/llms"
)

// OptionsOf are the options of a call.
func OptionsOf(options []llms.CallOption) *llms.CallOptions {
	var opts llms.CallOptions
	for _, o := range options {
		o(&opts)
	}
	return &opts
}

// Wait waits for d, or until ctx is done, which is the error.
func Wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Later is a time before a further try, up to a fifth longer by chance: calls that failed together do not come back
// together, and none before the time that its server asked for.
func Later(d time.Duration) time.Duration { return d + time.Duration(rand.Float64()*float64(d)/5) }

// Think passes a thought to the watcher of a call, if there is one.
func Think(ctx context.Context, opts *llms.CallOptions, thought string) error {
	if thought == "" || opts.StreamingReasoningFunc == nil {
		return nil
	}
	return opts.StreamingReasoningFunc(ctx, []byte(thought), nil)
}

// Say passes text of an answer to the watcher of a call, if there is one.
func Say(ctx context.Context, opts *llms.CallOptions, text string) error {
	if text == "" || opts.StreamingFunc == nil {
		return nil
	}
	return opts.StreamingFunc(ctx, []byte(text))
}
