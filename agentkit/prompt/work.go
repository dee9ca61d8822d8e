package prompt

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"wf/agentkit/task"
	"wf/protocol"
	"wf/roles/frontmatter"
)

// Bounds of an attempt: DefaultTurns and DefaultTaskTurns hold where a role says no max_turns.
const (
	DefaultTurns     = 20  // replies of the model
	DefaultTaskTurns = 100 // replies of the model at a task
	maxCorrections   = 2
	maxStops         = 3 // times in a row that the model is asked to go on with its task
)

// silent takes the place of a reply without text: providers refuse empty messages.
const silent = "(no text)"

// Work is a visit as its records tell it: P_k, and what was said since. It is filled by events
// alone: those of a live visit by Add, once they are journaled, those of a process that died by
// Replay. So the requests that both send are the same. It is for one goroutine.
//
//	Due ─► Conclude ─► Request ─► the model ─► Add ─► a result for each of Pending ─► Add ─► Due …
//	                                            └───► Done
//
// The zero Work is that of a visit without a conversation of its own: it has no model.
type Work struct {
	turn   *protocol.Turn
	models []string
	window func(model string) int

	// Over all attempts of the visit.
	Prompt  []protocol.Message // P_k; of a task without a goal what is known of it
	Task    *Task              // nil for a visit that is no task
	moved   bool               // its conversation was compacted
	windows map[string]int64   // tokens that models read at most, as far as refusals told

	// Of the attempt.
	Announced bool                   // the journal holds the digest of Prompt
	Pending   []protocol.CallMessage // calls without a result, in order
	Truncated bool                   // the newest reply was cut off at its most tokens
	Corrected *protocol.Correction   // why the newest answer was refused, until it is journaled
	Done      *protocol.Conclusion   // what the visit came to; nil while it goes on
	Failure   *protocol.Failure      // with Done: why it failed

	tail        []protocol.Message // replies, results and corrections after P_k
	model       int                // index in models
	turns       int                // replies so far
	corrections int                // answers refused so far
	last        bool               // the model was told that its turns are over
	reply       protocol.Message   // what the journal holds of one before its usage comes
	said        bool               // reply holds something
	round       []called           // of the newest reply: its calls that have a result
	before      []called           // of the one before it
	same        int                // how often in a row it was so, since a person looked
	fill
}

// NewWork begins a visit: with its P_k alone, whatever its transcript holds. models are tried in
// order. window gives how many tokens a model reads, by its name, 0 for not known; nil knows none.
// The turn stays the caller's, but for its History, which follows what Work takes in. The errors
// are those of BuildMessages.
func NewWork(turn *protocol.Turn, models []string, window func(model string) int) (*Work, error) {
	p, err := BuildMessages(turn.History)
	if err != nil {
		return nil, err
	}
	w := &Work{turn: turn, models: models, window: window, Prompt: p, windows: map[string]int64{}}
	maps.Copy(w.windows, turn.Windows)
	if task.Offered(turn.History.Tools) {
		w.Task = &Task{}
	}
	return w, nil
}

// again begins another attempt.
func (w *Work) again() {
	*w = Work{turn: w.turn, models: w.models, window: w.window, Prompt: w.Prompt, Task: w.Task, moved: w.moved, windows: w.windows}
	if w.Task != nil {
		w.Task.stops = 0
	}
}

// goOn begins another attempt where the one that failed with code ended. Of a reply that was not whole nothing stays, nor of
// one that came when the turns were over: its calls never ran. Once a higher limit holds, the visit goes on from there.
func (w *Work) goOn(code string) {
	w.model, w.reply, w.said = 0, protocol.Message{}, false
	switch {
	case w.Failure != nil: // the reply is not in the tail
		w.Done, w.Failure = nil, nil
		w.turns--
	case code == codeMaxTurns && len(w.Pending) > 0: // the limit was lower then
		w.tail, w.Pending = w.tail[:len(w.tail)-1], nil
		w.turns--
	}
	w.behind = min(w.behind, len(w.tail))
	w.last = w.last && w.turns >= w.most()+w.corrections
	if w.Task != nil {
		w.Task.stops = 0
	}
}

const codeMaxTurns = "max_turns"

// Request is what is sent: P_k and everything said since.
func (w *Work) Request() []protocol.Message {
	return append(w.Prompt[:len(w.Prompt):len(w.Prompt)], w.tail...)
}

// Model names the model at hand, "" for none.
func (w *Work) Model() string { return w.Nth(w.model) }

// At is the place of the model at hand among the Models.
func (w *Work) At() int { return w.model }

// Models is how many there are.
func (w *Work) Models() int { return len(w.models) }

// Nth names a model, "" for none.
func (w *Work) Nth(i int) string {
	if i < len(w.models) {
		return w.models[i]
	}
	return ""
}

// fallBack goes on to a model of that name, if there is one: behind the one at hand, else from the first.
func (w *Work) fallBack(to string) {
	for k := range w.models {
		if i := (w.model + 1 + k) % len(w.models); w.models[i] == to {
			w.model = i
			return
		}
	}
}

// take adds a reply of the model and what its call used. A reply without tool calls is an answer.
func (w *Work) take(reply protocol.Message, u protocol.Usage) {
	w.measure(u)
	w.turns++
	if w.last && len(reply.ToolCalls) > 0 && !w.steers(reply) {
		w.outOfTurns(reply)
		return
	}
	w.Pending = reply.ToolCalls
	switch {
	case len(reply.ToolCalls) > 0:
		w.tail = append(w.tail, reply)
		if w.Task != nil {
			w.Task.stops = 0
		}
	case w.Task != nil:
		w.stopped(reply)
	default:
		w.judge(reply)
	}
}

