package prompt

import (
	"fmt"

	"wf/protocol"
)

// Compaction. What a model reads is bounded by a watermark: past it, by the model's own count
// of the newest request, older parts give way to a summary, down to a quarter of the watermark
// where that can be had.
//
//	P_k = system ‖ U_1 ‖ A_1 ‖ … ‖ U_k          ──► system ‖ summary ‖ kept visits ‖ U_k
//	P_k ‖ call ‖ result ‖ … ‖ call ‖ result     ──► P_k ‖ summary ‖ newest calls and results
//
// The first is a record that later visits go on from; the second ends with the attempt. Either
// is tried once, until a count below the watermark shows that it worked.
const (
	// DefaultKeep is how many visits of a conversation stay whole, if they are small enough.
	DefaultKeep = 10

	// askedWatermark is the least watermark, in tokens, to which a compaction that a person
	// asked for works: a short conversation gives up its oldest visits only.
	askedWatermark = 8_000
)

// Cut is an older part of a request that a summary is to take the place of.
//
//	Due ─► Read: reflect ─► Ask: the model ─► Text ─► Event: the journal ─► Work.Add
type Cut struct {
	Read  []protocol.Message // what the model has read, the part in it
	Ask   []protocol.Message // the request for a summary: all but its last message was sent before
	Runes int                // about the most that a summary may have
	Of    protocol.Link      // names the part: the same when the cut is tried again

	work    *Work
	part    []protocol.Message
	replies int                // that part holds, of the visit's own work; 0 for visits before it
	unread  []protocol.Message // the end of part, where the model cannot read it with the rest
	least   int                // runes for an extract of that
	tokens  int64              // the newest count
	size    float64            // tokens of a byte
}

// Due tells what has to give way before the next request, nil for nothing. It is asked when all
// calls have their results. The error is a *protocol.Failure where the request is too long and
// nothing of it can give way; refusal is what the provider said of that, if anything.
func (w *Work) Due(refusal string) (*Cut, error) {
	most, firm := w.watermark()
	if len(w.tail) == 0 && w.over == nil {
		return w.dueAtStart(most)
	}
	if w.newest <= most && w.over == nil {
		return nil, nil
	}
	if w.over != nil && w.over.Held <= lowOf(most) {
		return nil, w.tooLong(refusal) // it is the answer that has no room
	}
	past := func() (*Cut, error) {
		c, _, err := w.cutPast(w.newest, most)
		return c, err
	}
	first, second := func() (*Cut, error) { return w.cutWork(most), nil }, past
	if w.opening > lowOf(most) { // what came before the visit fills more than a compaction leaves
		first, second = second, first
	}
	c, err := first()
	if c == nil && err == nil {
		c, err = second()
	}
	switch {
	case c != nil || err != nil:
		return c, err
	case w.over != nil:
		return nil, w.tooLong(refusal)
	case !firm:
		return nil, nil
	}
	return nil, contextFull(fmt.Sprintf("the request holds %d tokens, the watermark is %d, and nothing more of it can be summarised. "+
		"Raise compaction.watermark of the role %s, take a model with a larger window, or give it less at once",
		w.newest, most, w.turn.Role.Name))
}

// dueAtStart is for the first request of an attempt; its size is that of the visit before.
func (w *Work) dueAtStart(most int64) (*Cut, error) {
	switch tokens := w.turn.LastUsage; {
	case w.moved || w.opening > 0:
		return nil, nil
	case tokens > most:
		c, least, err := w.cutPast(tokens, most)
		if c == nil && err == nil && least > 0 {
			err = w.tooNarrow(tokens, least)
		}
		return c, err
	case w.turn.Compact:
		c, _, err := w.cutPast(tokens, max(tokens, askedWatermark))
		return c, err
	}
	return nil, nil
}

// cutPast takes the older visits of the conversation. tokens is the newest count. There is no Cut
// where there are none, or it was tried before, or it would be futile: then least is what the
// request would hold.
func (w *Work) cutPast(tokens, most int64) (c *Cut, least int64, err error) {
	if w.Task != nil || w.triedPast {
		return nil, 0, nil // a task reads summaries of earlier visits anyway
	}
	h := &w.turn.History
	chain, err := conversationOf(h.Ancestors(), &h.Visit)
	n := len(chain.visits)
	if err != nil || n == 0 {
		return nil, 0, err
	}
	counted := w.Prompt[:max(0, len(w.Prompt)-2)] // the first request of the visit before
	live := w.Prompt[:len(w.Prompt)-1]            // with the answer to it
	switch {
	case w.over != nil:
		counted = w.Request() // and live is what fitted once, as far as it goes
	case len(w.tail) > 0:
		counted, live = w.Request(), w.Request()
	}
	size := float64(tokens) / float64(max(1, sizeOf(h.Tools, counted)))
	if w.bytes > 0 {
		size = float64(tokens) / float64(w.bytes)
	}
	if chain.summary != "" {
		if least = w.futile(n, tokens, most, size); least > 0 {
			return nil, least, nil
		}
	}
	keep := w.keep(n, size, most)
	from := len(w.Prompt) - 1 - 2*n
	to := from + 2*(n-keep)
	c = &Cut{
		work: w, Read: live, Of: chain.visits[n-keep-1].CID, part: w.Prompt[from:to], tokens: tokens, size: size,
		least: int(summaryTokens(most)) * runesPerToken,
	}
	if len(live) < len(w.Prompt) {
		out := w.unread(live, n, most)
		if live = live[:len(live)-2*out]; out > keep {
			c.unread = w.Prompt[len(live):to]
		}
		keep = max(0, keep-out)
	}
	c.ask(live, pastAsked(keep, len(live) > len(w.Prompt)), most)
	return c, 0, nil
}

