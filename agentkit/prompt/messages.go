package prompt

import (
	"fmt"
	"slices"
	"strings"

	"wf/protocol"
)

// BuildMessages renders the first request P_k of a visit from the records alone: the system
// message, and for each earlier visit of the conversation the message to it (U) and what
// the role concluded (A), then the U of this visit.
//
//	P_{k+1} = P_k ‖ A_k ‖ U_{k+1}      byte for byte, for ever
//
// It is a pure function: no clock, environment, working directory or map order reaches it, and
// neither do records that are no ancestors of the visit. The renderer is chosen by h.Format
// (0, as in records without one, is 1); an unknown one is an error wrapping
// protocol.ErrSemantics, a conversation that links to a record missing from h one
// wrapping protocol.ErrNotFound.
//
// A visit with the recorded tools of a task reads, instead of earlier visits, the
// summaries of the newest h.Summaries tasks and what all of them shared; its goal, h.Goal, is
// not in the records before it ends.
func BuildMessages(h protocol.History) ([]protocol.Message, error) {
	return build(formats, h)
}

// A format renders the parts of a prompt. Formats are never changed, only added: a run keeps
// the one it was started with. The files in testdata/messages pin each of them.
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
	past    *protocol.Records

	older  int            // steps that happened before since, of a message within a limit
	newest *protocol.Past // of these, nil for none
}

// formatOf is the one that a run keeps.
func formatOf(formats map[int]format, h *protocol.History) (format, error) {
	version := max(h.Format, 1)
	f, ok := formats[version]
	if !ok {
		return f, fmt.Errorf("messages of format %d (this wf knows up to %d): %w", version, len(formats), protocol.ErrSemantics)
	}
	return f, nil
}

func build(formats map[int]format, h protocol.History) ([]protocol.Message, error) {
	f, err := formatOf(formats, &h)
	if err != nil {
		return nil, err
	}
	t, err := f.dialogue(&h)
	if err != nil {
		return nil, err
	}
	if t.task {
		return f.taskMessages(&h, t)
	}
	u := t.parts(&h.Visit)
	return t.messages(f.system(&h), t.visits(), f.user(&u)), nil
}

// messages are those of a prompt with the newest visits of the dialogue.
func (t *dialogue) messages(system string, visits int, last string) []protocol.Message {
	n := 1
	if system != "" {
		n = 2
	}
	messages := make([]protocol.Message, n+2*visits)
	if system != "" {
		messages[0] = protocol.Message{Role: protocol.RoleSystem, Content: system}
	}
	at := len(messages) - 1
	messages[at] = protocol.Message{Role: protocol.RoleUser, Content: last}
	for x := t.last; visits > 0; x, visits = x.before, visits-1 {
		at -= 2
		messages[at], messages[at+1] = x.turns()
	}
	return messages
}

// turns are the two messages of an earlier visit.
func (x *exchange) turns() (user, answer protocol.Message) {
	return protocol.Message{Role: protocol.RoleUser, Content: x.user}, protocol.Message{Role: protocol.RoleAssistant, Content: x.answer}
}

// conversation is the visits a prompt renders before its own, oldest first.
type conversation struct {
	visits  []*protocol.Past
	summary string         // of the newest compaction, "" for none
	covers  *protocol.Past // the last visit it summarises
}

// conversationOf walks resumes. The newest compaction ends it at what it covers; older ones lie
// within its summary or, where it covers less than they did, are passed through.
func conversationOf(past *protocol.Records, visit *protocol.Past) (conversation, error) {
	var c conversation
	at := visit.Resumes
	for n := 0; at.Defined(); n++ {
		if c.covers != nil && at == c.covers.CID {
			break
		}
		v, err := resumed(past, at, n)
		if err != nil {
			return c, err
		}
		switch {
		case v.Compaction == nil:
			if v.Status == protocol.StepOK { // a visit that failed is no turn
				c.visits = append(c.visits, v)
			}
			at = v.Resumes
		case c.covers == nil:
			covers, _, ok := past.Get(v.Compaction.Covers)
			if !ok {
				return c, fmt.Errorf("record %s, covered by compaction %s: %w", v.Compaction.Covers, at, protocol.ErrNotFound)
			}
			c.covers, c.summary = covers, Join(v.Compaction.Summary, v.Inject)
			at = v.Compaction.Prior
		default:
			at = v.Compaction.Prior
		}
	}
	slices.Reverse(c.visits)
	return c, nil
}

// resumed finds the n-th record on the way back through a conversation.
func resumed(past *protocol.Records, at protocol.Link, n int) (*protocol.Past, error) {
	v, _, ok := past.Get(at)
	switch {
	case !ok:
		return nil, fmt.Errorf("resumed record %s: %w", at, protocol.ErrNotFound)
	case n > past.Len():
		return nil, fmt.Errorf("resumed record %s leads to itself: %w", at, protocol.ErrCorrupt)
	}
	return v, nil
}

// Join puts an empty line between the parts that are not empty. All formats rest on it: it never
// changes.
func Join(parts ...string) string {
	kept := parts[:0]
	for _, s := range parts {
		if s = strings.Trim(s, "\n"); strings.TrimSpace(s) != "" {
			kept = append(kept, s)
		}
	}
	return strings.Join(kept, "\n\n")
}
