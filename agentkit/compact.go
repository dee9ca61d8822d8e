package agentkit

import (
	"context"
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
	// DefaultWatermark holds, in tokens, where neither the role names one nor the model's
	// window is known.
	DefaultWatermark = 32_000
	// DefaultKeep is how many visits of a conversation stay whole, if they are small enough.
	DefaultKeep = 10

	// askedWatermark is the least watermark, in tokens, to which a compaction that a person
	// asked for works: a short conversation gives up its oldest visits only.
	askedWatermark = 8_000
)

// fill is how full the context of an attempt is, by the model's own counts.
type fill struct {
	opening   int64 // tokens of P_k, by the first call on it; 0 is not known
	newest    int64 // tokens of the newest request; 0 is not known
	bytes     int   // its size
	least     int64 // tokens below which no compaction gets, where a further one is futile; else 0
	triedPast bool  // the conversation was compacted, and no count since was below the watermark
	triedWork bool  // so was the work of the visit
}

// watermark is where compaction sets in. It is firm where someone knew the model: a guess of
// ours fails nobody.
func (v *visit) watermark() (tokens int64, firm bool) {
	tokens, firm = DefaultWatermark, false
	if c := v.turn.Role.Compaction; c != nil && c.Watermark > 0 {
		tokens, firm = c.Watermark, true
	} else if v.agent.Window != nil && v.model < len(v.models) {
		if n := v.agent.Window(v.models[v.model]); n > 0 {
			tokens, firm = int64(n)*3/4, true
		}
	}
	if n := v.window(); n > 0 && v.roomIn(n) < tokens {
		tokens, firm = v.roomIn(n), true
	}
	return tokens, firm
}

// measure takes in what the model counted, before its reply is added.
func (v *visit) measure(u protocol.Usage) {
	v.cut = u.Stop == protocol.StopLength
	if u.Input == nil {
		return
	}
	v.newest, v.bytes, v.again = *u.Input, sizeOf(v.list, v.request()), false
	if len(v.tail) == 0 {
		v.opening = v.newest
	}
	if most, _ := v.watermark(); v.newest <= most {
		v.triedPast, v.triedWork = false, false
	}
}

// counted counts a model call in the journal and reports whether it was a turn. One that was given
// up is made again under the same number.
func (v *visit) counted(u protocol.Usage) bool {
	if u.Stop == protocol.StopGivenUp {
		return false
	}
	switch u.Kind {
	case protocol.UsageTurn:
		v.calls++
		return true
	case protocol.UsageCompaction, protocol.UsageSummary:
		v.summaries++
	case protocol.UsageReflection:
		v.thoughts++
	}
	return false
}

// compacted takes over a compaction from the journal. The prompt is already the one that
// follows from its record.
func (v *visit) compacted(d protocol.Compacted) {
	if d.Scope == protocol.ScopeVisit {
		v.replace(d.Replies, d.Summary.S)
		return
	}
	v.resume()
}

// resume goes on from a compacted conversation.
func (v *visit) resume() {
	v.moved, v.prompted = true, false
	v.opening, v.newest, v.triedPast, v.over = 0, 0, true, nil
}

// compact is called before each model call. All calls of the tools have their results then.
func (v *visit) compact(ctx context.Context) error {
	most, firm := v.watermark()
	if len(v.tail) == 0 && v.over == nil {
		switch tokens := v.turn.LastUsage; {
		case v.moved || v.opening > 0:
			return nil
		case tokens > most:
			if _, err := v.compactPast(ctx, tokens, most); err != nil {
				return err
			}
			return v.tooNarrow(tokens)
		case v.turn.Compact:
			_, err := v.compactPast(ctx, tokens, max(tokens, askedWatermark))
			return err
		}
		return nil
	}
	if v.newest <= most && v.over == nil {
		return nil
	}
	if v.over != nil && v.over.Held <= lowOf(most) {
		return v.tooLong(*v.over) // it is the answer that has no room
	}
	work := func() (bool, error) { return v.compactWork(ctx, most) }
	past := func() (bool, error) { return v.compactPast(ctx, v.newest, most) }
	order := []func() (bool, error){work, past}
	if v.opening > lowOf(most) { // what came before the visit fills more than a compaction leaves
		order = []func() (bool, error){past, work}
	}
	for _, try := range order {
		if done, err := try(); done || err != nil {
			return err
		}
	}
	switch {
	case v.over != nil:
		return v.tooLong(*v.over)
	case !firm:
		return nil
	}
	return contextFull(fmt.Sprintf("the request holds %d tokens, the watermark is %d, and nothing more of it can be summarised. "+
		"Raise compaction.watermark of the role %s, take a model with a larger window, or give it less at once",
		v.newest, most, v.turn.Role.Name))
}

// lowOf is what a compaction aims at.
func lowOf(watermark int64) int64 { return watermark / 4 }

