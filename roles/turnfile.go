package roles

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"wf/protocol"
)

// turnJSON is a Turn as a run role reads it: wf.turn/v1. Fields are only added. It is written as one object.
type turnJSON struct {
	turnHead
	History []json.RawMessage // ancestors, each a pastJSON after its parents
	turnTail
}

type turnHead struct {
	Schema     string             `json:"schema"`
	Run        protocol.RunID     `json:"run"`
	Step       string             `json:"step"`
	Role       string             `json:"role"`
	Visit      int                `json:"visit"`
	Attempt    int                `json:"attempt"`
	Item       *itemJSON          `json:"item,omitempty"` // in a fan-out
	EdgePrompt string             `json:"edgePrompt"`
	System     string             `json:"system"`
	Messages   []protocol.Message `json:"messages"` // what an agent in this place would be sent, system included
}

type turnTail struct {
	Inputs       protocol.JSON `json:"inputs"`
	OutputSchema protocol.JSON `json:"output_schema"` // JSON Schema of the declared fields, or null
	Omitted      *omittedJSON  `json:"omitted,omitempty"`
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

// HistoryMax is how much of what happened before a visit its turn holds, in bytes of JSON: what history and messages say together.
const HistoryMax = 64 << 10

// omittedJSON says how many of what came first a turn leaves out.
type omittedJSON struct {
	History  int `json:"history"`  // ancestors
	Messages int `json:"messages"` // earlier visits of the role
}

// newTurnJSON renders a turn; messages gives what an agent would be sent, or is nil.
func newTurnJSON(turn protocol.Turn, messages Messages) (turnJSON, error) {
	out := turnJSON{
		turnHead: turnHead{
			Schema: protocol.TurnSchema,
			Run:    runID(turn), Step: stepName(turn), Role: turn.Role.Name,
			Visit: turn.Visit, Attempt: turn.Attempt,
			EdgePrompt: turn.EdgePrompt,
			Messages:   []protocol.Message{},
		},
		turnTail: turnTail{Inputs: orNull(turn.Inputs), OutputSchema: orNull(protocol.JSON(turn.Role.Output))},
	}
	if turn.Item != nil {
		out.Item = &itemJSON{turn.Item.Index, orNull(turn.Item.Value)}
	}
	var told protocol.Told
	if messages != nil {
		var err error
		if told, err = messages(turn.History, HistoryMax); err != nil {
			return turnJSON{}, fmt.Errorf("messages of %s: %w", turn.Step, err)
		}
		if told.Messages != nil {
			out.Messages = told.Messages
		}
	}
	for _, m := range out.Messages {
		if m.Role == protocol.RoleSystem {
			out.System = m.Content
			break
		}
	}
	past, older, err := pastWithin(turn, HistoryMax-told.Earlier)
	if err != nil {
		return turnJSON{}, fmt.Errorf("history of %s: %w", turn.Step, err)
	}
	if out.History = past; older+told.Omitted > 0 {
		out.Omitted = &omittedJSON{older, told.Omitted}
	}
	return out, nil
}

// lines are the steps before a visit as JSON, by their CIDs.
type lines map[protocol.Link]json.RawMessage

// linesKey is the key of the lines of the newest turn, with which those of the next one are nearly the same.
type linesKey struct{ reuse bool }

// pastWithin are the newest ancestors of a visit that take no more than limit bytes, each whole and after its parents, and how many
// older ones there are. The order follows from the records alone.
func pastWithin(turn protocol.Turn, limit int) (past []json.RawMessage, older int, err error) {
	records, visit := turn.History.Ancestors(), &turn.History.Visit
	key := linesKey{turn.Reuse != nil}
	known := lines(nil)
	if before, ok := records.Kept(key); ok {
		known = before.(lines)
	}
	kept, below, chain := make(lines, len(known)+1), visit, true
	for p := range records.Newest(visit.Parents) {
		line := known[p.CID]
		if line == nil {
			if line, err = compact(pastOf(p, key.reuse)); err != nil {
				return nil, 0, err
			}
		}
		if limit -= len(line) + 1; limit < 0 {
			older = records.Above(visit.Parents) - len(kept)
			break
		}
		kept[p.CID], past = line, append(past, line)
		below, chain = p, chain && len(below.Parents) == 1
	}
	records.Keep(key, kept)
	if chain {
		slices.Reverse(past)
		return past, older, nil
	}
	past = past[:0]
	for _, l := range kept.inOrder(records, visit) {
		past = append(past, kept[l])
	}
	return past, older, nil
}

// pastOf is what a turn says of a step before it: where its result may be reused, without the name of the record.
func pastOf(p *protocol.Past, reuse bool) pastJSON {
	x := pastJSON{p.Role, p.Visit, p.EdgePrompt, p.Status, p.Text, orNull(p.Data), p.CID.String()}
	if reuse {
		x.CID = ""
	}
	return x
}

func orNull(j protocol.JSON) protocol.JSON {
	if len(j) == 0 {
		return protocol.JSON("null")
	}
	return j
}

// inOrder lists them depth first, parents in declared order, each after its own parents.
func (kept lines) inOrder(records *protocol.Records, visit *protocol.Past) (out []protocol.Link) {
	type frame struct {
		past *protocol.Past
		next int // parent to go to
	}
	seen := make(map[protocol.Link]bool, len(kept))
	stack := []frame{{past: visit}}
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if top.next < len(top.past.Parents) {
			l := top.past.Parents[top.next]
			top.next++
			if kept[l] != nil && !seen[l] {
				seen[l] = true
				p, _, _ := records.Get(l)
				stack = append(stack, frame{past: p})
			}
			continue
		}
		if len(stack) > 1 {
			out = append(out, top.past.CID)
		}
		stack = stack[:len(stack)-1]
	}
	return out
}

// compact is a value as a line of JSON without its end.
func compact(value any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(value)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// write writes the turn as a line of JSON.
func (t turnJSON) write(to io.Writer) error {
	head, err := compact(t.turnHead)
	if err != nil {
		return err
	}
	tail, err := compact(t.turnTail)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(to, 8<<10)
	w.Write(head[:len(head)-1])
	w.WriteString(`,"history":[`)
	for i, line := range t.History {
		if i > 0 {
			w.WriteByte(',')
		}
		w.Write(line)
	}
	w.WriteString("],")
	w.Write(tail[1:])
	w.WriteByte('\n')
	return w.Flush() // with the error of any of these
}
