package task

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"wf/protocol"
)

// Bounds of what an agent may note, so that what later requests hold stays small.
const (
	StateMax    = 4_000 // runes of a state
	QuestionMax = 8_000 // runes of a question
)

//go:embed *.md
var texts embed.FS

// text is an embedded text without its last newline.
func text(name string) string {
	b, err := texts.ReadFile(name + ".md")
	if err != nil {
		panic(err) // embedded beside this file
	}
	return strings.TrimSpace(string(b))
}

const (
	shareSchema = `"share":{"type":"object","description":"Values for later tasks, by name: small JSON values; null takes a name back."}`

	updateSchema = `{"type":"object","properties":{"state":{"type":"string","description":"What is done, what was found, what comes next. It takes the place of the state before."},` +
		shareSchema + `},"required":["state"],"additionalProperties":false}`
	waitingSchema = `{"type":"object","properties":{"question":{"type":"string","description":"What you need to know, with all that is needed to answer it."}},` +
		`"required":["question"],"additionalProperties":false}`
	completeSchema = `{"type":"object","properties":{"final_response":{"type":"string","description":"The whole answer to the user, in Markdown."},` +
		`"summary":{"type":"string","description":"What later tasks need to know of this one, in at most {{words}} words: what was asked, decided and done, with exact names."},` +
		shareSchema + `},"required":["final_response","summary"],"additionalProperties":false}`
	completeOnlySchema = `{"type":"object","properties":{"final_response":{"type":"string","description":"The whole answer to the user, in Markdown."},` +
		shareSchema + `},"required":["final_response"],"additionalProperties":false}`
)

// Tools are those by which an agent steers its task, sorted by name.
func Tools(spec *protocol.TaskSpec) []protocol.Tool {
	complete := completeOnlySchema
	if SummaryBy(spec) == protocol.SummaryByAgent {
		complete = strings.Replace(completeSchema, "{{words}}", fmt.Sprint(Words(spec)), 1)
	}
	return []protocol.Tool{
		{Name: protocol.ToolTaskComplete, Description: text("complete"), Parameters: protocol.JSON(complete)},
		{Name: protocol.ToolTaskUpdateState, Description: text("update_state"), Parameters: protocol.JSON(updateSchema)},
		{Name: protocol.ToolTaskWaitingOnUser, Description: text("waiting_on_user"), Parameters: protocol.JSON(waitingSchema)},
	}
}

// Offered reports whether a recorded tool list (canonical JSON, "" for none) is that of a task:
// it alone holds task_complete.
func Offered(list string) bool {
	if !strings.Contains(list, `"`+protocol.ToolTaskComplete+`"`) {
		return false
	}
	type named struct {
		Name string `json:"name"`
	}
	var tools []named
	if json.Unmarshal([]byte(list), &tools) != nil {
		return false
	}
	return slices.ContainsFunc(tools, func(t named) bool { return t.Name == protocol.ToolTaskComplete })
}

// SummaryBy says what writes the summary of a task; nil is the agent.
func SummaryBy(spec *protocol.TaskSpec) protocol.TaskSummary {
	if spec == nil || spec.Summary == "" {
		return protocol.SummaryByAgent
	}
	return spec.Summary
}

// Words is how many words a summary may have.
func Words(spec *protocol.TaskSpec) int {
	if spec == nil || spec.Words <= 0 {
		return protocol.DefaultTaskWords
	}
	return spec.Words
}

// Update is what task_update_state says.
type Update struct {
	State string
	Share protocol.JSON // a canonical object, or nil
}

// Question is what task_waiting_on_user says.
type Question struct{ Question string }

// Completion is what task_complete says. The summary is cut to the words that it may have.
type Completion struct {
	FinalResponse string
	Summary       string
	Share         protocol.JSON // a canonical object, or nil
}

// ParseUpdate reads arguments as a model wrote them; the error is for the model.
func ParseUpdate(args string) (Update, error) {
	fields, err := object(args)
	if err != nil {
		return Update{}, err
	}
	var u Update
	if u.State, err = stringField(fields, "state", StateMax); err != nil {
		return u, err
	}
	u.Share, err = shareField(fields)
	return u, err
}

// ParseQuestion reads arguments as a model wrote them; the error is for the model.
func ParseQuestion(args string) (Question, error) {
	fields, err := object(args)
	if err != nil {
		return Question{}, err
	}
	question, err := stringField(fields, "question", QuestionMax)
	return Question{question}, err
}

// ParseCompletion reads arguments as a model wrote them; the error is for the model.
func ParseCompletion(args string, spec *protocol.TaskSpec) (Completion, error) {
	fields, err := object(args)
	if err != nil {
		return Completion{}, err
	}
	var c Completion
	if c.FinalResponse, err = stringField(fields, "final_response", 0); err != nil {
		return c, err
	}
	if SummaryBy(spec) == protocol.SummaryByAgent {
		if c.Summary, err = stringField(fields, "summary", 0); err != nil {
			return c, err
		}
		c.Summary = LimitWords(c.Summary, Words(spec))
	}
	c.Share, err = shareField(fields)
	return c, err
}

func object(args string) (map[string]json.RawMessage, error) {
	if strings.TrimSpace(args) == "" {
		args = "{}" // what providers stream for a call without arguments
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(args), &fields); err != nil {
		if !json.Valid([]byte(args)) {
			return nil, fmt.Errorf("the arguments are not valid JSON: %w", err)
		}
		return nil, errors.New("the arguments must be a JSON object")
	}
	return fields, nil
}

// stringField is a string that says something, at most so many runes; 0 is any number.
func stringField(fields map[string]json.RawMessage, name string, most int) (string, error) {
	raw, ok := fields[name]
	if !ok {
		return "", fmt.Errorf("the argument %q is missing", name)
	}
	var s *string
	if err := json.Unmarshal(raw, &s); err != nil || s == nil {
		return "", fmt.Errorf("the argument %q must be a string", name)
	}
	out := strings.TrimSpace(strings.ReplaceAll(*s, "\r\n", "\n"))
	if out == "" {
		return "", fmt.Errorf("the argument %q is empty", name)
	}
	if n := utf8.RuneCountInString(out); most > 0 && n > most {
		return "", fmt.Errorf("the argument %q has %d characters, %d are the most: keep to what matters", name, n, most)
	}
	return out, nil
}