// futile reports whether a conversation of n visits, which was compacted before, would be due
// again at once: what stays in any case fills all but an eighth of the watermark together with a
// summary. The first compaction of a conversation is always tried.
func (v *visit) futile(n int, tokens, most int64, size float64) bool {
	if v.over != nil || tokens <= most { // refused by the server, or asked for by a person
		return false
	}
	last := len(v.prompt) - 1
	stays := sizeOf(v.list, v.prompt[:last-2*n]) + sizeOf("", v.prompt[last:]) + sizeOf("", v.tail)
	least := int64(size*float64(stays)) + summaryTokens(most)
	if least <= most-most/8 {
		return false
	}
	v.least = least
	return true
}

// tooNarrow fails a visit for the watermark that its role names, where what the role is always
// sent is past it: no further compaction is made, and none could help. Past the window that a
// config names only what the server refuses fails.
func (v *visit) tooNarrow(tokens int64) error {
	c := v.turn.Role.Compaction
	if v.least == 0 || c == nil || c.Watermark == 0 {
		return nil
	}
	return contextFull(fmt.Sprintf("the newest request held %d tokens, the watermark is %d, and a compaction cannot help: "+
		"what the role %s is sent in any case (its prompt, inputs, tools and newest message) holds about %d with a summary. "+
		"Raise compaction.watermark of the role, or shorten what it is sent", tokens, c.Watermark, v.turn.Role.Name, v.least))
}

// summaryTokens is the share of it that a summary may take.
func summaryTokens(watermark int64) int64 { return min(2_000, lowOf(watermark)/4) }

// sizeOf is how many bytes a request holds, near enough to compare parts of it.
func sizeOf(tools string, messages []protocol.Message) int {
	n := len(tools)
	for i := range messages {
		m := &messages[i]
		n += len(m.Content) + len(m.Opaque)
		for _, c := range m.ToolCalls {
			n += len(c.Name) + len(c.Arguments)
		}
	}
	return n
}

// compactPast replaces the older visits of the conversation. tokens is the newest count. It
// reports false where there are none, or it was tried before.
func (v *visit) compactPast(ctx context.Context, tokens, most int64) (bool, error) {
	if v.task != nil {
		return false, nil // it reads summaries of earlier visits anyway
	}
	h := &v.turn.History
	chain, err := conversationOf(h.Ancestors(), &h.Visit)
	if err != nil || v.triedPast || len(chain.visits) == 0 {
		return false, err
	}
	counted := v.prompt[:max(0, len(v.prompt)-2)] // the first request of the visit before
	live := v.prompt[:len(v.prompt)-1]            // with the answer to it
	switch {
	case v.over != nil:
		counted = v.request() // and live is what fitted once, as far as it goes
	case len(v.tail) > 0:
		counted, live = v.request(), v.request()
	}
	size := float64(tokens) / float64(max(1, sizeOf(v.list, counted)))
	if v.bytes > 0 {
		size = float64(tokens) / float64(v.bytes)
	}
	if chain.summary != "" && v.futile(len(chain.visits), tokens, most, size) {
		return false, nil
	}
	keep := v.keep(len(chain.visits), size, most)
	covered := chain.visits[:len(chain.visits)-keep]

	inject, unthought, err := v.reflect(ctx, live)
	if err != nil {
		return false, fmt.Errorf("reflection before the compaction of %s: %w", v.turn.Role.Name, err)
	}
	from := len(v.prompt) - 1 - 2*len(chain.visits)
	unread := 0 // newest visits that have no room in the request for the summary
	if len(live) < len(v.prompt) {
		unread = v.unread(live, len(chain.visits), most)
		live = live[:len(live)-2*unread]
	}
	s, err := v.summarise(ctx, live, pastAsked(max(0, keep-unread), len(live) > len(v.prompt)), most, func(runes int) string {
		return extractPast(v.prompt[from:from+2*len(covered)], runes)
	})
	if err != nil {
		return false, err
	}
	if s.model != "" && unread > keep {
		s.text = joinParts(s.text, extractPast(v.prompt[len(live):from+2*len(covered)], int(summaryTokens(most))*runesPerToken))
	}
	s.text = pastHeading + "\n\n" + s.text
	s.why = joinParts(s.why, unthought)
	kept, err := v.keepSummary(ctx, covered[len(covered)-1].CID, s.text)
	if err != nil {
		return false, err
	}

	next := *h
	covers := covered[len(covered)-1].CID
	next.Past = append(h.Past[:len(h.Past):len(h.Past)], protocol.Past{CID: digestOf([]byte(s.text)), Role: h.Role, Inject: inject,
		Compaction: &protocol.PastCompaction{Prior: h.Visit.Resumes, Covers: covers, Summary: s.text}})
	next.Visit.Resumes = next.Past[len(next.Past)-1].CID
	prompt, err := BuildMessages(next)
	if err != nil {
		return false, err
	}
	after := append(prompt[:len(prompt):len(prompt)], v.tail...)
	err = v.emit(ctx, append(append(s.events(), kept...), protocol.CompactionDraft{
		Compacted: protocol.Compacted{
			Scope: protocol.ScopeConversation, Digest: Digest(v.list, prompt).String(),
			TokensBefore: tokens, TokensAfter: int64(size * float64(sizeOf(v.list, after))),
			Model: s.model, Error: protocol.NewText(s.why),
		},
		Covers: covers, Summary: s.text, Inject: inject,
	})...)
	if err != nil {
		return false, err
	}
	*h, v.prompt = next, prompt
	v.resume()
	return true, nil
}

