package agentkit

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/model"
	"wf/protocol"
)

//go:embed compact.md
var compactText string

// summary is what takes the place of something longer.
type summary struct {
	text  string
	model string          // that wrote it; "" for an extract
	why   string          // no model wrote it, where one was asked
	usage *protocol.Usage // of the call, if one was made
}

// events are what is journaled of it, in the commit of the compaction: a process that dies
// before has changed nothing.
func (s *summary) events() []protocol.Data {
	if s.usage == nil {
		return nil
	}
	return []protocol.Data{*s.usage}
}

// A summary is bounded by its tokens, but never below what says anything.
const (
	runesPerToken = 4
	summaryMin    = 400 // runes
)

// summarise asks the model once for a summary of what the live request holds, with the same
// tools and messages in front, so that they are read from its prefix cache. Without a model
// that writes one it is an extract.
func (v *visit) summarise(ctx context.Context, live []protocol.Message, what string, watermark int64, extract func(runes int) string) (summary, error) {
	most := max(summaryMin, int(summaryTokens(watermark))*runesPerToken)
	name := ""
	if v.model < len(v.models) {
		name = v.models[v.model]
	}
	if c := v.turn.Role.Compaction; c != nil && c.Model != "" {
		name = c.Model
	}
	var s summary
	if name != "" {
		ask := strings.NewReplacer("{{what}}", what, "{{words}}", fmt.Sprint(most/6)).Replace(strings.TrimSpace(compactText))
		err := v.write(ctx, &s, name, append(live[:len(live):len(live)], protocol.Message{Role: protocol.RoleUser, Content: ask}), most)
		if ctx.Err() != nil {
			return s, ctx.Err()
		}
		if err == nil {
			s.model, s.text = name, head(s.text, 2*most)
			return s, nil
		}
		s.why = head(v.clean(valid(err.Error())), 500)
	}
	s.text = extract(most)
	return s, nil
}

// write makes the call for a summary of about so many runes at most.
func (v *visit) write(ctx context.Context, s *summary, name string, messages []protocol.Message, most int) error {
	if window := v.windows[name]; window > 0 {
		if held := int64(v.density() * float64(sizeOf(v.list, messages))); held > window {
			return fmt.Errorf("the model %s reads at most %d tokens: what is to be summarised holds about %d", name, window, held)
		}
	}
	m, err := v.agent.open(name, filepath.Dir(v.turn.File))
	if err != nil {
		return err
	}
	request := v.describe(messages)
	request.Call, request.Summary, request.Prompt = v.summaries, true, len(v.prompt)
	if len(messages) <= len(v.prompt) { // without the visit's own message: as the visit before
		request.Prompt = len(messages) - 2
	}
	params, err := roomFor(v.turn.Role.Params, most)
	if err != nil {
		return err
	}
	request.Params = protocol.JSON(params)
	options, err := callOptions(v.offer, params)
	if err != nil {
		return err
	}
	watch := newWatch(v.emit, v.hidden) // of its times alone: a summary is not shown as it grows
	r, err := m.GenerateContent(model.WithRequest(ctx, request), contents(messages), options...)
	if ctx.Err() != nil {
		return v.gaveUp(ctx, protocol.Usage{Model: name, TotalMS: watch.total(), Kind: protocol.UsageCompaction})
	}
	if err == nil && (r == nil || len(r.Choices) == 0) {
		err = &model.Error{Class: model.ServerError, Message: fmt.Sprintf("model %s: the response holds no choice", name)}
	}
	if err != nil {
		failed := model.AsError(name, err)
		if failed.Class != model.Unavailable { // else nothing was asked
			s.usage = &protocol.Usage{Model: name, TotalMS: watch.total(), Kind: protocol.UsageCompaction}
			v.summaries++
		}
		return failed
	}
	usage := model.UsageOf(r)
	usage.Model, usage.TotalMS, usage.Kind = name, watch.total(), protocol.UsageCompaction
	usage.Stop, err = model.StopOf(name, r)
	s.usage = &usage
	v.summaries++
	if err != nil {
		return err
	}
	return s.said(v, name, r)
}

