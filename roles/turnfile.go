package roles

import (
	"encoding/json"
	"fmt"
	"io"

	"wf/protocol"
)

// turnJSON is a Turn as a run role reads it: wf.turn/v1. Fields are only added.
type turnJSON struct {
	Schema       string             `json:"schema"`
	Run          protocol.RunID     `json:"run"`
	Step         string             `json:"step"`
	Role         string             `json:"role"`
	Visit        int                `json:"visit"`
	Attempt      int                `json:"attempt"`
	Item         *itemJSON          `json:"item,omitempty"` // in a fan-out
	EdgePrompt   string             `json:"edgePrompt"`
	System       string             `json:"system"`
	Messages     []protocol.Message `json:"messages"` // what an agent in this place would be sent, system included
	History      []pastJSON         `json:"history"`  // ancestors, each after its parents
	Inputs       protocol.JSON      `json:"inputs"`
	OutputSchema protocol.JSON      `json:"output_schema"` // JSON Schema of the declared fields, or null
}

type itemJSON struct {
	Index int           `json:"index"`
	Value protocol.JSON `json:"value"`
}

type pastJSON struct {
	Role       string              `json:"role"`
	Visit      int                 `json:"visit"`
	EdgePrompt string              `json:"edgePrompt"`
	Status     protocol.StepStatus `json:"status"`
	Text       string              `json:"text"`
	Data       protocol.JSON       `json:"data"`
	CID        string              `json:"cid"`
}

// newTurnJSON renders a turn; messages gives what an agent would be sent, or is nil.
func newTurnJSON(turn protocol.Turn, messages func(protocol.History) ([]protocol.Message, error)) (turnJSON, error) {
	out := turnJSON{
		Schema: protocol.TurnSchema,
		Run:    runID(turn), Step: stepName(turn), Role: turn.Role.Name,
		Visit: turn.Visit, Attempt: turn.Attempt,
		EdgePrompt: turn.EdgePrompt,
		Messages:   []protocol.Message{},
		History:    []pastJSON{},
		Inputs:     orNull(turn.Inputs), OutputSchema: orNull(protocol.JSON(turn.Role.Output)),
	}
	if turn.Item != nil {
		out.Item = &itemJSON{turn.Item.Index, orNull(turn.Item.Value)}
	}
	if messages != nil {
		built, err := messages(turn.History)
		if err != nil {
			return turnJSON{}, fmt.Errorf("messages of %s: %w", turn.Step, err)
		}
		out.Messages = append(out.Messages, built...)
	}
	for _, m := range out.Messages {
		if m.Role == protocol.RoleSystem {
			out.System = m.Content
			break
		}
	}
	for _, p := range ancestors(turn.History) {
		past := pastJSON{p.Role, p.Visit, p.EdgePrompt, p.Status, p.Text, orNull(p.Data), p.CID.String()}
		if turn.Reuse != nil {
			past.CID = ""
		}
		out.History = append(out.History, past)
	}
	return out, nil
}

func orNull(j protocol.JSON) protocol.JSON {
	if len(j) == 0 {
		return protocol.JSON("null")
	}
	return j
}

// ancestors lists the steps before the visit depth first, parents in declared order, each
// after its own parents: the order is a function of the records alone.
func ancestors(h protocol.History) []protocol.Past {
	past := h.Ancestors()
	type frame struct {
		past protocol.Past
		next int // parent to go to
	}
	var out []protocol.Past
	seen := make(map[protocol.Link]bool, past.Len())
	stack := []frame{{past: h.Visit}}
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if top.next < len(top.past.Parents) {
			l := top.past.Parents[top.next]
			top.next++
			if p, _, ok := past.Get(l); ok && p.Compaction == nil && !seen[l] {
				seen[l] = true
				stack = append(stack, frame{past: *p})
			}
			continue
		}
		if len(stack) > 1 {
			out = append(out, top.past)
		}
		stack = stack[:len(stack)-1]
	}
	return out
}

// write writes the turn as a line of JSON.
func (t turnJSON) write(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(t)
}
