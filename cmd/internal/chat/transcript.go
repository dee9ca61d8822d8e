package chat

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"wf/api"
	"wf/cmd/internal/markdown"
	"wf/cmd/internal/plain"
	"wf/protocol"
)

// Transcript folds events into what is shown. The zero Transcript is empty.
type Transcript struct {
	Items      []*Item
	Waiting    []Waiting // what the run waits for, in the order asked
	Metrics    Metrics
	Tasks      TaskList
	Status     protocol.RunStatus
	WordGoesOn bool // suspended by a person, the end of a process or an error, and not by what a word changes nothing of, such as a limit

	Me string // whose words are those of the person at this screen; kept

	First, Last protocol.Seq // of the events that were read, 0 is none
	failed      string       // the step that was suspended last, and why
	events      []api.Update
	open        map[string]*Item // reply of a step that is being said
	calls       map[string]*Item // by step and call
	questions   map[string]*Item // for a call, by the same
	entries     map[string]int   // newest visit of each agent
}

// Waiting is a question that is open.
type Waiting struct {
	Step    string
	Kind    protocol.WaitKind
	Choices []protocol.Choice
	Fields  []protocol.FormField
	Shown   string // digest of the tool call that is asked for
	call    string // step and call
}

// Metrics are for the status line.
type Metrics struct {
	Turns   int     // visits of agents so far
	Context int64   // tokens of the newest request and its answer
	TPS     float64 // output tokens per second of the newest call
	Model   string
}

// Apply takes the next event in.
func (t *Transcript) Apply(u api.Update) {
	seq := u.Entry.Seq
	if seq <= t.Last {
		return
	}
	if t.First == 0 {
		t.First = seq
	}
	t.Last = seq
	t.events = append(t.events, u)
	t.fold(u)
}

// Prepend takes an older page in, whose last event is the one before t.First.
func (t *Transcript) Prepend(page []api.Update) {
	if len(page) == 0 {
		return
	}
	open, calls := t.open, t.calls
	t.again(slices.Concat(page, t.events))
	for step, it := range open { // with what came live
		if again := t.open[step]; again != nil {
			t.Items[slices.Index(t.Items, again)] = it
		} else {
			t.add(it)
		}
		t.open[step] = it
	}
	for key, it := range t.calls {
		if was := calls[key]; it.Open && was != nil {
			it.Text = was.Text
		}
	}
}

// Truncate drops the events after seq: the run's head was moved.
func (t *Transcript) Truncate(seq protocol.Seq) {
	n, _ := slices.BinarySearchFunc(t.events, seq+1, func(u api.Update, s protocol.Seq) int { return int(u.Entry.Seq - s) })
	t.again(t.events[:n])
}

// again folds from the start; what a person had unfolded stays so.
func (t *Transcript) again(events []api.Update) {
	unfolded := map[protocol.Seq]bool{}
	for _, it := range t.Items {
		if it.Unfolded {
			unfolded[it.Seq] = true
		}
	}
	*t = Transcript{Me: t.Me}
	for _, e := range events {
		t.Apply(e)
	}
	for _, it := range t.Items {
		it.Unfolded = unfolded[it.Seq]
	}
}

func (t *Transcript) add(it *Item) *Item {
	t.Items = append(t.Items, it)
	return it
}

func (t *Transcript) note(e *protocol.Entry, failed bool, format string, args ...any) {
	t.add(&Item{Kind: Note, Seq: e.Seq, Failed: failed, Text: plain.Text(fmt.Sprintf(format, args...))})
}

// appeared notes what a step left on which other programs act.
func (t *Transcript) appeared(e *protocol.Entry, step string, a *protocol.Appeared) {
	if a != nil {
		t.note(e, true, "%s: %s", step, a)
	}
}

