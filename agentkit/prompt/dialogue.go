package prompt

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"wf/agentkit/task"
	"wf/protocol"
)

// dialogue is a conversation in front of a visit. What its prompts begin with is kept beside the
// records it follows from, so that the prompt of the next visit begins where the one before ended:
//
//	dialogue of visit k+1 = dialogue of visit k ‖ U_k ‖ A_k
type dialogue struct {
	format  format
	past    *protocol.Records
	inputs  protocol.JSON
	task    bool
	last    *exchange      // the newest visit, nil for none
	covers  *protocol.Past // what the compaction in front covers, nil for none
	summary string         // of that compaction, as long as no message holds it
}

// exchange is a visit in its place in a conversation.
type exchange struct {
	before *exchange
	n      int // visits up to this one
	visit  *protocol.Past
	user   string // the message to the visit, and what the visit answered: of a conversation
	answer string
	size   int // of both, as JSON

	shared *protocol.Layers[string, json.RawMessage] // what tasks left shared
}

// exchangeKey is the key of the dialogue up to a visit: the records name all that came
// before it.
type exchangeKey struct {
	visit  protocol.Link
	format int
	task   bool
}

// dialogue goes through the conversation of a visit: of a task, through the tasks before it.
func (f format) dialogue(h *protocol.History) (*dialogue, error) {
	t, err := f.dialogueOf(h)
	if err != nil {
		return nil, fmt.Errorf("messages of %s#%d: %w", h.Visit.Role, h.Visit.Visit, err)
	}
	return t, nil
}

func (f format) dialogueOf(h *protocol.History) (*dialogue, error) {
	past := h.Ancestors()
	t := &dialogue{format: f, past: past, inputs: h.Inputs, task: task.Offered(h.Tools)}
	key := exchangeKey{format: max(h.Format, 1), task: t.task}
	var visits []*protocol.Past // the newest first
	for at := h.Visit.Resumes; at.Defined(); {
		key.visit = at
		if kept, ok := past.Kept(key); ok && bytes.Equal(kept.(*dialogue).inputs, h.Inputs) {
			*t = *kept.(*dialogue)
			t.past = past
			break
		}
		v, err := resumed(past, at, len(visits))
		if err != nil {
			return nil, err
		}
		if v.Compaction != nil {
			if err := t.compacted(at); err != nil {
				return nil, err
			}
			break
		}
		visits = append(visits, v)
		at = v.Resumes
	}
	for _, v := range slices.Backward(visits) {
		if err := t.add(v); err != nil {
			return nil, err
		}
		key.visit = v.CID
		kept := *t
		kept.past = nil
		past.Keep(key, &kept)
	}
	return t, nil
}

// compacted begins with what a compaction left.
func (t *dialogue) compacted(at protocol.Link) error {
	c, err := conversationOf(t.past, &protocol.Past{Resumes: at})
	if err != nil {
		return err
	}
	t.covers, t.summary = c.covers, c.summary
	for _, v := range c.visits {
		if err := t.add(v); err != nil {
			return err
		}
	}
	return nil
}

// add goes on by a visit. One that failed is no turn.
func (t *dialogue) add(v *protocol.Past) error {
	if v.Status != protocol.StepOK {
		return nil
	}
	x := &exchange{before: t.last, n: t.visits() + 1, visit: v}
	if t.task {
		if t.last != nil {
			x.shared = t.last.shared
		}
		left, err := task.Left(v.Data)
		if err != nil {
			return err
		}
		x.shared = x.shared.With(left)
	} else {
		u := t.parts(v)
		x.user, x.answer = t.format.user(&u), v.Text
		if strings.TrimSpace(x.answer) == "" {
			x.answer = t.format.silent
		}
		x.size = jsonSize(x.turns())
	}
	t.last, t.summary = x, ""
	return nil
}

// visits is how many it holds.
func (t *dialogue) visits() int {
	if t.last == nil {
		return 0
	}
	return t.last.n
}

