package agentkit

import (
	"cmp"
	"context"
	"sync"
	"time"

	"wf/agentkit/model"
	"wf/protocol"
	"wf/roles"
)

// watch hands the stream of one call to live watchers, secrets hidden even where a chunk cuts
// them in two, and takes its times.
type watch struct {
	emit roles.Emit

	mu            sync.Mutex
	said, thought *roles.Redactor
	clock         model.Clock
	err           error // of emit
}

func newWatch(emit roles.Emit, secrets map[string]string) *watch {
	return &watch{emit: emit, clock: model.Clock{Start: time.Now()}, said: roles.NewRedactor(secrets), thought: roles.NewRedactor(secrets)}
}

func (w *watch) text(ctx context.Context, chunk []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(chunk) == 0 {
		return nil
	}
	w.clock.Heard()
	return w.show(ctx, "text", w.said.Write(nil, chunk))
}

// thinking ignores the second chunk: some models repeat the text there.
func (w *watch) thinking(ctx context.Context, chunk, _ []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(chunk) == 0 {
		return nil
	}
	w.clock.Heard()
	w.clock.Thought()
	return w.show(ctx, "thinking", w.thought.Write(nil, chunk))
}

// heard reports whether something came.
func (w *watch) heard() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clock.Answered()
}

// end shows what was held back, and tells why the stream could not be shown, nil if it could:
// that is no fault of the model.
func (w *watch) end(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = w.show(ctx, "thinking", w.thought.Flush(nil))
	}
	if w.err == nil {
		w.err = w.show(ctx, "text", w.said.Flush(nil))
	}
	return w.err
}

func (w *watch) show(ctx context.Context, kind string, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	w.err = w.emit(ctx, protocol.Delta{Kind: kind, Text: valid(string(b))})
	return w.err
}

func (w *watch) total() int64 { return time.Since(w.clock.Start).Milliseconds() }

// times fills in what the model did not measure itself.
func (w *watch) times(u *protocol.Usage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ttfe, thinking := w.clock.Times()
	u.TTFE, u.ThinkingMS = cmp.Or(u.TTFE, ttfe), cmp.Or(u.ThinkingMS, thinking)
}