// unread is how many of the newest of n visits the request for a summary has to leave out, so
// that the model can read it; 0 where its window is not known.
func (w *Work) unread(live []protocol.Message, n int, most int64) int {
	window := w.windows[w.Model()]
	if window == 0 {
		return 0
	}
	out := 0
	for out < n-1 && w.density()*float64(sizeOf(w.turn.History.Tools, live[:len(live)-2*out])) > float64(window-summaryTokens(most)-askTokens) {
		out++
	}
	return out
}

// futile is what a request would hold, in tokens, after a conversation of n visits was compacted
// once more, where that would be due again at once: what stays in any case fills all but an eighth
// of the watermark together with a summary. Else it is 0. The first compaction of a conversation
// is always tried, and so is one that a server or a person wants.
func (w *Work) futile(n int, tokens, most int64, size float64) int64 {
	least := int64(size*float64(w.stays(n)+sizeOf("", w.tail))) + summaryTokens(most)
	if w.over != nil || tokens <= most || least <= most-most/8 {
		return 0
	}
	return least
}

// stays is the size of P_k without its n visits before.
func (w *Work) stays(n int) int {
	last := len(w.Prompt) - 1
	return sizeOf(w.turn.History.Tools, w.Prompt[:last-2*n]) + sizeOf("", w.Prompt[last:])
}

// keep is how many of n visits stay whole: the newest, up to the role's number, as long as the
// prompt then holds no more than the low watermark. A number that the role names itself holds
// up to the watermark.
func (w *Work) keep(n int, size float64, most int64) int {
	want, limit := DefaultKeep, lowOf(most)
	if c := w.turn.Role.Compaction; c != nil && c.Keep > 0 {
		want, limit = c.Keep, most
	}
	last := len(w.Prompt) - 1
	left := float64(limit-summaryTokens(most)) - size*float64(w.stays(n))
	keep := 0
	for ; keep < min(want, n-1); keep++ {
		visit := w.Prompt[last-2*(keep+1) : last-2*keep]
		if left -= size * float64(sizeOf("", visit)); left < 0 {
			break
		}
	}
	return keep
}

// cutWork takes the oldest replies of the visit, each with all that answered it. The newest one
// stays. It gives nil where there is no other, or it was tried before.
func (w *Work) cutWork(most int64) *Cut {
	replies := repliesIn(w.tail)
	if w.triedWork || len(replies) < 2 {
		return nil
	}
	size := float64(w.newest) / float64(max(1, w.bytes))
	drop := len(replies) - 1
	left := float64(lowOf(most)-summaryTokens(most)) - size*float64(sizeOf(w.turn.History.Tools, w.Prompt)+sizeOf("", w.tail[replies[drop]:]))
	for ; drop > 1; drop-- {
		if left -= size * float64(sizeOf("", w.tail[replies[drop-1]:replies[drop]])); left < 0 {
			break
		}
	}
	live := w.Request()
	if w.over != nil {
		live = live[:len(w.Prompt)+replies[len(replies)-1]] // what was answered before
	}
	c := &Cut{work: w, Read: live, Of: Digest(w.turn.History.Tools, live), part: w.tail[:replies[drop]], replies: drop, tokens: w.newest, size: size}
	c.ask(live, workAsked(len(replies)-drop), most)
	return c
}

// repliesIn tells where the replies of the model begin. What follows one, up to the next, is
// what answered it.
func repliesIn(tail []protocol.Message) []int {
	var at []int
	for i := range tail {
		if tail[i].Role == protocol.RoleAssistant {
			at = append(at, i)
		}
	}
	return at
}

// tooNarrow fails a visit for the watermark that its role names, where what the role is always
// sent is past it: no further compaction is made, and none could help. Past the window that a
// config names only what the server refuses fails.
func (w *Work) tooNarrow(tokens, least int64) error {
	c := w.turn.Role.Compaction
	if c == nil || c.Watermark == 0 {
		return nil
	}
	return contextFull(fmt.Sprintf("the newest request held %d tokens, the watermark is %d, and a compaction cannot help: "+
		"what the role %s is sent in any case (its prompt, inputs, tools and newest message) holds about %d with a summary. "+
		"Raise compaction.watermark of the role, or shorten what it is sent", tokens, c.Watermark, w.turn.Role.Name, least))
}

// tooLong is how a visit ends after a refusal of its request for its size, when nothing of it can be
// summarised.
func (w *Work) tooLong(refusal string) error {
	held, model, window := w.over.Held, w.over.Model, w.windows[w.over.Model]
	message := fmt.Sprintf("the model %s reads at most %d tokens, the request holds %d, and nothing more of it can be summarised. "+
		"Give the role %s less at once (its prompt, inputs, tools and newest message stay whole), or take a model with a larger window",
		model, window, held, w.turn.Role.Name)
	switch {
	case w.over.Output != nil: // it answered until its window was full
		message = fmt.Sprintf("the model %s reads at most %d tokens, its answer included: the request holds %d, and the answer did not fit into the rest. "+
			"Have the role %s answer in fewer words, give it less at once, or take a model with a larger window", model, window, held, w.turn.Role.Name)
	case held <= window:
		message = fmt.Sprintf("the model %s reads at most %d tokens, its answer included: the request holds %d, and the rest is "+
			"less than the answer may hold. Lower max_tokens in the params of the role %s, or take a model with a larger window",
			model, window, held, w.turn.Role.Name)
	}
	if refusal != "" {
		message += ". The provider says: " + refusal
	}
	return contextFull(message)
}

// contextFull is the failure of a visit when its request cannot be made small enough.
func contextFull(message string) *protocol.Failure {
	return &protocol.Failure{
		ErrorInfo: protocol.ErrorInfo{Code: "context_full", Phase: "compaction", Message: message}, Class: "context_full",
	}
}