// pastHeading opens the summary of a conversation.
const pastHeading = "## Summary of the conversation so far"

// keep is how many of n visits stay whole: the newest, up to the role's number, as long as the
// prompt then holds no more than the low watermark. A number that the role names itself holds
// up to the watermark.
func (v *visit) keep(n int, size float64, most int64) int {
	want, limit := DefaultKeep, lowOf(most)
	if c := v.turn.Role.Compaction; c != nil && c.Keep > 0 {
		want, limit = c.Keep, most
	}
	last := len(v.prompt) - 1
	used := sizeOf(v.list, v.prompt[:last-2*n]) + sizeOf("", v.prompt[last:])
	left := float64(limit-summaryTokens(most)) - size*float64(used)
	keep := 0
	for ; keep < min(want, n-1); keep++ {
		visit := v.prompt[last-2*(keep+1) : last-2*keep]
		if left -= size * float64(sizeOf("", visit)); left < 0 {
			break
		}
	}
	return keep
}

// compactWork replaces the oldest replies of the visit, each with all that answered it. The
// newest one stays. It reports false where there is no other, or it was tried before.
func (v *visit) compactWork(ctx context.Context, most int64) (bool, error) {
	replies := repliesIn(v.tail)
	if v.triedWork || len(replies) < 2 {
		return false, nil
	}
	size := float64(v.newest) / float64(max(1, v.bytes))
	drop := len(replies) - 1
	left := float64(lowOf(most)-summaryTokens(most)) - size*float64(sizeOf(v.list, v.prompt)+sizeOf("", v.tail[replies[drop]:]))
	for ; drop > 1; drop-- {
		if left -= size * float64(sizeOf("", v.tail[replies[drop-1]:replies[drop]])); left < 0 {
			break
		}
	}
	live := v.request()
	if v.over != nil {
		live = live[:len(v.prompt)+replies[len(replies)-1]] // what was answered before
	}
	_, unthought, err := v.reflect(ctx, live) // P_k stays, with what stands in it
	if err != nil {
		return false, fmt.Errorf("reflection before the compaction of %s: %w", v.turn.Step, err)
	}
	s, err := v.summarise(ctx, live, workAsked(len(replies)-drop), most, func(runes int) string {
		return extractWork(v.tail[:replies[drop]], runes)
	})
	if err != nil {
		return false, err
	}
	s.why = joinParts(s.why, unthought)
	kept, err := v.keepSummary(ctx, Digest(v.list, live), s.text)
	if err != nil {
		return false, err
	}
	before, tail, over := v.newest, v.tail, v.over
	v.replace(drop, s.text)
	err = v.emit(ctx, append(append(s.events(), kept...), protocol.Compacted{
		Scope: protocol.ScopeVisit, Digest: Digest(v.list, v.request()).String(),
		TokensBefore: before, TokensAfter: int64(size * float64(sizeOf(v.list, v.request()))),
		Replies: drop, Summary: protocol.NewText(s.text), Model: s.model, Error: protocol.NewText(s.why),
	})...)
	if err != nil {
		v.tail, v.over = tail, over
	}
	return err == nil, err
}

// goOn follows a summary of the visit's own work, so that the roles of messages alternate.
const goOn = "(The calls and results up to here have been replaced by this summary. Go on.)"

// replace puts a summary in the place of the n oldest replies.
func (v *visit) replace(n int, summary string) {
	from := len(v.tail)
	if replies := repliesIn(v.tail); n < len(replies) {
		from = replies[n]
	}
	v.tail = append([]protocol.Message{
		{Role: protocol.RoleAssistant, Content: summary}, {Role: protocol.RoleUser, Content: goOn},
	}, v.tail[from:]...)
	v.newest, v.triedWork, v.over = 0, true, nil
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

// pastAsked says what of a conversation is to be summarised.
func pastAsked(keep int, working bool) string {
	what := "Summarise all of it"
	switch {
	case working && keep > 0:
		what = fmt.Sprintf("Summarise all but what belongs to the current task, your work on it, and the %s before it", answers(keep))
	case working:
		what = "Summarise all but what belongs to the current task and your work on it"
	case keep > 0:
		what = fmt.Sprintf("Summarise all but the last %s", answers(keep))
	}
	if working || keep > 0 {
		what += "; these stay as they are"
	}
	return what + "."
}

func answers(n int) string {
	if n == 1 {
		return "answer with the message it replies to"
	}
	return fmt.Sprintf("%d answers with the messages they reply to", n)
}

// workAsked says what of a visit is to be summarised.
func workAsked(keep int) string {
	stays := "your last reply with its results"
	if keep > 1 {
		stays = fmt.Sprintf("your last %d replies with their results", keep)
	}
	return "Summarise what you did on the current task up to now; the message that set the task stays as it is, and so do " + stays + "."
}
