package model

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tmc/langchaingo/llms"

	"wf/protocol"
)

// Reply is the answer of a model as one message.
type Reply struct {
	Text     string                 `json:"text"`
	Thinking string                 `json:"thinking,omitempty"`
	Opaque   string                 `json:"opaque,omitempty"` // the provider's own block, for Request.Opaque
	Calls    []protocol.CallMessage `json:"calls,omitempty"`
	Stop     string                 `json:"stop,omitempty"` // why the model stopped, in the words of its wire
	Counts   Counts                 `json:"counts,omitempty"`
}

// MostCalls is how many tools one answer may call: as many as the API of OpenAI takes back in one message
// (https://platform.openai.com/docs/api-reference/chat/create). MostName is how long the name of a tool may be, in bytes.
const (
	MostCalls = 128
	MostName  = 1 << 10
)

// TooManyCalls is the error of an answer with more; name is that of the model.
func TooManyCalls(name string) *Error {
	return &Error{Class: Invalid, Message: fmt.Sprintf("model %s: its answer calls more than %d tools: have it call fewer at once, or offer it fewer tools", name, MostCalls)}
}

// CallsOf is how many tools a response calls.
func CallsOf(r *llms.ContentResponse) (n int) {
	for _, c := range r.Choices {
		n += len(c.ToolCalls)
	}
	return n
}

// Counts are numbers of a reply by the keys of this package: tokens, and milliseconds.
type Counts map[string]int64

// mostTokens is how many tokens a server may say that a call took: sums and costs of such counts stay numbers.
const mostTokens = 1 << 32

// Told reports whether a server told a number of tokens. One that cannot be is none.
func Told(n *int64) bool { return n != nil && *n >= 0 && *n <= mostTokens }

// Set counts under a key the first number that was told.
func (c Counts) Set(key string, from ...*int64) {
	for _, n := range from {
		if Told(n) {
			c[key] = *n
			return
		}
	}
}

// Tokens is how many tokens the prompt and the answer have together, −1 where that was not told.
func (c Counts) Tokens() int64 {
	in, told := c[KeyInput]
	out, said := c[KeyOutput]
	if !told && !said {
		return -1
	}
	return in + out
}

// ReplyOf joins the choices of a response: some of langchaingo's models give one for each block.
// Its Counts are of tokens alone.
func ReplyOf(res *llms.ContentResponse) Reply {
	r := Reply{Counts: Counts{}}
	if res == nil {
		return r
	}
	var text, thinking strings.Builder
	for _, c := range res.Choices {
		text.WriteString(c.Content)
		thinking.WriteString(c.ReasoningContent)
		if block, _ := c.GenerationInfo[KeyOpaque].(string); block != "" {
			r.Opaque = block
		}
		if c.StopReason != "" {
			r.Stop = c.StopReason
		}
		for _, call := range c.ToolCalls {
			if f := call.FunctionCall; f != nil {
				r.Calls = append(r.Calls, protocol.CallMessage{ID: call.ID, Name: f.Name, Arguments: f.Arguments})
			}
		}
	}
	r.Text, r.Thinking = text.String(), thinking.String()
	u := UsageOf(res)
	for key, n := range map[string]*int64{KeyInput: u.Input, KeyCached: u.Cached, KeyWrite5m: u.CacheWrite5m, KeyWrite1h: u.CacheWrite1h,
		KeyOutput: u.Output, KeyReasoning: u.Reasoning} {
		r.Counts.Set(key, n)
	}
	return r
}

// Response is the reply as langchaingo has it.
func (r Reply) Response() *llms.ContentResponse {
	c := &llms.ContentChoice{Content: r.Text, ReasoningContent: r.Thinking, StopReason: r.Stop, GenerationInfo: map[string]any{}}
	if r.Opaque != "" {
		c.GenerationInfo[KeyOpaque] = r.Opaque
	}
	for key, n := range r.Counts {
		c.GenerationInfo[key] = n
	}
	for _, call := range r.Calls {
		c.ToolCalls = append(c.ToolCalls, llms.ToolCall{ID: call.ID, Type: "function",
			FunctionCall: &llms.FunctionCall{Name: call.Name, Arguments: call.Arguments}})
	}
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{c}}
}

// Begun is what is known of an answer that broke off, what it used so far, nil where none had begun.
func Begun(used Counts, c *Clock) *llms.ContentResponse {
	if !c.Answered() {
		return nil
	}
	return Reply{Counts: used}.Response()
}

// Say passes all of the reply to the watcher of a call, the thought first, and gives its Response.
func (r Reply) Say(ctx context.Context, opts *llms.CallOptions) (*llms.ContentResponse, error) {
	if err := Think(ctx, opts, r.Thinking); err != nil {
		return nil, err
	}
	if err := Say(ctx, opts, r.Text); err != nil {
		return nil, err
	}
	return r.Response(), nil
}

// Clock takes the times of an answer. It runs from Start.
type Clock struct{ Start, first, thinkingFrom, thinkingTo time.Time }

// Heard notes that something came.
func (c *Clock) Heard() {
	if c.first.IsZero() {
		c.first = time.Now()
	}
}

// Answered reports whether something came.
func (c *Clock) Answered() bool { return !c.first.IsZero() }

// Thought notes that a part of a thought came.
func (c *Clock) Thought() {
	c.thinkingTo = time.Now()
	if c.thinkingFrom.IsZero() {
		c.thinkingFrom = c.thinkingTo
	}
}

// Times are the milliseconds to the first that was heard, and from the first thought to the last,
// 0 where there was none.
func (c *Clock) Times() (ttfe, thinking int64) {
	if !c.first.IsZero() {
		ttfe = c.first.Sub(c.Start).Milliseconds()
	}
	return ttfe, c.thinkingTo.Sub(c.thinkingFrom).Milliseconds()
}
