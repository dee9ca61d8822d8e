package agentkit

import (
	"context"
	"sync"
	"time"

	"wf/protocol"
	"wf/roles"
)

// watch hands the stream of one call to live watchers, secrets hidden even where a chunk cuts
// them in two, and takes its times.
type watch struct {
	emit roles.Emit

	mu            sync.Mutex
	said, thought channel
	start, first  time.Time
	thinkingFrom  time.Time
	thinkingTo    time.Time
	err           error // of emit
}

// channel is one kind of delta.
type channel struct {
	kind   string
	redact *roles.Redactor
}

func newWatch(emit roles.Emit, secrets map[string]string) *watch {
	return &watch{
		emit: emit, start: time.Now(),
		said:    channel{"text", roles.NewRedactor(secrets)},
		thought: channel{"thinking", roles.NewRedactor(secrets)},
	}
}

func (w *watch) text(ctx context.Context, chunk []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(chunk) == 0 {
		return nil
	}
	w.mark(false)
	return w.show(ctx, w.said.kind, w.said.redact.Write(nil, chunk))
}

// thinking ignores the second chunk: some models repeat the text there.
func (w *watch) thinking(ctx context.Context, chunk, _ []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(chunk) == 0 {
		return nil
	}
	w.mark(true)
	return w.show(ctx, w.thought.kind, w.thought.redact.Write(nil, chunk))
}

// end shows what was held back, and tells why the stream could not be shown, nil if it could:
// that is no fault of the model.
func (w *watch) end(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range []channel{w.thought, w.said} {
		if w.err == nil {
			w.err = w.show(ctx, c.kind, c.redact.Flush(nil))
		}
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

func (w *watch) mark(thinking bool) {
	now := time.Now()
	if w.first.IsZero() {
		w.first = now
	}
	if thinking && w.thinkingFrom.IsZero() {
		w.thinkingFrom = now
	}
	if thinking {
		w.thinkingTo = now
	}
}

func (w *watch) total() int64 { return time.Since(w.start).Milliseconds() }

// times fills in what the model did not measure itself.
func (w *watch) times(u *protocol.Usage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if u.TTFE == 0 && !w.first.IsZero() {
		u.TTFE = w.first.Sub(w.start).Milliseconds()
	}
	if u.ThinkingMS == 0 && !w.thinkingFrom.IsZero() {
		u.ThinkingMS = w.thinkingTo.Sub(w.thinkingFrom).Milliseconds()
	}
}