func (t *Transcript) fold(u api.Update) {
	t.begin()
	e, step := u.Entry, u.Step
	switch d := u.Data.(type) {
	case protocol.TaskStarted, protocol.TaskStateUpdated, protocol.TaskWaitingOn, protocol.TaskDone:
		t.task(e, step, d)
	case protocol.StepStarted:
		t.Status = protocol.Running
	case protocol.PromptSent:
		t.turn(step)
	case protocol.Thinking:
		it := t.reply(step, e.Seq)
		it.liveThinking = live{}
		it.Thinking = plain.Text(d.Content.S)
		it.changed()
	case protocol.TextSaid:
		it := t.reply(step, e.Seq)
		it.liveText, it.tail = live{}, "" // the whole takes its place
		it.Text, it.Open = strings.Trim(plain.Text(withoutFields(d.Content.S)), "\n"), false
		it.changed()
		delete(t.open, step)
	case protocol.ToolCall:
		t.closeReply(step)
		if protocol.IsTaskControl(d.Name) {
			return
		}
		it := t.add(&Item{Kind: Tool, Seq: e.Seq, Step: step, Name: plain.Text(d.Name), Open: true})
		if it.Args, it.Diff = editOf(d.Name, d.Args.S); it.Diff == "" {
			it.Args = arguments(d.Args.S)
		}
		t.calls[step+"\x00"+d.Call] = it
	case protocol.ToolResult:
		if it := t.calls[step+"\x00"+d.Call]; it != nil {
			it.Text, it.Open, it.Failed = plain.Text(strings.TrimRight(d.Content.S, "\n")), false, d.IsError
			it.changed()
		}
		t.appeared(e, step, d.Appeared)
	case protocol.SandboxTier:
		t.appeared(e, step, d.Appeared)
	case protocol.Usage:
		t.usage(d)
	case protocol.StepCompleted:
		t.closeReply(step)
	default:
		t.happened(e, step, d)
	}
}

func (t *Transcript) begin() {
	if t.open == nil {
		t.open, t.calls, t.questions, t.entries = map[string]*Item{}, map[string]*Item{}, map[string]*Item{}, map[string]int{}
	}
}

// turn counts a visit of an agent: the number in its name counts those before it too, so that
// a transcript of the last page knows of all.
func (t *Transcript) turn(step string) {
	id, err := protocol.ParseStepID(step)
	if err != nil || id.N <= t.entries[id.Role] {
		return
	}
	t.Metrics.Turns += id.N - t.entries[id.Role]
	t.entries[id.Role] = id.N
}

// happened folds what is said to people and about the run.
func (t *Transcript) happened(e *protocol.Entry, step string, d protocol.Data) {
	switch d := d.(type) {
	case protocol.RunStarted:
		t.note(e, false, "%s", d.Title)
	case protocol.WaitingFor:
		t.Status = protocol.Waiting
		t.asks(e, step, d)
	case protocol.Answered:
		kind := t.answered(step)
		text := cmp.Or(d.Text.S, d.Choice)
		if kind == protocol.WaitApproval { // what was decided is shown with the call
			text = d.Text.S
		}
		if text != "" && d.Messages == 0 { // messages were shown when they came
			t.add(&Item{Kind: You, Seq: e.Seq, Step: step, Text: plain.Text(text), Source: t.foreign(d.Source)})
		}
	case protocol.TimerFired:
		t.answered(step)
	case protocol.Reminded:
		t.note(e, false, "%s still waits for an answer", step)
	case protocol.Escalated:
		t.note(e, false, "%s was not answered in time: asked of %s", step, cmp.Or(strings.Join(d.Assignees, ", "), "everyone again"))
	case protocol.MessageIn:
		t.add(&Item{Kind: You, Seq: e.Seq, Text: plain.Text(d.Text.S), Source: t.foreign(d.Source)})
	case protocol.Approval:
		t.decided(step + "\x00" + d.Call)
		until := ""
		if d.For == protocol.ForRun {
			until = ", exactly this call, until the run ends"
		}
		t.note(e, d.Decision == protocol.Deny, "%s: %s%s", d.Tool, d.Decision, until)
	case protocol.AttemptFailed:
		t.cut(step)
		t.note(e, true, "%s failed: %s", step, d.Error.Message)
	case protocol.SuspendedBy:
		t.stopped()
		t.Status = protocol.Suspended
		t.WordGoesOn = d.Reason == protocol.ByInterrupt || d.Reason == protocol.ByError
		if step == "" && d.Detail.S == t.failed { // the run is suspended for what was shown of the step
			return
		}
		t.failed = step + ": " + d.Detail.S
		t.note(e, d.Reason != protocol.ByInterrupt, "suspended (%s): %s", d.Reason, d.Detail.S)
	case protocol.ResumedBy:
		t.stopped() // it was of a process that was killed
		t.Status = protocol.Running
	case protocol.Held:
		if last := len(t.Items) - 1; last >= 0 && t.Items[last].Kind == Note && t.Items[last].Step == step && strings.HasPrefix(t.Items[last].Text, "held: ") { // it waited before, too
			t.Items[last].Text = plain.Text("held: " + d.String())
			t.Items[last].changed()
			return
		}
		t.add(&Item{Kind: Note, Seq: e.Seq, Step: step, Text: plain.Text("held: " + d.String())})
	case protocol.LimitReached:
		t.note(e, true, "limit %s reached: %d of %d", d.Limit, d.Value, d.Max)
	case protocol.CompactionAsked:
		t.note(e, false, "the next answer begins with a summary of the conversation")
	case protocol.Compacted:
		t.note(e, false, "compacted: %d → %d tokens", d.TokensBefore, d.TokensAfter)
		t.Metrics.Context = d.TokensAfter
	case protocol.ModelFallback:
		t.note(e, true, "%s did not answer (%s); %s goes on", d.From, d.Reason, d.To)
	case protocol.Forked:
		t.note(e, false, "forked here")
		t.Metrics.Model = "" // it may have another one
	case protocol.Closing:
		t.note(e, false, "closing: the run ends as %s", d.Status)
	case protocol.CancelAsked:
		t.note(e, false, "cancelled by %s while it closes: its always roles go on", d.By)
	case protocol.ClosingSkipped:
		t.note(e, true, "what is left of closing is skipped: %s", d.Reason)
	case protocol.CancelledBy:
		t.Status = protocol.Cancelled
		t.note(e, true, "cancelled by %s", d.By)
	case protocol.Finished:
		t.Status = d.Status
		t.note(e, d.Status == protocol.Failed, "%s", d.Status)
	}
}

