package agentkit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"wf/agentkit/mcp"
	"wf/agentkit/memory"
	"wf/agentkit/model"
	"wf/agentkit/sandbox"
	"wf/agentkit/tool"
	"wf/protocol"
	"wf/roles"
)

// act runs the first pending call and journals its result. Calls run one after the other, in
// the order of the model: so only the first one without a result can have been started by a
// process that died.
//
// A call is durable before it has an effect, and so is its result before anything follows. One
// that only reads, or is refused, waits for neither: it can be answered once more.
func (v *visit) act(ctx context.Context) error {
	call := v.Pending[0]
	cutOff := v.old
	v.old = false

	again := roles.Soon(ctx)
	if v.Truncated && len(v.Pending) == 1 { // whatever it holds may be a part
		return v.answer(again, call, tool.Result{IsError: true, Content: "error: the reply was cut off in this call: it has as many tokens as one may have. " +
			"Call again with less, such as a long text in parts"})
	}
	if v.Task != nil && protocol.IsTaskControl(call.Name) {
		return v.control(ctx, call)
	}
	t, args, problem := v.find(call)
	if problem != "" {
		return v.answer(again, call, tool.Result{Content: "error: " + problem, IsError: true})
	}
	policy := v.policy(ctx, t)
	if v.masked[call.ID] != "" && policy == tool.Auto && !t.ReadOnly {
		policy = tool.Ask // what ran could not be seen afterwards
	}
	if policy == tool.Ask {
		cutOff = cutOff && v.decided[call.ID].Decision != ""
	}
	lost := v.lost[call.ID] && !cutOff && !t.ReadOnly
	if policy == tool.Ask && !lost {
		refused, err := v.approve(ctx, t, call, args, cutOff && !t.ReadOnly && !t.Repeatable)
		if err != nil {
			return err
		}
		if refused != "" {
			return v.answer(again, call, tool.Result{Content: "error: " + refused, IsError: true})
		}
	}
	switch decision := v.decided[call.ID].Decision; {
	case policy == tool.Deny:
		return v.answer(again, call, tool.Result{Content: "error: " + t.Name + " is not allowed for this role", IsError: true})
	case decision == protocol.Deny:
		return v.answer(again, call, v.denied(call))
	case lost:
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
		// Live output is for watchers; without it the result can be read.
		_ = v.emit(ctx, protocol.Delta{Kind: kind, Text: text})
	}
	if err := ctx.Err(); err != nil {
		return err // it is not started any more
	}
	acting, end, err := roles.BeginActing(ctx)
	if err != nil {
		return err
	}
	r, err := t.Run(memory.WithCall(acting, call.ID), at, args)
	cut := err != nil && acting.Err() != nil
	end()
	switch {
	case errors.Is(err, protocol.ErrLeft): // the visit ends with it, and what came of the call is known
		if failed := v.answer(context.WithoutCancel(ctx), call, r); failed != nil {
			return failed
		}
		return fmt.Errorf("tool %s: %w", t.Name, err)
	case ctx.Err() != nil:
		return v.stop(ctx, t, call, r, err)
	case cut && (t.ReadOnly || t.Repeatable):
		return nil // it stays the first without a result
	case cut:
		return v.answer(ctx, call, unknown(r))
	case err != nil:
		return fmt.Errorf("tool %s: %w", t.Name, err)
	}
	return v.answer(written, call, r)
}

// unknownOutcome is what the model reads of a call that was started and did not end.
var unknownOutcome = tool.Result{IsError: true, Content: "error: the outcome of this call is unknown: " +
	"it was interrupted after it was started, and is not repeated. Look at the workspace to see what it did."}

// unknown is unknownOutcome with what was seen of it.
func unknown(r tool.Result) tool.Result {
	out := unknownOutcome
	out.Appeared = r.Appeared
	return out
}

// stop journals, although the visit is to end, what came of a call that was started: a process that
// goes on after a suspension takes a call without a result for one that never was. A call that
// was cut off in the middle and can be repeated is.
func (v *visit) stop(ctx context.Context, t tool.Tool, call protocol.CallMessage, r tool.Result, err error) error {
	if err != nil && (t.ReadOnly || t.Repeatable) {
		return ctx.Err()
	}
	if err != nil {
		r = unknown(r)
	}
	if err := v.answer(context.WithoutCancel(ctx), call, r); err != nil {
		return err
	}
	if errors.Is(err, ctx.Err()) {
		return err // it may say what had no answer
	}
	return ctx.Err()
}

// answer journals a result, then shows it to the model.
func (v *visit) answer(ctx context.Context, call protocol.CallMessage, r tool.Result) error {
	content := cmp.Or(v.clean(strings.ToValidUTF8(r.Content, "�")), "(no output)")
	err := v.journal(ctx, protocol.ToolResult{Call: call.ID, Content: protocol.NewText(content), IsError: r.IsError, Appeared: r.Appeared.Clean(v.clean)})
	if err != nil {
		return err
	}
	v.agent.Withheld.drop(v.withheldAs(call.ID))
	delete(v.raw, call.ID)
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
	object, ok := model.Arguments(text)
	if !ok {
		var any json.RawMessage
		if err := json.Unmarshal([]byte(text), &any); err != nil {
			return t, nil, fmt.Sprintf("the arguments are not valid JSON: %v", err)
		}
		return t, nil, "the arguments must be a JSON object"
	}
	return t, json.RawMessage(object), ""
}

// policy is the role's word, else the tool's own. Of the role's words on tools
// of a server, the one on the tool goes before the one on all of them.
func (v *visit) policy(ctx context.Context, t tool.Tool) tool.Policy {
	var said *protocol.NamedTemplate
	for i, entry := range v.turn.Role.Approvals {
		if entry.Name == t.Name || mcp.Names(entry.Name, t.Server, t.Name) && (said == nil || strings.HasSuffix(said.Name, "/*")) {
			said = &v.turn.Role.Approvals[i]
		}
	}
	if said != nil {
		return tool.Said(*said)
	}
	switch {
	case t.Policy == tool.Ask && t.Unasked != nil && t.Unasked(ctx):
		return tool.Auto
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

// walls is what confines the commands of the visit.
func (v *visit) walls() sandbox.Tier {
	tier := probe()
	switch {
	case v.turn.Role.Sandbox == protocol.SandboxOff:
		tier.Name = sandbox.Off
	case v.inside():
		tier = sandbox.Tier{Name: sandbox.Container}
	}
	return tier
}

// tier journals what confines the commands of the visit, before the first of them.
func (v *visit) tier(ctx context.Context, t tool.Tool) error {
	if !t.Confined || v.tierKnown {
		return nil
	}
	tier := v.walls()
	if err := v.emit(roles.Soon(ctx), protocol.SandboxTier{Tier: tier.Name, ABI: tier.ABI}); err != nil {
		return err
	}
	v.tierKnown = true
	return nil
}
