package prompt

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"wf/agentkit/task"
	"wf/protocol"
)

// Caps of tasks in format 1, in runes.
const (
	taskSummaryMax = 8_000 // of each earlier task
	taskSharedMax  = 8_000 // of all shared values
)

// taskParts is what the first request of a task is made of, in its order:
//
//	system ‖ dynamic ‖ newest summaries ‖ shared values ‖ original ‖ goal
//
// The task's own run follows, with goal and state at the end of each later request.
type taskParts struct {
	inject   string
	earlier  []earlierTask // oldest first
	shared   protocol.JSON // what all earlier tasks left shared, or nil
	original string
	goal     string
}

// earlierTask is a completed task with its summary.
type earlierTask struct {
	goal, summary string
	cid           protocol.Link
}

// taskMessages is P_k of a task.
func (f format) taskMessages(h *protocol.History, t *dialogue) ([]protocol.Message, error) {
	p := taskParts{inject: h.Visit.Inject, goal: h.Goal, original: f.setting(h, t)}
	for x := t.last; x != nil && len(p.earlier) < h.Summaries; x = x.before {
		if d, ok := task.Read(x.visit.Data); ok && d.Summary != "" {
			p.earlier = append(p.earlier, earlierTask{d.Goal, d.Summary, x.visit.CID})
		}
	}
	slices.Reverse(p.earlier)
	if t.last != nil {
		var err error
		if p.shared, err = task.Shared(t.last.shared.All()); err != nil {
			return nil, err
		}
	}

	var messages []protocol.Message
	if system := f.taskSystem(h); system != "" {
		messages = append(messages, protocol.Message{Role: protocol.RoleSystem, Content: system})
	}
	return append(messages, protocol.Message{Role: protocol.RoleUser, Content: f.taskUser(&p)}), nil
}

// setting is the message that sets a task. Earlier tasks count as told.
func (f format) setting(h *protocol.History, t *dialogue) string {
	u := t.parts(&h.Visit)
	return f.original(&u)
}

// Original is the message that sets the task of a visit. The errors are those of BuildMessages.
func Original(h protocol.History) (string, error) {
	f, err := formatOf(formats, &h)
	if err != nil {
		return "", err
	}
	t, err := f.dialogue(&h)
	if err != nil {
		return "", err
	}
	return f.setting(&h, t), nil
}

func taskSystemV1(h *protocol.History) string {
	return Join(h.System, task.SystemText(), task.OutputText(h.Schema))
}

// originalV1 is the edge prompt, with the inputs and steps that it does not tell
// already. Steps of which nothing but their names would be told are left out.
func originalV1(u *userParts) string {
	since := ""
	if slices.ContainsFunc(u.since, func(s *protocol.Past) bool { return !directV1(u, s) || !mentionedV1(u, s) }) {
		since = sinceV1(u)
	}
	return cmp.Or(Join(u.visit.EdgePrompt, inputsV1(u.inputs, u.visit.Mentions), since), "(continue)")
}

func directV1(u *userParts, s *protocol.Past) bool { return slices.Contains(u.visit.Parents, s.CID) }

func taskUserV1(t *taskParts) string {
	earlier := ""
	if len(t.earlier) > 0 {
		parts := []string{"## Earlier tasks"}
		for _, e := range t.earlier {
			parts = append(parts, "### "+e.goal+"\n\n"+cutV1(e.summary, taskSummaryMax, e.cid))
		}
		earlier = Join(parts...)
	}
	block := ""
	if t.goal != "" {
		block = task.Block(t.goal, "")
	}
	return Join(t.inject, earlier, sharedV1(t.shared), "## Message\n\n"+t.original, block)
}

// sharedV1 lists the shared values, as many as fit, by name.
func sharedV1(shared protocol.JSON) string {
	if len(shared) == 0 {
		return ""
	}
	left, dropped := taskSharedMax, 0
	text := fieldsV1(shared, func(name string, raw json.RawMessage) bool {
		if left -= utf8.RuneCountInString(name) + utf8.RuneCount(raw); left < 0 {
			dropped++
			return true
		}
		return false
	})
	if dropped > 0 {
		text += fmt.Sprintf("…[%d more]\n", dropped)
	}
	return "## Shared values\n\n" + strings.TrimSuffix(text, "\n")
}

// Fields renders an object one member a line, as BuildMessages does.
func Fields(object protocol.JSON) string {
	return strings.TrimRight(fieldsV1(object, func(string, json.RawMessage) bool { return false }), "\n")
}

// Outcome is what a task gave that a sub-workflow carried out, by its outputs, an object or nil:
// the first text of final_response, response and text, else all of them; and the text of summary,
// "" for none.
func Outcome(outputs protocol.JSON) (response, summary string, err error) {
	var fields map[string]json.RawMessage
	if len(outputs) > 0 {
		if err := json.Unmarshal(outputs, &fields); err != nil {
			return "", "", err
		}
	}
	if response = textOutput(fields, "final_response", "response", "text"); response == "" {
		response = Fields(outputs)
	}
	return response, textOutput(fields, "summary"), nil
}

// textOutput is the first of these outputs that is a text and says something.
func textOutput(fields map[string]json.RawMessage, names ...string) string {
	for _, name := range names {
		var s string
		if json.Unmarshal(fields[name], &s) == nil && strings.TrimSpace(s) != "" {
			return strings.TrimSpace(s)
		}
	}
	return ""
}
