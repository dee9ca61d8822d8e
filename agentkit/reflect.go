package agentkit

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strings"

	"wf/agentkit/memory"
	"wf/agentkit/prompt"
	"wf/agentkit/tool"
	"wf/protocol"
)

// ReflectionTurns is how many replies of the model a reflection has at most.
const ReflectionTurns = 6

// reflect lets the model put its memory in order before older parts of a conversation, or of the
// work of a visit, give way to a summary. It has a context of its own and the memory tools alone. inject is what every
// new context begins with; unthought says why there was no reflection, where a model failed:
// a compaction does not fail for that.
func (v *visit) reflect(ctx context.Context, live []protocol.Message) (inject, unthought string, err error) {
	if v.turn.Role.Memory == nil {
		return "", "", nil
	}
	s, err := v.agent.memoryOf(ctx, *v.turn)
	if err != nil {
		return "", "", err
	}
	if !v.mayKeep(ctx) { // a person has to allow what it keeps, and none is asked here
		inject, err = s.Standing(ctx)
		return v.clean(inject), "", err
	}
	if why, err := v.putInOrder(ctx, s, live); err != nil {
		return "", "", err
	} else if why != nil {
		unthought = "the reflection ended early: " + v.why(why)
	}
	inject, err = s.Standing(ctx)
	return v.clean(inject), unthought, err
}

// putInOrder is the loop of a reflection. why is what kept the model from it.
func (v *visit) putInOrder(ctx context.Context, s *memory.Store, live []protocol.Message) (why, err error) {
	l, err := s.List(ctx, memory.RecentListed)
	if err != nil {
		return nil, err
	}
	known, err := s.ListText(ctx, l)
	if err != nil {
		return nil, err
	}
	desk := v.agent.desk(*v.turn, v.emit)
	desk.Origin.Key = memory.KeyOf(v.turn.Key, "reflection")
	tools := map[string]tool.Tool{}
	var offer []protocol.Tool
	for _, t := range desk.Tools() {
		tools[t.Name] = t
		offer = append(offer, protocol.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
	}
	// Ids of calls are made unique against those of the visit, which these are not.
	used, raw := v.used, v.raw
	defer func() { v.used, v.raw = used, raw }()
	v.used, v.raw = maps.Clone(used), map[string]string{}

	messages := prompt.ForReflection(live, known)
	for range ReflectionTurns {
		reply, why, err := v.ponder(ctx, messages, offer)
		if err != nil || why != nil || len(reply.ToolCalls) == 0 {
			return why, err
		}
		messages = append(messages, reply)
		for _, call := range reply.ToolCalls {
			r, err := v.ponderCall(ctx, tools, call)
			if err != nil {
				return nil, err
			}
			messages = append(messages, protocol.Message{Role: protocol.RoleTool, ToolCallID: call.ID, Content: v.clean(valid(r.Content)), IsError: r.IsError})
		}
	}
	return nil, nil
}

// ponder makes one model call of a reflection. why is what went wrong with it.
func (v *visit) ponder(ctx context.Context, messages []protocol.Message, offer []protocol.Tool) (reply protocol.Message, why, err error) {
	a := aside{kind: protocol.UsageReflection, model: v.summaryModel(), messages: messages, offer: offer, request: v.describe(messages)}
	a.request.Call, a.request.Reflection, a.request.Prompt = v.thoughts, true, 2
	a.request.CacheKey = cacheKey(v.turn, v.turn.Role.Name+"\x00reflection")
	r, usage, why := v.callAside(ctx, a)
	switch {
	case ctx.Err() != nil:
		return reply, nil, why
	case len(usage) == 0:
		return reply, why, nil
	}
	v.thoughts++
	if why == nil {
		reply, _ = v.reply(r)
	}
	return reply, why, v.emit(ctx, usage...)
}

// ponderCall runs a tool of a reflection. The same call does nothing twice, in this process or
// in one that tries the compaction again.
func (v *visit) ponderCall(ctx context.Context, tools map[string]tool.Tool, call protocol.CallMessage) (tool.Result, error) {
	t, ok := tools[call.Name]
	if !ok {
		return tool.Result{Content: fmt.Sprintf("error: there is no tool %q here; there are %s", call.Name, strings.Join(memory.Names, ", ")), IsError: true}, nil
	}
	args := cmp.Or(strings.TrimSpace(call.Arguments), "{}")
	r, err := t.Run(memory.WithCall(ctx, call.Name+"\x00"+args), v.workspace, []byte(args))
	if err != nil {
		return r, fmt.Errorf("tool %s: %w", t.Name, err)
	}
	return r, nil
}
