package agentkit

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/fxamacker/cbor/v2"

	"wf/agentkit/mcp"
	"wf/agentkit/task"
	"wf/agentkit/tool"
	"wf/protocol"
	"wf/roles"
	"wf/roles/frontmatter"
)

// A visit is one attempt at work. What it knows is P_k and what has been said since; both the
// live loop and the transcript of a process that died fill it through the same two methods,
// take and result, so that the requests they send agree.
type visit struct {
	agent     *Agent
	turn      *protocol.Turn
	emit      roles.Emit
	hidden    map[string]string   // secrets, name → value
	clean     func(string) string // hides them
	workspace tool.Workspace
	servers   *mcp.Pool

	prompt []protocol.Message // P_k
	list   string             // canonical JSON tool list
	offer  []protocol.Tool    // the same
	tools  map[string]tool.Tool
	models []string
	task   *taskRun // nil for a visit that is no task

	// Over all attempts of the visit.
	calls     int             // model calls made, failed ones included, summaries not
	summaries int             // model calls made for compactions
	thoughts  int             // model calls made for reflections
	moved     bool            // its conversation was compacted
	used      map[string]bool // ids of tool calls
	tierKnown bool            // the sandbox event is written

	// Arguments in which something was hidden run as the model wrote them, and only in the
	// process that read them: they are never stored. Nor are a provider's own blocks.
	raw    map[string]string // call → such arguments
	lost   map[string]bool   // calls whose arguments were so lost
	blocks map[string]string // first call of a reply → such a block
	masked map[string]string // calls whose arguments were so hidden → the digest of those
	allows map[string]string // calls that are allowed for the run: digest → by whom

	attempt
}

// attempt is what begins anew after a failed attempt.
type attempt struct {
	tail        []protocol.Message           // replies, results and corrections after P_k
	prompted    bool                         // the prompt event is written
	model       int                          // index in models
	turns       int                          // replies so far
	corrections int                          // answers refused so far
	corrected   *protocol.Correction         // the newest of them, until it is journaled
	last        bool                         // the model was told that its turns are over
	cut         bool                         // the newest reply was cut off at its most tokens
	pending     []protocol.CallMessage       // calls without a result, in order
	old         bool                         // the first pending call may have been started by a process that died
	paused      bool                         // the run was suspended, and not gone on with since
	torn        bool                         // a process died while the first pending call stood
	asked       map[string]string            // calls for which a person was asked → the digest of what was shown
	decided     map[string]protocol.Approval // call → what was decided, as journaled

	done    *protocol.Conclusion
	failure *protocol.Failure

	fill
	learnt
}

func (v *visit) reset() {
	windows := v.windows
	if windows == nil {
		windows = map[string]int64{}
		maps.Copy(windows, v.turn.Windows)
	}
	v.attempt = attempt{asked: map[string]string{}, decided: map[string]protocol.Approval{}, learnt: learnt{windows: windows}}
	if v.task != nil {
		v.task.stops = 0
	}
}

// run alternates between tools and model until there is an answer.
func (v *visit) run(ctx context.Context) (protocol.Conclusion, error) {
	for {
		switch {
		case v.failure != nil:
			return *v.done, v.failure
		case v.done != nil:
			return *v.done, nil
		case len(v.pending) > 0:
			if err := v.act(ctx); err != nil {
				return protocol.Conclusion{}, err
			}
		default:
			if err := v.tellCorrection(ctx); err != nil {
				return protocol.Conclusion{}, err
			}
			if err := v.compact(ctx); err != nil {
				return protocol.Conclusion{}, err
			}
			v.lastChance()
			reply, err := v.ask(ctx)
			if errors.Is(err, errOverflow) {
				continue // compact knows
			}
			if err != nil {
				return protocol.Conclusion{}, err
			}
			v.take(reply)
		}
	}
}

// take adds a reply of the model. One without tool calls is an answer.
func (v *visit) take(reply protocol.Message) {
	v.turns++
	if v.last && len(reply.ToolCalls) > 0 && !v.steers(reply) {
		v.outOfTurns(reply)
		return
	}
	v.pending, v.old = reply.ToolCalls, false
	if len(reply.ToolCalls) > 0 {
		v.tail = append(v.tail, reply)
		if v.task != nil {
			v.task.stops = 0
		}
		return
	}
	if v.task != nil {
		v.stopped(reply)
		return
	}
	v.judge(reply)
}

//go:embed last_chance.md
var lastChanceText string

// most is how many replies may ask for tools or be refused; one more may conclude.
func (v *visit) most() int {
	if n := v.turn.Role.MaxTurns; n > 0 {
		return n
	}
	if v.task != nil {
		return DefaultTaskTurns
	}
	return DefaultTurns
}

