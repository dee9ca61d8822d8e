package agentkit

import (
	"fmt"
	"strings"

	"wf/agentkit/task"
	"wf/protocol"
)

// BuildMessages renders the first request P_k of a visit from the records alone: the system
// message, and for each earlier visit of the conversation what the moderator said (U) and what
// the role concluded (A), then the U of this visit.
//
//	P_{k+1} = P_k ‖ A_k ‖ U_{k+1}      byte for byte, for ever
//
// It is a pure function: no clock, environment, working directory or map order reaches it, and
// neither do records that are no ancestors of the visit. The renderer is chosen by h.Format
// (0, as in records without one, is 1); an unknown one is an error wrapping
// protocol.ErrSemantics, a conversation that links to a record missing from h.Past one
// wrapping protocol.ErrNotFound.
//
// A visit whose recorded tools are those of a task reads, instead of earlier visits, the
// summaries of the newest h.Summaries tasks and what all of them shared; its goal, h.Goal, is
// not in the records before it ends.
func BuildMessages(h protocol.History) ([]protocol.Message, error) {
	return build(formats, h, nil)
}

// A Builder builds the prompts of many visits of a run, and renders what they share once. The
// zero Builder is ready; it is for one goroutine.
type Builder struct {
	told  map[toldBy]string
	lines map[spoken][]byte
}

// spoken is a message without tool calls.
type spoken struct{ role, content string }

// toldBy is what the user message of an earlier visit follows from: the records name all that came
// before them.
type toldBy struct {
	format        int
	visit, covers protocol.Link
	inputs        string // on the first visit of a conversation
	summary       string // on the first visit behind a compaction
}

// Prompt is the PromptBytes of BuildMessages.
func (b *Builder) Prompt(h protocol.History) ([]byte, error) {
	if b.told == nil {
		b.told, b.lines = map[toldBy]string{}, map[spoken][]byte{}
	}
	messages, err := build(formats, h, b.told)
	if err != nil {
		return nil, err
	}
	return promptBytes(h.Tools, messages, b.lines), nil
}

// A format renders the parts of a prompt. Formats are never changed, only added: a run keeps
// the one it was started with. The golden files in testdata/format pin each of them.
type format struct {
	system func(h *protocol.History) string
	user   func(u *userParts) string
	// Of a task: its system message, the message that sets it, and its one user message.
	taskSystem func(h *protocol.History) string
	original   func(u *userParts) string
	taskUser   func(t *taskParts) string
	// silent stands for a conclusion without text: providers refuse empty messages.
	silent string
}

var formats = map[int]format{
	1: {system: systemV1, user: userV1, taskSystem: taskSystemV1, original: originalV1, taskUser: taskUserV1, silent: "(no text)"},
	2: {system: systemV1, user: userV2, taskSystem: taskSystemV1, original: originalV2, taskUser: taskUserV1, silent: "(no text)"},
}

// userParts is what a user message is made of.
type userParts struct {
	visit   *protocol.Past
	summary string           // of the compaction in front of it
	inputs  protocol.JSON    // on the first visit of a conversation
	since   []*protocol.Past // what happened since the visit before, oldest first
	past    *past
}

func build(formats map[int]format, h protocol.History, told map[toldBy]string) ([]protocol.Message, error) {
	version := max(h.Format, 1)
	f, ok := formats[version]
	if !ok {
		return nil, fmt.Errorf("messages of format %d (this wf knows up to %d): %w", version, len(formats), protocol.ErrSemantics)
	}
	p := newPast(h.Past)
	chain, err := p.conversation(&h.Visit)
	if err != nil {
		return nil, fmt.Errorf("messages of %s#%d: %w", h.Visit.Role, h.Visit.Visit, err)
	}
	if task.Offered(h.Tools) {
		return f.taskMessages(&h, p, chain)
	}

	messages := make([]protocol.Message, 0, 2*len(chain.visits)+2)
	if system := f.system(&h); system != "" {
		messages = append(messages, protocol.Message{Role: protocol.RoleSystem, Content: system})
	}
	if chain.covers != nil {
		p.ancestors(chain.covers)
		p.see(chain.covers)
	}
	summary := chain.summary
	for i, v := range append(chain.visits, &h.Visit) {
		u := userParts{visit: v, summary: summary, since: p.ancestors(v), past: p}
		if i == 0 && chain.covers == nil {
			u.inputs = h.Inputs
		}
		if v == &h.Visit {
			messages = append(messages, protocol.Message{Role: protocol.RoleUser, Content: f.user(&u)})
			break
		}
		key := toldBy{format: version, visit: v.CID, inputs: string(u.inputs), summary: summary}
		if chain.covers != nil {
			key.covers = chain.covers.CID
		}
		text, ok := told[key]
		if !ok {
			text = f.user(&u)
			if told != nil {
				told[key] = text
			}
		}
		messages = append(messages, protocol.Message{Role: protocol.RoleUser, Content: text})
		p.see(v)
		summary = ""
		text = v.Text
		if strings.TrimSpace(text) == "" {
			text = f.silent
		}
		messages = append(messages, protocol.Message{Role: protocol.RoleAssistant, Content: text})
	}
	return messages, nil
}

