// Package script is a model that answers from a file: for tests, demos and dry runs.
//
//	coder#1:                       # role#visit of the record; role#visit[i] for items
//	  - {tool: read_file, args: {path: main.go}}
//	  - {tools: [{tool: shell, args: {command: go vet ./...}}]}
//	  - {text: "---\nstatus: done\n---\nFixed."}
//	  - {error: {status: 503}}
//	  - {summary: "Two tries failed."}
//	  - {goal: Repair Split}
//	  - {reflection: true, tool: remember, args: {content: Split drops the last piece.}}
//
// A summary stands apart from the turns: it answers the next request of the visit for one,
// when the visit compacts its conversation or its own work. Where the script has none left the
// agent makes an extract. A goal stands apart in the same way: it names the task of a visit with
// the context task, which without one takes the beginning of its message. Replies marked as
// reflection are the turns in which a model with a memory puts it in order before a compaction;
// without any there is no reflection.
//
// The replies of a visit are given in order, one for each model call. The model holds no
// state: which reply is next follows from the number of calls in the journal, so that a
// process that resumes a visit goes on with the right one.
//
// # Not here
//
// Filler. A call that the file has no reply for is an error that names role, visit and call.
package script

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/model"
	"wf/files"
	"wf/protocol"
	"wf/roles/frontmatter"
)

// Prefix is how the name of a scripted model begins: script/FILE.
const Prefix = "script/"

// Reply is what the model says in one call. Text, Thinking and calls may come together; with
// Error there is nothing else.
type Reply struct {
	Tool     string          `json:"tool"` // one call, short for Tools
	Args     json.RawMessage `json:"args"` // an object; a string is sent as it is
	Tools    []Call          `json:"tools"`
	Text     *string         `json:"text"`
	Thinking string          `json:"thinking"`
	Delay    string          `json:"delay"` // duration before the reply
	Usage    *Usage          `json:"usage"` // default: a quarter of the bytes
	Error    *Failure        `json:"error"`
	Summary  *string         `json:"summary"` // for a request for a summary; then there is no Text or call
	Goal     *string         `json:"goal"`    // for the request for a goal; likewise

	Reflection bool `json:"reflection"` // for a turn of the reflection before a compaction
}

// Call is one tool call.
type Call struct {
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"`
}

// Usage is what the reply claims to have cost, in tokens.
type Usage struct {
	Input     *int64 `json:"input"`
	Cached    *int64 `json:"cached"`
	Output    *int64 `json:"output"`
	Reasoning *int64 `json:"reasoning"`
}

// Failure is a call that does not work.
type Failure struct {
	Status     int    `json:"status"` // HTTP status, default 500
	Message    string `json:"message"`
	RetryAfter string `json:"retry_after"` // duration
}

// Model implements llms.Model.
type Model struct {
	name    string
	digest  [sha256.Size]byte // of the file
	replies map[string][]Reply
}

// mostScript bounds a script, in bytes: a workflow names the file.
const mostScript = 64 << 20

// Open reads the replies from a file; name is the model's, for messages. A missing or invalid
// file is an *model.Error of class unavailable, since nothing was asked yet.
func Open(name, file string) (*Model, error) {
	text, err := files.ReadNamed(file, mostScript)
	if err != nil {
		if p, ok := errors.AsType[*os.PathError](err); ok {
			err = p.Err
		}
		return nil, &model.Error{Class: model.Unavailable, Message: fmt.Sprintf("model %s: read %s: %v", name, file, err), Err: err}
	}
	replies, err := parsed(text)
	if err != nil {
		return nil, &model.Error{Class: model.Unavailable, Message: fmt.Sprintf("model %s: %s: %v", name, file, err)}
	}
	return &Model{name: name, digest: sha256.Sum256(text), replies: replies}, nil
}

// Sources are the whole file, and the visit, by which it is read.
func (m *Model) Sources(r model.Request) []model.Source {
	return []model.Source{{Name: "script", Value: hex.EncodeToString(m.digest[:])}, {Name: "visit of the script", Value: r.VisitName()}}
}

// last is the script parsed last, by the digest of its text: a run opens its model anew for
// every visit, and a long script takes longer to parse than the visit.
var last struct {
	sync.Mutex
	digest  [sha256.Size]byte
	replies map[string][]Reply
}

func parsed(text []byte) (map[string][]Reply, error) {
	digest := sha256.Sum256(text)
	last.Lock()
	defer last.Unlock()
	if last.replies != nil && last.digest == digest {
		return last.replies, nil
	}
	replies, err := Parse(string(text))
	if err != nil {
		return nil, err
	}
	last.digest, last.replies = digest, replies
	return replies, nil
}

// Parse reads a script: replies by visit.
func Parse(text string) (map[string][]Reply, error) {
	data, err := frontmatter.File(text)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "the fields, "))
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var replies map[string][]Reply
	if err := dec.Decode(&replies); err != nil {
		return nil, fmt.Errorf("not a script (role#visit: a list of replies): %w", err)
	}
	for visit, list := range replies {
		if _, err := protocol.ParseStepID(visit); err != nil {
			return nil, err
		}
		for i := range list {
			if err := list[i].check(); err != nil {
				return nil, fmt.Errorf("%s, reply %d: %w", visit, i+1, err)
			}
		}
	}
	return replies, nil
}

