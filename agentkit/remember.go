package agentkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"wf/agentkit/embed"
	"wf/agentkit/memory"
	"wf/agentkit/prompt"
	"wf/agentkit/tool"
	"wf/protocol"
	"wf/roles"
)

// memoryOf opens the memory of the role of a turn.
func (a Agent) memoryOf(ctx context.Context, turn protocol.Turn) (*memory.Store, error) {
	if a.Memory == nil {
		return nil, errors.New("this program keeps no memory")
	}
	return a.Memory(ctx, turn)
}

// memoryTools are those of a role with a memory, for one visit; emit may be nil where none is
// called.
func (a Agent) memoryTools(turn protocol.Turn, emit roles.Emit) []tool.Tool {
	if turn.Role.Memory == nil {
		return nil
	}
	tools := a.desk(turn, emit).Tools()
	if turn.Role.Memory.Scope == protocol.MemoryUser {
		for i := range tools {
			if !tools[i].ReadOnly {
				tools[i].Policy = tool.Ask // it is read at the start of other workflows
			}
		}
	}
	return tools
}

// mayKeep reports whether the visit may change its memory where no person can be asked.
func (v *visit) mayKeep(ctx context.Context) bool {
	t, ok := v.tools["remember"]
	return ok && v.policy(ctx, t) == tool.Auto
}

func (a Agent) desk(turn protocol.Turn, emit roles.Emit) memory.Desk {
	return memory.Desk{
		Open:   func(ctx context.Context) (*memory.Store, error) { return a.memoryOf(ctx, turn) },
		Origin: memory.Origin{By: turn.Role.Name, Run: turn.Run, Step: turn.Step.String(), Key: turn.Key},
		Changed: func(ctx context.Context, scope, head string) error {
			return emit(ctx, protocol.MemoryChanged{Scope: scope, Head: head})
		},
	}
}

// remembered is what a memory gives to the message of a visit: what stands at the start of
// every context, if this is one, and what is close to the edge prompt.
func (a Agent) remembered(ctx context.Context, turn protocol.Turn) (string, error) {
	spec := turn.Role.Memory
	if spec == nil {
		return "", nil
	}
	s, err := a.memoryOf(ctx, turn)
	if err != nil {
		return "", err
	}
	standing, opens := "", turn.Visit <= 1 || turn.Role.Context == protocol.ContextTask
	if opens {
		if standing, err = s.Standing(ctx); err != nil {
			return "", err
		}
	}
	if spec.NoRecall {
		return standing, nil
	}
	hits, err := recalledFor(ctx, s, turn)
	if err != nil {
		return "", err
	}
	if opens { // those stand there already
		hits = slices.DeleteFunc(hits, func(h memory.Hit) bool { return h.Pinned })
	}
	recalled, err := s.Recalled(ctx, hits)
	return prompt.Join(standing, recalled), err
}

// recalledFor are the memories close to what a visit is about.
func recalledFor(ctx context.Context, s *memory.Store, turn protocol.Turn) ([]memory.Hit, error) {
	about := aboutVisit(turn)
	if about == "" {
		return nil, nil
	}
	spec := turn.Role.Memory
	model, err := s.Model(ctx)
	if err != nil {
		return nil, err
	}
	q := memory.Query{Text: about, Limit: spec.TopK, Within: embed.Near(model)}
	if q.Limit <= 0 {
		q.Limit = memory.DefaultTopK
	}
	if spec.Distance != "" {
		if q.Within, err = strconv.ParseFloat(spec.Distance, 64); err != nil {
			return nil, fmt.Errorf("memory.distance %q: %w", spec.Distance, err)
		}
	}
	return s.Recall(ctx, q)
}

// aboutMax is how many runes of what a visit is about are looked for.
const aboutMax = 4_000

// aboutVisit is the edge prompt; where that is empty at the start, the inputs.
func aboutVisit(turn protocol.Turn) string {
	if text := strings.TrimSpace(turn.EdgePrompt); text != "" || turn.Visit > 1 {
		return prompt.Head(text, aboutMax)
	}
	var inputs map[string]json.RawMessage
	if json.Unmarshal(turn.Inputs, &inputs) != nil {
		return "" // there are none
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		var text string
		if json.Unmarshal(inputs[name], &text) == nil {
			parts = append(parts, text)
		}
	}
	return prompt.Head(strings.TrimSpace(strings.Join(parts, "\n")), aboutMax)
}

// SummaryTag is the tag of the summaries that compactions leave in a memory.
const SummaryTag = "compaction_summary"

// keepSummary remembers the summary of what a link names, once however often the compaction is
// tried, and gives what is journaled of that.
func (v *visit) keepSummary(ctx context.Context, of protocol.Link, text string) ([]protocol.Data, error) {
	if v.turn.Role.Memory == nil || !v.mayKeep(ctx) {
		return nil, nil
	}
	s, err := v.agent.memoryOf(ctx, *v.turn)
	if err != nil {
		return nil, err
	}
	_, err = s.Remember(ctx, memory.Note{Content: text, Tags: []string{SummaryTag}, Origin: memory.Origin{
		By: v.turn.Role.Name, Run: v.turn.Run, Step: v.turn.Step.String(), Key: memory.KeyOf(v.turn.Key, "compaction", of.String())}})
	if err != nil {
		return nil, fmt.Errorf("remember the summary of %s: %w", v.turn.Role.Name, err)
	}
	newest, _ := s.Head()
	return []protocol.Data{protocol.MemoryChanged{Scope: s.Scope(), Head: newest.String()}}, nil
}