// past is the ancestors of a visit, by CID, with a mark for those already told.
type past struct {
	byCID map[protocol.Link]int
	list  []protocol.Past
	seen  []bool
	stack []frame // reused by ancestors
}

type frame struct {
	node *protocol.Past
	at   int // index in list, −1 for the visit itself
	next int // parent to look at
}

func newPast(list []protocol.Past) *past {
	p := &past{byCID: make(map[protocol.Link]int, len(list)), list: list, seen: make([]bool, len(list))}
	for i := range list {
		p.byCID[list[i].CID] = i
	}
	return p
}

func (p *past) get(l protocol.Link) (*protocol.Past, bool) {
	i, ok := p.byCID[l]
	if !ok {
		return nil, false
	}
	return &p.list[i], true
}

func (p *past) see(v *protocol.Past) {
	if i, ok := p.byCID[v.CID]; ok {
		p.seen[i] = true
	}
}

// conversation is the visits a prompt renders before its own, oldest first.
type conversation struct {
	visits  []*protocol.Past
	summary string         // of the newest compaction, "" for none
	covers  *protocol.Past // the last visit it summarises
}

// conversation walks resumes. The newest compaction ends it at what it covers; older ones lie
// within its summary or, where it covers less than they did, are passed through.
func (p *past) conversation(visit *protocol.Past) (conversation, error) {
	var c conversation
	at := visit.Resumes
	for n := 0; at.Defined(); n++ {
		if c.covers != nil && at == c.covers.CID {
			break
		}
		v, ok := p.get(at)
		if !ok {
			return c, fmt.Errorf("resumed record %s: %w", at, protocol.ErrNotFound)
		}
		if n > len(p.list) {
			return c, fmt.Errorf("resumed record %s leads to itself: %w", at, protocol.ErrCorrupt)
		}
		switch {
		case v.Compaction == nil:
			if v.Status == protocol.StepOK { // a visit that failed is no turn
				c.visits = append(c.visits, v)
			}
			at = v.Resumes
		case c.covers == nil:
			covers, ok := p.get(v.Compaction.Covers)
			if !ok {
				return c, fmt.Errorf("record %s, covered by compaction %s: %w", v.Compaction.Covers, at, protocol.ErrNotFound)
			}
			c.covers, c.summary = covers, joinParts(v.Compaction.Summary, v.Inject)
			at = v.Compaction.Prior
		default:
			at = v.Compaction.Prior
		}
	}
	for i, j := 0, len(c.visits)-1; i < j; i, j = i+1, j-1 {
		c.visits[i], c.visits[j] = c.visits[j], c.visits[i]
	}
	return c, nil
}

// ancestors are the steps above v that were not seen before, in depth-first post-order over
// parents, and marks them seen: over a whole conversation every step is visited once. A parent
// that is no step is where the run started.
func (p *past) ancestors(v *protocol.Past) []*protocol.Past {
	var out []*protocol.Past
	p.stack = append(p.stack[:0], frame{node: v, at: -1})
	for len(p.stack) > 0 {
		top := &p.stack[len(p.stack)-1]
		if top.next < len(top.node.Parents) {
			parent := top.node.Parents[top.next]
			top.next++
			if i, ok := p.byCID[parent]; ok && !p.seen[i] {
				p.seen[i] = true
				p.stack = append(p.stack, frame{node: &p.list[i], at: i})
			}
			continue
		}
		if top.at >= 0 && top.node.Compaction == nil {
			out = append(out, top.node)
		}
		p.stack = p.stack[:len(p.stack)-1]
	}
	return out
}

// joinParts puts an empty line between the parts that are not empty.
func joinParts(parts ...string) string {
	kept := parts[:0]
	for _, s := range parts {
		if s = strings.Trim(s, "\n"); strings.TrimSpace(s) != "" {
			kept = append(kept, s)
		}
	}
	return strings.Join(kept, "\n\n")
}
