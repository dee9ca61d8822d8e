package agentkit

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"wf/agentkit/mcp"
	"wf/agentkit/memory"
	"wf/agentkit/sandbox"
	"wf/agentkit/tool"
	"wf/protocol"
	"wf/roles"
)

// Decisions on a tool call.
const (
	allow = "allow"
	deny  = "deny"
)

// questionMax is how many runes of the arguments a question shows.
const questionMax = 2_000

// act runs the first pending call and journals its result. Calls run one after the other, in
// the order of the model: so only the first one without a result can have been started by a
// process that died.
//
// A call is durable before it has an effect, and so is its result before anything follows. One
// that only reads, or is refused, waits for neither: it can be answered once more.
func (v *visit) act(ctx context.Context) error {
	call := v.pending[0]
	cutOff := v.old
	v.old = false

	if v.task != nil && protocol.IsTaskControl(call.Name) {
		return v.control(ctx, call)
	}
	again := roles.Soon(ctx)
	t, args, problem := v.find(call)
	if problem != "" {
		return v.answer(again, call, tool.Result{Content: "error: " + problem, IsError: true})
	}
	policy := v.policy(t)
	if policy == tool.Ask {
		started, err := v.approve(ctx, call)
		if err != nil {
			return err
		}
		cutOff = cutOff && started
	}
	switch decision := v.decided[call.ID]; {
	case policy == tool.Deny:
		return v.answer(again, call, tool.Result{Content: "error: " + t.Name + " is not allowed for this role", IsError: true})
	case policy == tool.Ask && decision != allow, decision == deny:
		return v.answer(again, call, v.denied(call))
	case v.lost[call.ID] && !cutOff && !t.ReadOnly:
		return v.answer(ctx, call, tool.Result{IsError: true, Content: "error: this call was not run: its arguments held a key, " +
			"which is never stored, and were lost when the process ended. Call again without it: read it from where it lies."})
	case cutOff && !t.ReadOnly && !t.Repeatable:
		return v.answer(ctx, call, unknownOutcome)
	}

	if err := v.tier(ctx, t); err != nil {
		return err
	}
	written := ctx
	if _, hidden := v.raw[call.ID]; t.ReadOnly && !hidden {
		written = again
	} else if err := v.emit(ctx); err != nil { // waits
		return err
	}
	at := v.workspace
	var mu sync.Mutex // stdout and stderr come from two goroutines
	at.Watch = func(kind, text string) {
		mu.Lock()
		defer mu.Unlock()
		// Live output is for watchers; who does not get it can read the result.
		_ = v.emit(ctx, protocol.Delta{Kind: kind, Text: text})
	}
	if err := ctx.Err(); err != nil {
		return err // it is not started any more
	}
	r, err := t.Run(memory.WithCall(ctx, call.ID), at, args)
	switch {
	case ctx.Err() != nil:
		return v.stop(ctx, t, call, r, err)
	case err != nil:
		return fmt.Errorf("tool %s: %w", t.Name, err)
	}
	return v.answer(written, call, r)
}

// unknownOutcome is what the model reads of a call that was started and did not end.
var unknownOutcome = tool.Result{IsError: true, Content: "error: the outcome of this call is unknown: " +
	"it was interrupted after it was started, and is not repeated. Look at the workspace to see what it did."}

// stop journals, although the visit is to end, what came of a call that was started: whoever
// goes on after a suspension takes a call without a result for one that never was. A call that
// was cut off in the middle and can be repeated is.
func (v *visit) stop(ctx context.Context, t tool.Tool, call protocol.CallMessage, r tool.Result, err error) error {
	if err != nil && (t.ReadOnly || t.Repeatable) {
		return ctx.Err()
	}
	if err != nil {
		r = unknownOutcome
	}
	if err := v.answer(context.WithoutCancel(ctx), call, r); err != nil {
		return err
	}
	return ctx.Err()
}

// answer journals a result, then shows it to the model.
func (v *visit) answer(ctx context.Context, call protocol.CallMessage, r tool.Result) error {
	content := v.clean(strings.ToValidUTF8(r.Content, "�"))
	if content == "" {
		content = "(no output)"
	}
	err := v.emit(ctx, protocol.ToolResult{Call: call.ID, Content: protocol.NewText(content), IsError: r.IsError})
	if err != nil {
		return err
	}
	delete(v.raw, call.ID)
	v.result(call.ID, content, r.IsError)
	return nil
}

// find tells which tool a call is for, or what is wrong with the call.
func (v *visit) find(call protocol.CallMessage) (t tool.Tool, args json.RawMessage, problem string) {
	t, ok := v.tools[call.Name]
	if !ok {
		var names []string
		for _, o := range v.offer {
			if _, ok := v.tools[o.Name]; ok || protocol.IsTaskControl(o.Name) {
				names = append(names, o.Name)
			}
		}
		if len(names) == 0 {
			return t, nil, fmt.Sprintf("there is no tool %q; this role has no tools", call.Name)
		}
		return t, nil, fmt.Sprintf("there is no tool %q; there are %s", call.Name, strings.Join(names, ", "))
	}
	text, asWritten := v.raw[call.ID]
	if !asWritten {
		text = call.Arguments
	}
	text = strings.TrimSpace(text)
	if text == "" {
		text = "{}" // what providers stream for a call without arguments
	}
	if v.cut && len(v.pending) == 1 && (text == "{}" || !json.Valid([]byte(text))) {
		return t, nil, "the reply was cut off before the arguments ended: it has as many tokens as one may have. " +
			"Call again with less, such as a long text in parts"
	}
	if !json.Valid([]byte(text)) {
		var any json.RawMessage
		return t, nil, fmt.Sprintf("the arguments are not valid JSON: %v", json.Unmarshal([]byte(text), &any))
	}
	if text[0] != '{' {
		return t, nil, "the arguments must be a JSON object"
	}
	return t, json.RawMessage(text), ""
}