// roomFor raises what bounds a reply, where the role sets it for short answers, to what a
// summary of that many runes takes. That is no part of the cached prefix.
func roomFor(params string, runes int) (string, error) {
	var all map[string]json.RawMessage
	if params == "" {
		return "", nil
	}
	if err := json.Unmarshal([]byte(params), &all); err != nil {
		return "", fmt.Errorf("params: %w", err)
	}
	changed := false
	for _, name := range []string{"max_tokens", "max_completion_tokens"} {
		var n int
		if json.Unmarshal(all[name], &n) == nil && n < runes/2 {
			all[name], changed = json.RawMessage(strconv.Itoa(runes/2)), true
		}
	}
	if !changed {
		return params, nil
	}
	b, err := protocol.CanonicalJSON(all)
	return string(b), err
}

// said reads the reply.
func (s *summary) said(v *visit, name string, r *llms.ContentResponse) error {
	calls := 0
	for _, c := range r.Choices {
		s.text += c.Content
		calls += len(c.ToolCalls)
	}
	s.text = strings.TrimSpace(v.clean(valid(s.text)))
	switch {
	case s.text != "":
		return nil
	case calls > 0:
		return fmt.Errorf("model %s: it called tools in the place of a summary", name)
	}
	return fmt.Errorf("model %s: the summary is empty", name)
}

// Shares of an extract, in runes.
const (
	askedMax    = 240
	answeredMax = 480
	argsMax     = 160
)

// extractPast tells a conversation by the beginnings of its messages: the first, which holds
// the task or an earlier summary, at length, then as many of the newest as fit.
func extractPast(messages []protocol.Message, runes int) string {
	task := ""
	var entries []string
	for i := range messages {
		m := &messages[i]
		switch {
		case i == 0:
			task = head(strings.TrimSpace(strings.TrimPrefix(m.Content, pastHeading)), runes/2)
		case m.Role == protocol.RoleUser:
			entries = append(entries, "Asked:\n\n"+quote(head(m.Content, askedMax)))
		default:
			entries = append(entries, "Answered:\n\n"+quote(head(m.Content, answeredMax)))
		}
	}
	return joinParts(task, newest(entries, runes-utf8.RuneCountInString(task)))
}

// extractWork tells calls and results by their beginnings.
func extractWork(tail []protocol.Message, runes int) string {
	var entries []string
	for i := range tail {
		m := &tail[i]
		switch m.Role {
		case protocol.RoleAssistant:
			most := answeredMax
			if i == 0 && len(m.ToolCalls) == 0 {
				most = runes / 2 // an earlier summary
			}
			var lines []string
			if strings.TrimSpace(m.Content) != "" {
				lines = append(lines, head(strings.TrimSpace(m.Content), most))
			}
			for _, c := range m.ToolCalls {
				lines = append(lines, "Called "+c.Name+" "+head(c.Arguments, argsMax))
			}
			entries = append(entries, strings.Join(lines, "\n"))
		case protocol.RoleTool:
			entries = append(entries, "It gave:\n\n"+quote(head(m.Content, askedMax)))
		case protocol.RoleUser:
			if m.Content != goOn {
				entries = append(entries, "Told:\n\n"+quote(head(m.Content, askedMax)))
			}
		}
	}
	return "What was done on this task so far:\n\n" + newest(entries, runes)
}

// newest joins the newest entries that fit, and says how many older ones do not.
func newest(entries []string, runes int) string {
	from := len(entries)
	for from > 0 {
		if runes -= utf8.RuneCountInString(entries[from-1]); runes < 0 {
			break
		}
		from--
	}
	parts := entries[from:]
	if from > 0 {
		parts = append([]string{fmt.Sprintf("…[%d older messages are left out]", from)}, parts...)
	}
	return joinParts(parts...)
}

// head is the first runes of a text, with a mark where there were more.
func head(s string, runes int) string {
	n := 0
	for at := range s {
		if n == runes {
			return strings.TrimRight(s[:at], " \n") + "…"
		}
		n++
	}
	return s
}

// quote sets a text off from the words around it.
func quote(s string) string {
	return "> " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n> ")
}