// lastChance tells the model, once its turns are used up, that its next reply must conclude,
// and reminds it of its task. What it says depends on the replies alone, so a visit that is
// resumed says it again.
func (v *visit) lastChance() {
	if !v.last && v.turns >= v.most()+v.corrections {
		v.last = true
		text := lastChanceText
		if v.task != nil {
			text = task.LastChanceText()
		}
		v.tail = append(v.tail, protocol.Message{Role: protocol.RoleUser, Content: strings.TrimSpace(text)})
	}
	v.remind()
}

// outOfTurns fails the visit for a reply that wants tools where it had to conclude. None of
// them runs.
func (v *visit) outOfTurns(reply protocol.Message) {
	v.done = &protocol.Conclusion{}
	if reply.Content != "" {
		v.done.Text = &reply.Content
	}
	v.failure = &protocol.Failure{
		ErrorInfo: protocol.ErrorInfo{Code: "max_turns", Phase: "agent",
			Message: fmt.Sprintf("no answer within %d turns, nor when asked to conclude", v.most())},
		Class: "max_turns",
	}
}

// result adds what a call gave. Results come in the order of the calls.
func (v *visit) result(call, content string, isError bool) {
	v.tail = append(v.tail, protocol.Message{Role: protocol.RoleTool, ToolCallID: call, Content: content, IsError: isError})
	for i, c := range v.pending {
		if c.ID == call {
			v.pending = append(v.pending[:i:i], v.pending[i+1:]...)
			break
		}
	}
	if v.task != nil {
		v.taskResult(call, content, isError)
	}
}

//go:embed correction.md
var correctionText string

// judge concludes the visit with an answer, or tells the model why it does not fit.
func (v *visit) judge(reply protocol.Message) {
	text := strings.TrimRight(strings.ReplaceAll(reply.Content, "\r\n", "\n"), "\n")
	data, violations := v.check(text)
	if v.cut && v.turn.History.Schema != "" {
		violations = append(violations, frontmatter.Violation{Reason: "the answer was cut off: it has as many tokens as one may have, so give a shorter one"})
	}
	if len(violations) == 0 {
		v.done = &protocol.Conclusion{Text: &text, Data: data}
		return
	}
	reasons := make([]string, len(violations))
	for i, violation := range violations {
		reasons[i] = violation.String()
	}
	if v.corrections == maxCorrections {
		v.done = &protocol.Conclusion{Text: &text}
		v.failure = &protocol.Failure{
			ErrorInfo: protocol.ErrorInfo{Code: "output_invalid", Phase: "output_validation",
				Message: fmt.Sprintf("the answer does not fit after %d corrections: %s", maxCorrections, strings.Join(reasons, "; "))},
			Class: "invalid_output",
		}
		return
	}
	v.corrections++
	if strings.TrimSpace(reply.Content) == "" {
		reply.Content = "(no text)" // providers refuse empty messages
	}
	v.corrected = &protocol.Correction{Number: v.corrections, Reasons: protocol.NewText(strings.Join(reasons, "\n"))}
	correction := strings.Replace(strings.TrimSpace(correctionText), "{{reasons}}", "- "+strings.Join(reasons, "\n- "), 1)
	v.tail = append(v.tail, reply, protocol.Message{Role: protocol.RoleUser, Content: correction})
}

// tellCorrection journals that an answer was refused, once.
func (v *visit) tellCorrection(ctx context.Context) error {
	if v.corrected == nil {
		return nil
	}
	err := v.emit(roles.Soon(ctx), *v.corrected)
	if err == nil {
		v.corrected = nil
	}
	return err
}

func (v *visit) check(text string) (protocol.JSON, []frontmatter.Violation) {
	if strings.TrimSpace(text) == "" {
		return nil, []frontmatter.Violation{{Reason: "the answer is empty"}}
	}
	if v.turn.History.Schema == "" {
		return nil, nil
	}
	data, _, violations := frontmatter.Parse(text, v.turn.History.Schema)
	return data, violations
}