// policy is the role's word, else the Agent's, else the tool's own. Of the role's words on tools
// of a server, the one on the tool goes before the one on all of them.
func (v *visit) policy(t tool.Tool) tool.Policy {
	var said *protocol.NamedTemplate
	for i, entry := range v.turn.Role.Approvals {
		if entry.Name == t.Name || mcp.Names(entry.Name, t.Name) && (said == nil || strings.HasSuffix(said.Name, "/*")) {
			said = &v.turn.Role.Approvals[i]
		}
	}
	if said != nil {
		if said.Value != "" {
			return tool.Policy(said.Value)
		}
		return tool.Policy(strings.Trim(said.JSON, `"`))
	}
	for _, name := range []string{t.Name, "*"} {
		if p, ok := v.agent.Approve[name]; ok {
			return p
		}
	}
	switch {
	case t.Policy != "":
		return t.Policy
	case t.Confined && !v.confines():
		return tool.Ask
	}
	return tool.Auto
}

// probe finds what this machine can hold.
var probe = sandbox.Probe

// confines reports whether the commands of the visit run in a sandbox that holds.
func (v *visit) confines() bool {
	return v.turn.Role.Sandbox != protocol.SandboxOff && (probe().Holds || v.inside())
}

// inside reports whether the machine is the sandbox of the visit: it cannot hold the policy of its commands.
func (v *visit) inside() bool {
	all, hosts := v.turn.Role.Reach()
	return v.agent.Inside != nil && probe().Lacks(sandbox.Policy{Network: all, Hosts: hosts}) != "" && v.agent.Inside()
}

// tier journals what confines the commands of the visit, before the first of them.
func (v *visit) tier(ctx context.Context, t tool.Tool) error {
	if !t.Confined || v.tierKnown {
		return nil
	}
	tier := probe()
	switch {
	case v.turn.Role.Sandbox == protocol.SandboxOff:
		tier.Name = sandbox.Off
	case v.inside():
		tier = sandbox.Tier{Name: sandbox.Container}
	}
	if err := v.emit(roles.Soon(ctx), protocol.SandboxTier{Tier: tier.Name, ABI: tier.ABI}); err != nil {
		return err
	}
	v.tierKnown = true
	return nil
}

// approve waits for a person's word and journals it. started says that it was journaled by an
// earlier process, which may then have run the call.
func (v *visit) approve(ctx context.Context, call protocol.CallMessage) (started bool, err error) {
	if v.decided[call.ID] != "" {
		return true, nil
	}
	if a, ok := v.answerTo(call.ID); ok {
		decision := deny
		if a.Choice == allow {
			decision = allow
		}
		by := a.By
		if by == "" {
			by = a.Source
		}
		if err := v.emit(ctx, protocol.Approval{Call: call.ID, Tool: call.Name, Decision: decision, By: by}); err != nil {
			return false, err
		}
		v.decided[call.ID] = decision
		return false, nil
	}
	if !v.asked[call.ID] {
		err := v.emit(ctx, protocol.WaitingFor{
			Kind: protocol.WaitApproval, Call: call.ID,
			Question: protocol.NewText(question(v.turn.Step, call)),
			Choices:  []protocol.Choice{{Label: "Allow", Value: allow, Primary: true}, {Label: "Deny", Value: deny}},
		})
		if err != nil {
			return false, err
		}
		v.asked[call.ID] = true
	}
	return false, fmt.Errorf("%s asks to call %s: %w", v.turn.Step, call.Name, protocol.ErrWaiting)
}

func (v *visit) answerTo(call string) (protocol.Answered, bool) {
	for i := len(v.turn.Answers) - 1; i >= 0; i-- {
		a := &v.turn.Answers[i]
		if a.Waiting.Kind == protocol.WaitApproval && a.Waiting.Call == call && !a.Fired {
			return a.Answer, true
		}
	}
	return protocol.Answered{}, false
}

// denied is what the model reads of a refusal, with the reason that was given.
func (v *visit) denied(call protocol.CallMessage) tool.Result {
	content := "error: a person denied this call"
	if a, ok := v.answerTo(call.ID); ok && !a.Text.Empty() {
		content += ": " + a.Text.S
	}
	return tool.Result{Content: content, IsError: true}
}

// question shows what would run: the command of a shell, else the arguments.
func question(step protocol.StepID, call protocol.CallMessage) string {
	shown := call.Arguments
	var args struct {
		Command *string `json:"command"`
	}
	if json.Unmarshal([]byte(shown), &args) == nil && args.Command != nil {
		shown = *args.Command
	}
	if utf8.RuneCountInString(shown) > questionMax {
		shown = string([]rune(shown)[:questionMax]) + "…"
	}
	return fmt.Sprintf("%s wants to call %s:\n\n%s", step, call.Name, shown)
}
