package tape

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/internal/wire"
	"wf/agentkit/model"
	"wf/protocol"
)

// Recorder writes calls and their answers to a file. Its methods are safe for concurrent use.
type Recorder struct {
	mu   sync.Mutex
	file *os.File
}

// Record records into a file that was opened with os.O_APPEND, and closes it with the recording.
func Record(f *os.File) *Recorder { return &Recorder{file: f} }

// Close ends the recording.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.file.Sync(), r.file.Close())
}

// Wrap gives a model that answers as m does and records it; name is m's.
func (r *Recorder) Wrap(name string, m llms.Model) llms.Model { return &recorded{r, name, m} }

// recorded is a model that is listened to.
type recorded struct {
	to   *Recorder
	name string
	of   llms.Model
}

// Call is the older form of GenerateContent.
func (m *recorded) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, m, prompt, options...)
}

// GenerateContent asks the model and writes down what came of it. An answer that cannot be
// written is an error: a recording with a hole is none. A call that was cancelled is left out.
func (m *recorded) GenerateContent(ctx context.Context, messages []llms.MessageContent, options ...llms.CallOption) (*llms.ContentResponse, error) {
	request, _ := model.RequestFrom(ctx)
	lines, err := requestLines(messages, model.OptionsOf(options), request)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	res, failed := m.of.GenerateContent(ctx, messages, options...)
	if ctx.Err() != nil {
		return res, failed
	}
	l := line{V: version, Key: keyOf(lines), Model: m.name, Role: request.Role, Visit: request.Visit, Item: request.Item, Call: request.Call, Kind: kindName(request), Request: lines}
	if failed != nil {
		e := model.AsError(m.name, failed)
		l.Failure = &failure{e.Class, e.Status, e.RetryAfter.Milliseconds(), clean(e.Error())}
	} else {
		l.Reply = replyOf(res)
	}
	if err := m.to.write(l); err != nil {
		return nil, err
	}
	return res, failed
}

func (r *Recorder) write(l line) error {
	b, err := wire.Encode(l)
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.file.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}

// replyOf is what a model answered, without what has the shape of a key.
func replyOf(res *llms.ContentResponse) *model.Reply {
	r := model.ReplyOf(res)
	for _, s := range []*string{&r.Text, &r.Thinking, &r.Opaque, &r.Stop} {
		*s = clean(*s)
	}
	for i, c := range r.Calls {
		r.Calls[i] = protocol.CallMessage{ID: clean(c.ID), Name: clean(c.Name), Arguments: clean(c.Arguments)}
	}
	return &r
}