// replay takes over what the journal holds of the visit. The events of one reply were
// committed together and end with its usage; a usage alone is a call that failed.
func (v *visit) replay(transcript []protocol.Entry) error {
	var reply protocol.Message
	said := false
	for i := range transcript {
		e := &transcript[i]
		var err error
		switch e.Type {
		case protocol.EvAttemptFailed:
			v.reset()
			reply, said = protocol.Message{}, false
		case protocol.EvStepStarted:
			var d protocol.StepStarted
			if err = cbor.Unmarshal(e.Data, &d); d.Messages > 0 {
				v.prompted = false // P_k holds what was said while the visit was interrupted
			}
		case protocol.EvPrompt:
			v.prompted = true
		case protocol.EvThinking:
			var d protocol.Thinking
			err = cbor.Unmarshal(e.Data, &d)
			reply.Opaque, said = d.Block.S, true
		case protocol.EvText:
			var d protocol.TextSaid
			err = cbor.Unmarshal(e.Data, &d)
			reply.Content, said = d.Content.S, true
		case protocol.EvToolCall:
			var d protocol.ToolCall
			err = cbor.Unmarshal(e.Data, &d)
			reply.ToolCalls, said = append(reply.ToolCalls, protocol.CallMessage{ID: d.Call, Name: d.Name, Arguments: d.Args.S}), true
			v.used[d.Call] = true
			v.lost[d.Call] = roles.HasMark(d.Args.S)
			v.remask(d)
		case protocol.EvUsage:
			var d protocol.Usage
			if err = cbor.Unmarshal(e.Data, &d); err != nil || !v.counted(d) {
				break
			}
			v.corrected = nil // of an answer before: journaled, or by a version that did not
			if d.Stop == protocol.StopOverflow {
				v.lastChance()
				v.refused(d)
			}
			if said {
				reply.Role = protocol.RoleAssistant
				v.lastChance()
				v.measure(d)
				v.take(reply)
				v.old, v.torn = true, false
			}
			reply, said = protocol.Message{}, false
		case protocol.EvToolResult:
			var d protocol.ToolResult
			if err = cbor.Unmarshal(e.Data, &d); err == nil {
				v.result(d.Call, d.Content.S, d.IsError)
				v.old, v.torn = true, false
			}
		case protocol.EvWaiting:
			var d protocol.WaitingFor
			err = cbor.Unmarshal(e.Data, &d)
			v.asked[d.Call] = d.Shown
		case protocol.EvApproval:
			var d protocol.Approval
			err = cbor.Unmarshal(e.Data, &d)
			v.decide(d)
		case protocol.EvSandbox:
			v.tierKnown = true
		case protocol.EvCorrection:
			v.corrected = nil
		case protocol.EvCompacted:
			var d protocol.Compacted
			if err = cbor.Unmarshal(e.Data, &d); err == nil {
				v.compacted(d)
			}
		case protocol.EvTaskStarted:
			var d protocol.TaskStarted
			if err = cbor.Unmarshal(e.Data, &d); err == nil && v.task != nil {
				err = v.startTask(d.Goal)
			}
		case protocol.EvTaskStateUpdated:
			var d protocol.TaskStateUpdated
			if err = cbor.Unmarshal(e.Data, &d); err == nil && v.task != nil {
				v.task.updated(d)
			}
		case protocol.EvTaskWaiting:
			var d protocol.TaskWaitingOn
			if err = cbor.Unmarshal(e.Data, &d); err == nil && v.task != nil {
				v.task.question = d.Question.S
			}
		case protocol.EvTaskCompleted:
			var d protocol.TaskDone
			if err = cbor.Unmarshal(e.Data, &d); err == nil && v.task != nil {
				err = v.taskDone(d)
			}
		case protocol.EvSuspended:
			v.suspended(e.Step == nil)
		case protocol.EvResumed:
			v.resumed()
		case protocol.EvModelFallback:
			var d protocol.ModelFallback
			err = cbor.Unmarshal(e.Data, &d)
			v.fellBack(d.To)
		}
		if err != nil {
			return fmt.Errorf("event %d (%s): %w", e.Seq, e.Type, err)
		}
	}
	return nil
}

// suspended takes over that the visit, or the whole run, was suspended: by a process that was
// well, and that had ended or recorded what it had started. So the first pending call was never
// started, unless an earlier process died with it.
func (v *visit) suspended(run bool) {
	v.paused, v.old = true, v.torn
	if !run {
		v.unsuspend()
	}
}

// resumed takes over that another process goes on. Where nobody had suspended the run, the one
// before it died.
func (v *visit) resumed() {
	if !v.paused {
		v.old, v.torn = true, true
	}
	v.paused = false
}

// fellBack moves on to the model of that name.
func (v *visit) fellBack(to string) {
	for i, name := range v.models {
		if name == to {
			v.model = i
		}
	}
}

// request is what is sent: P_k and everything said since.
func (v *visit) request() []protocol.Message {
	return append(v.prompt[:len(v.prompt):len(v.prompt)], v.tail...)
}

// offered reads a recorded tool list.
func offered(list string) ([]protocol.Tool, error) {
	if list == "" {
		return nil, nil
	}
	var tools []protocol.Tool
	err := json.Unmarshal([]byte(list), &tools)
	return tools, err
}