// asks folds that a person is asked.
func (t *Transcript) asks(e *protocol.Entry, step string, d protocol.WaitingFor) {
	key := step + "\x00" + d.Call
	t.Waiting = append(t.Waiting, Waiting{step, d.Kind, d.Choices, protocol.FormFields(d.Form.S), d.Shown, key})
	call := t.calls[key]
	if call != nil && call.Open {
		call.Asked = true
		call.changed()
	}
	if d.Question.S == "" {
		return
	}
	it := t.add(&Item{Kind: Question, Seq: e.Seq, Step: step, Text: plain.Text(d.Question.S)})
	if d.Kind != protocol.WaitApproval {
		return
	}
	it.Text, it.Call = ofCall(it.Text)
	if call != nil && call.Diff != "" && strings.HasPrefix(it.Call, "--- ") {
		it.Diff, it.Call = it.Call, ""
	}
	if before := t.questions[key]; before != nil { // the call differs by now
		before.Gone = before.Diff != ""
		before.changed()
	}
	t.questions[key] = it
}

// answered folds that a step waits no more, and says for what it did.
func (t *Transcript) answered(step string) (kind protocol.WaitKind) {
	for _, w := range t.Waiting {
		if w.Step == step {
			kind = w.Kind
		}
	}
	t.Waiting = slices.DeleteFunc(t.Waiting, func(w Waiting) bool { return w.Step == step })
	for _, x := range t.Tasks {
		if x.ID == step && x.Status == protocol.TaskWaiting {
			x.Status = protocol.TaskActive
		}
	}
	if len(t.Waiting) == 0 && t.Status == protocol.Waiting {
		t.Status = protocol.Running
	}
	return kind
}

// reply is the open reply of a step.
func (t *Transcript) reply(step string, seq protocol.Seq) *Item {
	it := t.open[step]
	if it == nil {
		it = t.add(&Item{Kind: Reply, Step: step, Open: true})
		t.open[step] = it
	}
	if it.Seq == 0 {
		it.Seq = seq
	}
	return it
}

func (t *Transcript) closeReply(step string) {
	if it := t.open[step]; it != nil {
		it.Open = false
		it.changed()
		delete(t.open, step)
	}
}

// stopped folds that what was under way is not any more: what comes later is shown below it.
func (t *Transcript) stopped() {
	for _, step := range slices.Sorted(maps.Keys(t.open)) {
		t.cut(step)
	}
	for _, it := range t.calls {
		if it.Open && !it.Asked && it.Text == "" {
			it.Text = "stopped; what it did by then is not known" // its result takes the place of this
			it.changed()
		}
	}
}