// check normalises a reply to Tools and raw arguments.
func (r *Reply) check() error {
	if r.Tool != "" {
		r.Tools = append([]Call{{Tool: r.Tool, Args: r.Args}}, r.Tools...)
		r.Tool, r.Args = "", nil
	}
	for i, c := range r.Tools {
		if c.Tool == "" {
			return fmt.Errorf("call %d names no tool", i+1)
		}
		var raw string
		if c.Args == nil {
			r.Tools[i].Args = json.RawMessage("{}")
		} else if json.Unmarshal(c.Args, &raw) == nil {
			r.Tools[i].Args = json.RawMessage(raw)
		}
	}
	if r.Text == nil && len(r.Tools) == 0 && r.Error == nil && r.Summary == nil && r.Goal == nil {
		return fmt.Errorf("it has neither text nor tool nor error nor summary nor goal")
	}
	if r.Summary != nil && (r.Text != nil || len(r.Tools) > 0) {
		return fmt.Errorf("a summary stands alone")
	}
	if r.Goal != nil && (r.Text != nil || len(r.Tools) > 0 || r.Summary != nil) {
		return fmt.Errorf("a goal stands alone")
	}
	if _, err := duration(r.Delay); err != nil {
		return fmt.Errorf("delay: %w", err)
	}
	if r.Error != nil {
		if _, err := duration(r.Error.RetryAfter); err != nil {
			return fmt.Errorf("retry_after: %w", err)
		}
	}
	return nil
}

func duration(s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	return time.ParseDuration(s)
}

// GenerateContent gives the reply for the call that the context's model.Request names.
func (m *Model) GenerateContent(ctx context.Context, messages []llms.MessageContent, options ...llms.CallOption) (*llms.ContentResponse, error) {
	request, ok := model.RequestFrom(ctx)
	if !ok {
		return nil, &model.Error{Class: model.Unavailable, Message: fmt.Sprintf("model %s answers visits of roles alone: the context names none", m.name)}
	}
	visit := request.VisitName()
	reply := m.reply(visit, request)
	if reply == nil {
		call := "call"
		switch {
		case request.Summary:
			call = "summary"
		case request.Reflection:
			call = "reflection"
		case request.Goal:
			call = "goal"
		}
		return nil, &model.Error{Class: model.Unavailable, Message: fmt.Sprintf(
			"model %s has no reply for %s, %s %d: the script holds %s", m.name, visit, call, request.Call+1, m.held(visit))}
	}
	delay, _ := duration(reply.Delay) // checked by Parse
	if err := model.Wait(ctx, delay); err != nil {
		return nil, err
	}
	if reply.Error != nil {
		f := reply.Error
		status := cmp.Or(f.Status, 500)
		after, _ := duration(f.RetryAfter) // checked by Parse
		return nil, &model.Error{Class: model.ClassOfStatus(status), Status: status, RetryAfter: after,
			Message: fmt.Sprintf("model %s: status %d: %s", m.name, status, cmp.Or(f.Message, "scripted error"))}
	}
	opts := model.OptionsOf(options)
	said := model.Reply{Text: reply.said(), Thinking: reply.Thinking, Stop: "stop", Counts: reply.counts(messages, opts)}
	for i, c := range reply.Tools {
		said.Stop = "tool_calls"
		said.Calls = append(said.Calls, protocol.CallMessage{ID: fmt.Sprintf("call_%d_%d", request.Call+1, i+1), Name: c.Tool, Arguments: string(c.Args)})
	}
	return said.Say(ctx, opts)
}

// reply is the one that a request is answered with, nil for none.
func (m *Model) reply(visit string, r model.Request) *Reply {
	n := 0
	for i := range m.replies[visit] {
		reply := &m.replies[visit][i]
		if (reply.Summary != nil) != r.Summary || (reply.Goal != nil) != r.Goal || reply.Reflection != r.Reflection {
			continue
		}
		if n == r.Call {
			return reply
		}
		n++
	}
	return nil
}

// said is the text of a reply.
func (r *Reply) said() string {
	switch {
	case r.Summary != nil:
		return *r.Summary
	case r.Goal != nil:
		return *r.Goal
	case r.Text != nil:
		return *r.Text
	}
	return ""
}

// Call is the older form of GenerateContent.
func (m *Model) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, m, prompt, options...)
}

func (m *Model) held(visit string) string {
	if n := len(m.replies[visit]); n > 0 {
		return fmt.Sprintf("%d for it", n)
	}
	if len(m.replies) == 0 {
		return "none at all"
	}
	return "replies for " + strings.Join(slices.Sorted(maps.Keys(m.replies)), ", ")
}

// counts are what the script says, else a quarter of the bytes: the same on every machine.
func (r *Reply) counts(messages []llms.MessageContent, opts *llms.CallOptions) model.Counts {
	counts := model.Counts{}
	if u := r.Usage; u != nil {
		counts.Set(model.KeyInput, u.Input)
		counts.Set(model.KeyCached, u.Cached)
		counts.Set(model.KeyOutput, u.Output)
		counts.Set(model.KeyReasoning, u.Reasoning)
		return counts
	}
	in, out := 0, len(r.Thinking)+len(r.said())
	for _, t := range opts.Tools {
		if b, err := json.Marshal(t); err == nil {
			in += len(b)
		}
	}
	for _, m := range messages {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llms.TextContent:
				in += len(p.Text)
			case llms.ToolCall:
				in += len(p.FunctionCall.Name) + len(p.FunctionCall.Arguments)
			case llms.ToolCallResponse:
				in += len(p.Content)
			}
		}
	}
	for _, c := range r.Tools {
		out += len(c.Tool) + len(c.Args)
	}
	counts[model.KeyInput], counts[model.KeyOutput] = int64((in+3)/4), int64((out+3)/4)
	return counts
}
