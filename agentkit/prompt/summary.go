package prompt

import (
	_ "embed"
	"fmt"
	"strings"

	"wf/protocol"
)

//go:embed compact.md
var compactText string

// summaryMin is how many runes any summary may have: fewer say nothing.
const summaryMin = 400

// pastHeading opens the summary of a conversation.
const pastHeading = "## Summary of the conversation so far"

// goOn follows a summary of the visit's own work, so that the roles of messages alternate.
const goOn = "(The calls and results up to here have been replaced by this summary. Go on.)"

// Summary is what takes the place of a Cut.
type Summary struct {
	Text   string // by Cut.Text
	Model  string // that wrote it; "" for an extract
	Why    string // no model wrote it, where one was asked
	Inject string // follows the summary of a conversation
}

// ask makes the request for a summary of what a live request holds, with the same messages in
// front, so that they are read from its prefix cache.
func (c *Cut) ask(live []protocol.Message, what string, watermark int64) {
	c.Runes = max(summaryMin, int(summaryTokens(watermark))*runesPerToken)
	text := strings.NewReplacer("{{what}}", what, "{{words}}", fmt.Sprint(c.Runes/6)).Replace(strings.TrimSpace(compactText))
	c.Ask = append(live[:len(live):len(live)], protocol.Message{Role: protocol.RoleUser, Content: text})
}

// Text is what takes the place of the part: what a model wrote, or, with "", an extract.
func (c *Cut) Text(written string) string {
	if c.replies > 0 {
		if written == "" {
			return extractWork(c.part, c.Runes)
		}
		return Head(written, 2*c.Runes)
	}
	if written == "" {
		return pastHeading + "\n\n" + extractPast(c.part, c.Runes)
	}
	return pastHeading + "\n\n" + Join(Head(written, 2*c.Runes), extractPast(c.unread, c.least))
}

// Event is what is journaled of the cut, a protocol.CompactionDraft or, of a visit's own work, a
// protocol.Compacted: with the digest of what is sent next. The Work goes on behind the cut when
// the event is added to it. The errors are those of BuildMessages.
func (c *Cut) Event(s Summary) (protocol.Data, error) {
	w, tools := c.work, c.work.turn.History.Tools
	d := protocol.Compacted{TokensBefore: c.tokens, Model: s.Model, Error: protocol.NewText(s.Why)}
	if c.replies > 0 {
		next := append(w.Prompt[:len(w.Prompt):len(w.Prompt)], w.replaced(c.replies, s.Text)...)
		d.Scope, d.Replies, d.Summary = protocol.ScopeVisit, c.replies, protocol.NewText(s.Text)
		d.Digest, d.TokensAfter = Digest(tools, next).String(), int64(c.size*float64(sizeOf(tools, next)))
		return d, nil
	}
	draft := protocol.CompactionDraft{Compacted: d, Covers: c.Of, Summary: s.Text, Inject: s.Inject}
	p, err := BuildMessages(w.compacted(draft))
	if err != nil {
		return nil, err
	}
	draft.Compacted.Scope, draft.Compacted.Digest = protocol.ScopeConversation, Digest(tools, p).String()
	draft.Compacted.TokensAfter = int64(c.size * float64(sizeOf(tools, p)+sizeOf("", w.tail)))
	return draft, nil
}

// compacted is the history behind a compaction that is no record yet: it is linked by what it goes
// on from and what it says.
func (w *Work) compacted(d protocol.CompactionDraft) protocol.History {
	h := w.turn.History
	next := protocol.Past{CID: protocol.RawLink([]byte(h.Visit.Resumes.String() + d.Summary)), Role: h.Role, Inject: d.Inject,
		Compaction: &protocol.PastCompaction{Prior: h.Visit.Resumes, Covers: d.Covers, Summary: d.Summary}}
	h.Past = append(h.Past[:len(h.Past):len(h.Past)], next)
	h.Visit.Resumes = next.CID
	return h
}

// moveOn goes on from a compacted conversation.
func (w *Work) moveOn() {
	w.moved, w.Announced = true, false
	w.opening, w.newest, w.triedPast, w.over = 0, 0, true, nil
	w.Unbind()
}

// giveWay goes on with a summary in the place of the oldest replies.
func (w *Work) giveWay(d protocol.Compacted) {
	w.tail, w.newest, w.triedWork, w.over = w.replaced(d.Replies, d.Summary.S), 0, true, nil
	w.Unbind()
}

// Unbind takes in that what stands before all that was said since P_k is another than it was then: see Moved.
func (w *Work) Unbind() { w.behind = len(w.tail) }

// Moved is how many messages of the Request, the oldest first, were said behind another prefix than the present one. What a
// provider bound to that is worth nothing any more.
func (w *Work) Moved() int {
	if w.behind == 0 {
		return 0
	}
	return len(w.Prompt) + w.behind
}

// replaced is what was said since P_k, with a summary in the place of the n oldest replies.
func (w *Work) replaced(n int, summary string) []protocol.Message {
	from := len(w.tail)
	if replies := repliesIn(w.tail); n < len(replies) {
		from = replies[n]
	}
	return append([]protocol.Message{
		{Role: protocol.RoleAssistant, Content: summary}, {Role: protocol.RoleUser, Content: goOn},
	}, w.tail[from:]...)
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