// parts is what the next user message is made of.
func (t *dialogue) parts(v *protocol.Past) userParts { return t.partsOf(v, nil) }

// partsOf is parts with the newest of the steps since, as far as more, where it is not nil, says so.
func (t *dialogue) partsOf(v *protocol.Past, more func(*protocol.Past) bool) userParts {
	u := userParts{visit: v, summary: t.summary, past: t.past}
	u.since, u.newest = t.since(v, more)
	if u.newest != nil {
		u.older = t.past.Above(v.Parents) - len(u.since)
		if known := t.known(); known != nil {
			u.older -= t.past.Above([]protocol.Link{known.CID})
		}
	}
	if t.last == nil && t.covers == nil {
		u.inputs = t.inputs
	}
	return u
}

// since are the steps above a visit that no message holds yet, and that lie above none that one does, in
// depth-first post-order over parents: what happened since the visit before. A parent that is no
// step is where the run started. No more of the past is looked at than lies between, nor than more wants: it is asked with each step,
// the newest first, and the one that it does not want is given beside those before it.
func (t *dialogue) since(v *protocol.Past, more func(*protocol.Past) bool) (out []*protocol.Past, next *protocol.Past) {
	f := frontier{past: t.past, at: map[protocol.Link]*reached{}}
	for _, l := range v.Parents {
		f.reach(l, false)
	}
	last := t.last
	if known := t.known(); known != nil {
		f.reach(known.CID, true)
	}
	for f.fresh > 0 {
		x := f.list[len(f.list)-1]
		if f.list = f.list[:len(f.list)-1]; !x.known {
			if more != nil && x.past.Compaction == nil && !more(x.past) {
				return f.order(v), x.past
			}
			f.fresh--
			x.fresh = true
		}
		for _, l := range x.past.Parents {
			f.reach(l, x.known)
		}
		if last != nil && x.past.CID == last.visit.CID { // the visit before it
			if last = last.before; last != nil {
				f.reach(last.visit.CID, true)
			} else if t.covers != nil {
				f.reach(t.covers.CID, true)
			}
		}
	}
	return f.order(v), nil
}

// known is the newest record that the messages hold, nil for none.
func (t *dialogue) known() *protocol.Past {
	if t.last != nil {
		return t.last.visit
	}
	return t.covers // comes before all visits
}

// reached is a step above a visit.
type reached struct {
	past  *protocol.Past
	rank  int
	known bool // a message holds it, or a step below it
	fresh bool // it was come to, and is not known
	seen  bool
}

// frontier goes up from steps, those of the highest rank first: when it comes to a step, it has
// been to all that go on from it.
type frontier struct {
	past  *protocol.Records
	at    map[protocol.Link]*reached
	list  []*reached // the highest rank last
	fresh int        // in list, and not known
}

func (f *frontier) reach(l protocol.Link, known bool) {
	if x := f.at[l]; x != nil {
		if known && !x.known {
			x.known = true
			f.fresh--
		}
		return
	}
	p, rank, ok := f.past.Get(l)
	if !ok {
		return
	}
	x := &reached{past: p, rank: rank, known: known}
	f.at[l] = x
	if !known {
		f.fresh++
	}
	at, _ := slices.BinarySearchFunc(f.list, rank, func(x *reached, rank int) int { return cmp.Or(cmp.Compare(x.rank, rank), -1) })
	f.list = slices.Insert(f.list, at, x)
}

// order lists what is fresh above v.
func (f *frontier) order(v *protocol.Past) (out []*protocol.Past) {
	type frame struct {
		past *protocol.Past
		next int // parent to look at
	}
	stack := []frame{{past: v}}
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if top.next < len(top.past.Parents) {
			x := f.at[top.past.Parents[top.next]]
			top.next++
			if x != nil && x.fresh && !x.seen {
				x.seen = true
				stack = append(stack, frame{past: x.past})
			}
			continue
		}
		if len(stack) > 1 && top.past.Compaction == nil {
			out = append(out, top.past)
		}
		stack = stack[:len(stack)-1]
	}
	return out
}
