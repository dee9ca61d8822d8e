package tape

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
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
	l := line{V: version, Key: keyOf(lines), Model: m.name, Role: request.Role, Visit: request.Visit, Item: request.Item, Call: request.Call, Request: lines}
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

// counted are the numbers of a reply that are kept.
var counted = []string{
	model.KeyInput, model.KeyCached, model.KeyWrite5m, model.KeyWrite1h, model.KeyOutput, model.KeyReasoning,
}

// replyOf joins the choices of a response, as the agent does.
func replyOf(res *llms.ContentResponse) *reply {
	out := &reply{Counts: map[string]int64{}}
	if res == nil {
		return out
	}
	var text, thinking strings.Builder
	for _, c := range res.Choices {
		text.WriteString(c.Content)
		thinking.WriteString(c.ReasoningContent)
		if block := model.OpaqueOf(c); block != "" {
			out.Opaque = clean(block)
		}
		if c.StopReason != "" {
			out.Stop = clean(c.StopReason)
		}
		for _, call := range c.ToolCalls {
			if call.FunctionCall != nil {
				out.Calls = append(out.Calls, protocol.CallMessage{ID: clean(call.ID), Name: clean(call.FunctionCall.Name), Arguments: clean(call.FunctionCall.Arguments)})
			}
		}
	}
	out.Text, out.Thinking = clean(text.String()), clean(thinking.String())
	u := model.UsageOf(res)
	for i, n := range []*int64{u.Input, u.Cached, u.CacheWrite5m, u.CacheWrite1h, u.Output, u.Reasoning} {
		if n != nil {
			out.Counts[counted[i]] = *n
		}
	}
	return out
}
