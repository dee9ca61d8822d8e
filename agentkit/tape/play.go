package tape

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"sync"

	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/model"
)

// A Play is one run that is answered from recordings. It remembers which answers were given, so that several runs can be
// answered from one recording at the same time, each from its beginning. Its methods are safe for concurrent use.
type Play struct {
	// Sequence has a request that was not recorded answered by what was recorded in its place: for the same call of the same
	// visit, else the first answer of its role that was not given yet. Without it such a request is a miss.
	Sequence bool

	mu    sync.Mutex
	used  map[*line]bool
	count Count
}

// Count is how the requests of a Play were answered.
type Count struct {
	Requests int    // in all
	Differed int    // of them, answered by their place in the sequence
	Missed   int    // of them, without an answer
	Miss     string // why the first of those has none
}

// Count tells how the requests were answered until now.
func (p *Play) Count() Count {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}

type playKey struct{}

// With has the models of recordings that are called with the context answer for a run of its own.
func With(ctx context.Context, p *Play) context.Context { return context.WithValue(ctx, playKey{}, p) }

// playOf is the Play of a call: that of its context, else the one of the model, which is strict.
func (m *Model) playOf(ctx context.Context) *Play {
	if p, ok := ctx.Value(playKey{}).(*Play); ok {
		return p
	}
	return &m.own
}

// answer finds the answer to a request; nil is a miss.
func (p *Play) answer(m *Model, lines []json.RawMessage, r model.Request) *line {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count.Requests++
	l := p.exact(m, keyOf(lines), r)
	if l == nil && p.Sequence {
		if l = p.next(m, lines, r); l != nil {
			p.count.Differed++
		}
	}
	if l == nil {
		p.count.Missed++
		if p.count.Miss == "" {
			p.count.Miss = m.miss(lines, r)
		}
		return nil
	}
	p.use(l)
	return l
}

func (p *Play) use(l *line) {
	if p.used == nil {
		p.used = map[*line]bool{}
	}
	p.used[l] = true
}

// exact takes the call of exactly that request: the one at the same place of a visit, so that a process that resumes gets
// the right one, else the first that was not used.
func (p *Play) exact(m *Model, key string, r model.Request) *line {
	var first *line
	for _, i := range m.byKey[key] {
		l := &m.lines[i]
		switch {
		case p.used[l]:
			continue
		case l.at(r):
			return l
		case first == nil:
			first = l
		}
	}
	if all := m.byKey[key]; first == nil && len(all) > 0 { // all were used: the newest answer holds
		return &m.lines[all[len(all)-1]]
	}
	return first
}

// next takes what was recorded in the place of a request that differs.
func (p *Play) next(m *Model, lines []json.RawMessage, r model.Request) *line {
	like := kindOf(lines, r)
	for _, samePlace := range []bool{true, false} {
		for _, i := range m.byRole[r.Role] {
			l := &m.lines[i]
			if !p.used[l] && (!samePlace || l.at(r)) && l.like(like) {
				return l
			}
		}
	}
	return nil
}

// kind tells the requests of a visit apart, whose calls are numbered each on their own.
type kind struct {
	name  string // summary, goal or reflection; "" is a turn of the agent
	tools bool
}

func kindOf(lines []json.RawMessage, r model.Request) kind {
	return kind{kindName(r), len(headOf(lines).Tools) > 0}
}

func kindName(r model.Request) string {
	switch {
	case r.Summary:
		return "summary"
	case r.Goal:
		return "goal"
	case r.Reflection:
		return "reflection"
	}
	return ""
}

func headOf(lines []json.RawMessage) (h head) {
	if len(lines) > 0 {
		_ = json.Unmarshal(lines[0], &h) // of one that does not read nothing is known
	}
	return h
}

// like reports whether the call was of a kind. Recordings of before have no kinds: a summary is known there by its request,
// and a goal by its lack of tools.
func (l *line) like(k kind) bool {
	h := headOf(l.Request)
	switch {
	case l.Kind != "" || k.name == "":
		return l.Kind == k.name && h.Summary == (k.name == "summary")
	case h.Summary || k.name == "summary":
		return h.Summary && k.name == "summary"
	}
	return (len(h.Tools) > 0) == k.tools
}

// Read reads a recording from an open file, which is not closed; name is the model's, for messages.
func Read(name string, from io.Reader) (*Model, error) {
	m := &Model{name: name, byKey: map[string][]int{}, byRole: map[string][]int{}}
	if err := m.read(from); err != nil {
		return nil, &model.Error{Class: model.Unavailable, Message: "model " + name + ": " + err.Error(), Err: err}
	}
	return m, nil
}

// Calls is how many calls were recorded.
func (m *Model) Calls() int { return len(m.lines) }

// Roles are the roles of which calls were recorded, sorted.
func (m *Model) Roles() []string {
	var out []string
	for role := range m.byRole {
		out = append(out, role)
	}
	slices.Sort(out)
	return out
}

type recorderKey struct{}

// Recording has the models that Tap gave, and that are called with the context, recorded.
func Recording(ctx context.Context, r *Recorder) context.Context {
	return context.WithValue(ctx, recorderKey{}, r)
}

// Tap gives a model that answers as m does and is recorded by the recorder of the context that it is called with, if
// there is one.
func Tap(name string, m llms.Model) llms.Model { return &tapped{name, m} }

type tapped struct {
	name string
	of   llms.Model
}

// Call is the older form of GenerateContent.
func (m *tapped) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, m, prompt, options...)
}

// GenerateContent asks the model.
func (m *tapped) GenerateContent(ctx context.Context, messages []llms.MessageContent, options ...llms.CallOption) (*llms.ContentResponse, error) {
	of := m.of
	if r, ok := ctx.Value(recorderKey{}).(*Recorder); ok {
		of = r.Wrap(m.name, m.of)
	}
	return of.GenerateContent(ctx, messages, options...)
}