// cut ends the reply of a step that was cut off. What came of it live is recorded nowhere.
func (t *Transcript) cut(step string) {
	it := t.open[step]
	t.closeReply(step)
	if it != nil && it.liveText.raw.Len() > 0 {
		t.add(&Item{Kind: Note, Step: step, Text: plain.Text(step) + " was cut off here: its unfinished answer is not recorded, and the agent does not know it"})
	}
}

// Live takes a piece of live output in; the journaled text takes its place later.
func (t *Transcript) Live(step string, d protocol.Delta) {
	t.begin()
	switch d.Kind {
	case "text":
		it := t.reply(step, 0)
		it.liveText.raw.WriteString(d.Text)
		it.changed()
	case "thinking":
		it := t.reply(step, 0)
		it.liveThinking.raw.WriteString(d.Text)
		it.changed()
	case "stdout", "stderr":
		for _, it := range slices.Backward(t.Items) {
			if it.Kind == Tool && it.Open && it.Step == step {
				it.Text = tail(it.Text+plain.Text(d.Text), liveResult)
				it.changed()
				return
			}
		}
	}
}

// liveResult bounds the live output kept of a tool; its result comes whole.
const liveResult = 16 << 10

func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[len(s)-n:], "")
}

func (t *Transcript) usage(d protocol.Usage) {
	m := &t.Metrics
	m.Model = plain.Text(d.Model)
	if d.Kind != protocol.UsageTurn {
		return
	}
	if d.Input != nil && d.Output != nil {
		m.Context = *d.Input + *d.Output
	}
	if ms := d.TotalMS - d.TTFE; d.Output != nil && ms > 0 {
		m.TPS = float64(*d.Output) * 1000 / float64(ms)
	}
}

// Kind says what an Item is.
type Kind int

// The kinds of items.
const (
	You      Kind = iota // what a person or another source said
	Reply                // what a model said
	Tool                 // a call with its result
	Note                 // what happened to the run
	Question             // what a person is asked
)

// Item is one entry of the conversation as it is shown.
type Item struct {
	Kind Kind
	Seq  protocol.Seq // of the event that began it; 0 while it is live output alone
	Step string       // whose it is, "" for the run

	Text     string
	Thinking string
	Source   string // You: who, where it is not the person at the terminal
	Open     bool   // more is coming

	Name   string // Tool
	Args   string // Tool: name=value, …
	Diff   string // Tool, Question: what a call changes in a file, line by line
	Call   string // Question: the call that is asked for, as it is
	Asked  bool   // Tool: a person is asked whether it may
	Failed bool   // Tool, Note: it went wrong

	Unfolded bool // Reply: the thinking is shown
	Gone     bool // Question: it is not shown any more, the call has what it said
	version  int  // grows with every change, for the cache of lines

	tail                   string // Reply: the line behind Text that is not complete yet
	liveText, liveThinking live
	body                   markdown.Parts // Reply
}

// live is what came of a text so far, as it came, and fit to be shown.
type live struct {
	raw   strings.Builder
	clean strings.Builder // of the lines that are complete
	upTo  int             // how much of raw is in clean
}

// lineMax is how many bytes of a line that is not complete are looked at again.
const lineMax = 64 << 10

// text makes what came fit to be shown: the lines that are complete, and the one behind them. Only what came since the last
// line is looked at.
func (l *live) text() (lines, tail string) {
	raw := l.raw.String()
	end := strings.LastIndexByte(raw[l.upTo:], '\n') + 1
	if n := len(raw) - l.upTo; end == 0 && n > lineMax {
		for end = n; end > n-utf8.UTFMax && !utf8.RuneStart(raw[l.upTo+end-1]); end-- {
		}
		end-- // a letter may have come by half
	}
	if end > 0 {
		l.clean.WriteString(plain.Text(raw[l.upTo : l.upTo+end]))
		l.upTo += end
	}
	return l.clean.String(), plain.Text(raw[l.upTo:])
}

func (it *Item) changed() { it.version++ }

// settle makes what came live fit to be shown.
func (it *Item) settle() {
	if it.liveText.raw.Len() > 0 {
		it.Text, it.tail = it.liveText.text()
	}
	if it.liveThinking.raw.Len() > 0 {
		lines, tail := it.liveThinking.text()
		it.Thinking = lines + tail
	}
}