// result adds what a call gave. Results come in the order of the calls.
func (w *Work) result(call, content string, isError bool) {
	w.tail = append(w.tail, protocol.Message{Role: protocol.RoleTool, ToolCallID: call, Content: content, IsError: isError})
	for i, c := range w.Pending {
		if c.ID == call {
			w.Pending = append(w.Pending[:i:i], w.Pending[i+1:]...)
			w.made(called{c.Name, c.Arguments, content})
			break
		}
	}
	if w.Task != nil {
		w.taskResult(call, content, isError)
	}
}

// called is a call and what it gave.
type called struct{ name, arguments, result string }

// sameMost is how many replies in a row may make the same calls with the same results.
const sameMost = 5

// made notes a call with its result; where it is the last one of its reply, whether the reply was as the one before.
func (w *Work) made(c called) {
	if w.round = append(w.round, c); len(w.Pending) > 0 {
		return
	}
	if w.same++; !slices.Equal(w.round, w.before) {
		w.same = 1
	}
	w.before, w.round = w.round, nil
}

// Stuck is how a visit is suspended whose model goes round in a circle, nil where it does not: it would make the same call until
// its turns are over, and each is paid for. Once a person has gone on with it, it may do so again.
func (w *Work) Stuck() error {
	if w.same < sameMost {
		return nil
	}
	return &protocol.Failure{
		ErrorInfo: protocol.ErrorInfo{Code: "same_call", Phase: "agent", Message: fmt.Sprintf(
			"the model called %s %d times in a row with the same arguments, and the result was the same each time: %s. "+
				"Fixes: wf resume lets it go on; or correct the prompt or the tool, or take another model", w.before[0].name, sameMost, Head(w.before[0].result, 200))},
		Class: "same_call", Suspend: true,
	}
}

//go:embed last_chance.md
var lastChanceText string

// most is how many replies may ask for tools or be refused; one more may conclude.
func (w *Work) most() int {
	if n := w.turn.Role.MaxTurns; n > 0 {
		return n
	}
	if w.Task != nil {
		return DefaultTaskTurns
	}
	return DefaultTurns
}

// Conclude tells the model, once its turns are used up, that its next reply must conclude, and
// reminds it of its task. It is called before each request. What it says depends on the replies
// alone, so a visit that is resumed says it again.
func (w *Work) Conclude() {
	if !w.last && w.turns >= w.most()+w.corrections {
		w.last = true
		text := lastChanceText
		if w.Task != nil {
			text = task.LastChanceText()
		}
		w.say(strings.TrimSpace(text))
	}
	w.remind()
}

// say adds a message to the model.
func (w *Work) say(text string) {
	w.tail = append(w.tail, protocol.Message{Role: protocol.RoleUser, Content: text})
}

// outOfTurns fails the visit for a reply that wants tools where it had to conclude. None of
// them runs.
func (w *Work) outOfTurns(reply protocol.Message) {
	w.Done = &protocol.Conclusion{}
	if reply.Content != "" {
		w.Done.Text = &reply.Content
	}
	w.Failure = &protocol.Failure{
		ErrorInfo: protocol.ErrorInfo{Code: codeMaxTurns, Phase: "agent",
			Message: fmt.Sprintf("no answer within %d turns, nor when asked to conclude", w.most())},
		Class: codeMaxTurns, Keeps: true,
	}
}

//go:embed correction.md
var correctionText string

// judge concludes the visit with an answer, or tells the model why it does not fit.
func (w *Work) judge(reply protocol.Message) {
	text := strings.TrimRight(strings.ReplaceAll(reply.Content, "\r\n", "\n"), "\n")
	data, reasons := w.check(text)
	if w.Truncated && w.turn.History.Schema != "" {
		reasons = append(reasons, "the answer was cut off: it has as many tokens as one may have, so give a shorter one")
	}
	if len(reasons) == 0 {
		w.Done = &protocol.Conclusion{Text: &text, Data: data}
		return
	}
	if w.corrections == maxCorrections {
		w.Done = &protocol.Conclusion{Text: &text}
		w.Failure = misfit("answer", strings.Join(reasons, "; "))
		return
	}
	w.corrections++
	w.Corrected = &protocol.Correction{Number: w.corrections, Reasons: protocol.NewText(strings.Join(reasons, "\n"))}
	w.tail = append(w.tail, nonEmpty(reply))
	w.say(strings.Replace(strings.TrimSpace(correctionText), "{{reasons}}", list(reasons), 1))
}

// check reads the fields that the role declares. reasons say why the text does not fit.
func (w *Work) check(text string) (data protocol.JSON, reasons []string) {
	if strings.TrimSpace(text) == "" {
		return nil, []string{"the answer is empty"}
	}
	if w.turn.History.Schema == "" {
		return nil, nil
	}
	data, _, violations := frontmatter.Parse(text, w.turn.History.Schema)
	for _, v := range violations {
		reasons = append(reasons, v.String())
	}
	return data, reasons
}

// misfit is how a visit ends after its answer was corrected in vain.
func misfit(what, reasons string) *protocol.Failure {
	return &protocol.Failure{
		ErrorInfo: protocol.ErrorInfo{Code: "output_invalid", Phase: "output_validation",
			Message: fmt.Sprintf("the %s does not fit after %d corrections: %s", what, maxCorrections, reasons)},
		Class: "invalid_output",
	}
}

// list sets reasons one a line.
func list(reasons []string) string { return "- " + strings.Join(reasons, "\n- ") }

// nonEmpty is a reply that says something.
func nonEmpty(reply protocol.Message) protocol.Message {
	if strings.TrimSpace(reply.Content) == "" {
		reply.Content = silent
	}
	return reply
}
