package chat

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"wf/cmd/internal/plain"
	"wf/protocol"
)

// Transcript folds events into what is shown. The zero Transcript is empty.
type Transcript struct {
	Items       []*Item
	Waiting     []Waiting // what the run waits for, in the order asked
	Metrics     Metrics
	Tasks       TaskList
	Status      string // of the run: running, waiting, …
	Interrupted bool   // suspended by a person or by the end of a process, not by a limit or an error

	Me string // whose words are those of the person at this screen; kept

	First, Last protocol.Seq // of the events that were read, 0 is none
	events      []protocol.WireEvent
	open        map[string]*Item // reply of a step that is being said
	calls       map[string]*Item // by step and call
	entries     map[string]int   // newest visit of each agent
}

// Waiting is a question that is open.
type Waiting struct {
	Step     string
	Kind     protocol.WaitKind
	Question string
	Choices  []protocol.Choice
	Fields   []protocol.FormField
	Shown    string // digest of the tool call that is asked for
}

// Metrics are for the status line.
type Metrics struct {
	Turns   int     // visits of agents so far
	Context int64   // tokens of the newest request and its answer
	TPS     float64 // output tokens per second of the newest call
	Model   string
}

// Apply takes the next event in.
func (t *Transcript) Apply(e protocol.WireEvent) {
	if e.Seq <= t.Last {
		return
	}
	if t.First == 0 {
		t.First = e.Seq
	}
	t.Last = e.Seq
	t.events = append(t.events, e)
	t.fold(e)
}

// Prepend takes an older page in, whose last event is the one before t.First.
func (t *Transcript) Prepend(page []protocol.WireEvent) {
	if len(page) == 0 {
		return
	}
	t.again(slices.Concat(page, t.events))
}

// Truncate drops the events after seq: the run's head was moved.
func (t *Transcript) Truncate(seq protocol.Seq) {
	n, _ := slices.BinarySearchFunc(t.events, seq+1, func(e protocol.WireEvent, s protocol.Seq) int { return int(e.Seq - s) })
	t.again(t.events[:n])
}

// again folds from the start; what a person had unfolded stays so.
func (t *Transcript) again(events []protocol.WireEvent) {
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

func (t *Transcript) note(e protocol.WireEvent, failed bool, format string, args ...any) {
	t.add(&Item{Kind: Note, Seq: e.Seq, Failed: failed, Text: plain.Text(fmt.Sprintf(format, args...))})
}

// appeared notes what a step left on which other programs act.
func (t *Transcript) appeared(e protocol.WireEvent, step string, d data) {
	if d.Appeared != nil {
		t.note(e, true, "%s: %s", step, d.Appeared)
	}
}

// data are the fields of all events that are shown; JSON of other types leaves them alone.
type data struct {
	Title    word               `json:"title"`
	Role     string             `json:"role"`
	Content  word               `json:"content"`
	Call     string             `json:"call"`
	Name     string             `json:"name"`
	Args     word               `json:"args"`
	IsError  bool               `json:"is_error"`
	Appeared *protocol.Appeared `json:"appeared"`
	Kind     string             `json:"kind"`
	Question word               `json:"question"`
	Choices  []protocol.Choice  `json:"choices"`
	Form     word               `json:"form"`
	Shown    string             `json:"shown"`
	By       word               `json:"by"`
	Source   word               `json:"source"`
	Choice   string             `json:"choice"`
	Text     word               `json:"text"`
	Reason   string             `json:"reason"`
	Detail   word               `json:"detail"`
	Limit    string             `json:"limit"`
	Value    int64              `json:"value"`
	Max      int64              `json:"max"`
	Scope    string             `json:"scope"`
	Before   int64              `json:"tokens_before"`
	After    int64              `json:"tokens_after"`
	From     string             `json:"from"`
	To       string             `json:"to"`
	Status   string             `json:"status"`
	Model    string             `json:"model"`
	Input    *int64             `json:"input"`
	Output   *int64             `json:"output"`
	TTFE     int64              `json:"ttfe_ms"`
	TotalMS  int64              `json:"total_ms"`
	RetryAt  int64              `json:"retry_at"`
	Goal     word               `json:"goal"`
	State    word               `json:"state"`
	Final    word               `json:"final_response"`
	Decision string             `json:"decision"`
	Tool     string             `json:"tool"`
	Messages int                `json:"messages"`
	Error    json.RawMessage    `json:"error"`
}

// word is a text of an event. A link in its place is shown as what it is: a text too long for
// a frame, or, for a source file, nothing to read.
type word string

// UnmarshalJSON reads a text, or a link to one.
func (w *word) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		*w = word(s)
		return nil
	}
	var link struct {
		CID  string `json:"/"`
		Size int64  `json:"size"`
	}
	if json.Unmarshal(b, &link) == nil && link.Size > 0 {
		*w = word(fmt.Sprintf("[%d bytes; wf cas get %s]", link.Size, link.CID))
	}
	return nil
}

func (t *Transcript) fold(e protocol.WireEvent) {
	var d data
	if err := json.Unmarshal(e.Data, &d); err != nil && e.Type != protocol.EvUsage {
		t.note(e, true, "event %d (%s) could not be read: %v", e.Seq, e.Type, err)
		return
	}
	step := ""
	if e.Step != nil {
		step = *e.Step
	}
	if t.open == nil {
		t.begin()
	}
	switch e.Type {
	case protocol.EvTaskStarted, protocol.EvTaskStateUpdated, protocol.EvTaskWaiting, protocol.EvTaskCompleted:
		t.task(e, step, d)
	case protocol.EvStepStarted:
		t.Status = string(protocol.Running)
	case protocol.EvPrompt:
		t.turn(step)
	case protocol.EvThinking:
		it := t.reply(step, e.Seq)
		it.liveThinking = live{}
		it.Thinking = plain.Text(string(d.Content))
		it.changed()
	case protocol.EvText:
		it := t.reply(step, e.Seq)
		it.whole(strings.Trim(plain.Text(withoutFields(string(d.Content))), "\n"))
		it.Open = false
		it.changed()
		delete(t.open, step)
	case protocol.EvToolCall:
		t.closeReply(step)
		if protocol.IsTaskControl(d.Name) {
			return
		}
		t.calls[step+"\x00"+d.Call] = t.add(&Item{Kind: Tool, Seq: e.Seq, Step: step, Name: plain.Text(d.Name), Args: arguments(string(d.Args)), Call: d.Call, Open: true})
	case protocol.EvToolResult:
		if it := t.calls[step+"\x00"+d.Call]; it != nil {
			it.Text, it.Open, it.Failed = plain.Text(strings.TrimRight(string(d.Content), "\n")), false, d.IsError
			it.changed()
		}
		t.appeared(e, step, d)
	case protocol.EvSandbox:
		t.appeared(e, step, d)
	case protocol.EvUsage:
		t.usage(d)
	case protocol.EvStepCompleted:
		t.closeReply(step)
	default:
		t.happened(e, step, d)
	}
}

func (t *Transcript) begin() {
	t.open, t.calls, t.entries = map[string]*Item{}, map[string]*Item{}, map[string]int{}
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
func (t *Transcript) happened(e protocol.WireEvent, step string, d data) {
	switch e.Type {
	case protocol.EvRunStarted:
		t.note(e, false, "%s", d.Title)
	case protocol.EvWaiting:
		t.Status = string(protocol.Waiting)
		t.Waiting = append(t.Waiting, Waiting{step, protocol.WaitKind(d.Kind), plain.Text(string(d.Question)), d.Choices, protocol.FormFields(string(d.Form)), d.Shown})
		if it := t.calls[step+"\x00"+d.Call]; it != nil && it.Open {
			it.Asked = true
			it.changed()
		}
		if d.Question != "" {
			t.add(&Item{Kind: Question, Seq: e.Seq, Step: step, Text: plain.Text(string(d.Question))})
		}
	case protocol.EvAnswered, protocol.EvTimerFired:
		t.Waiting = slices.DeleteFunc(t.Waiting, func(w Waiting) bool { return w.Step == step })
		for _, x := range t.Tasks {
			if x.ID == step && x.Status == protocol.TaskWaiting {
				x.Status = protocol.TaskActive
			}
		}
		if text := firstOf(string(d.Text), d.Choice); text != "" && d.Messages == 0 { // messages were shown when they came
			t.add(&Item{Kind: You, Seq: e.Seq, Step: step, Text: plain.Text(text), Source: t.foreign(string(d.Source))})
		}
	case protocol.EvMessage:
		t.add(&Item{Kind: You, Seq: e.Seq, Text: plain.Text(string(d.Text)), Source: t.foreign(string(d.Source))})
	case protocol.EvApproval:
		if it := t.calls[step+"\x00"+d.Call]; it != nil {
			it.Asked = false
			it.changed()
		}
		t.note(e, d.Decision == "deny", "%s: %s", d.Tool, d.Decision)
	case protocol.EvAttemptFailed:
		var why protocol.ErrorInfo
		_ = json.Unmarshal(d.Error, &why) // an error of another shape has no message
		t.closeReply(step)
		t.note(e, true, "%s failed: %s", step, why.Message)
	case protocol.EvSuspended:
		t.Status, t.Interrupted = string(protocol.Suspended), d.Reason == string(protocol.ByInterrupt)
		t.note(e, d.Reason != string(protocol.ByInterrupt), "suspended (%s): %s", d.Reason, d.Detail)
	case protocol.EvResumed:
		t.Status = string(protocol.Running)
	case protocol.EvLimitReached:
		t.note(e, true, "limit %s reached: %d of %d", d.Limit, d.Value, d.Max)
	case protocol.EvCompactionAsked:
		t.note(e, false, "the next answer begins with a summary of the conversation")
	case protocol.EvCompacted:
		t.note(e, false, "compacted: %d → %d tokens", d.Before, d.After)
		t.Metrics.Context = d.After
	case protocol.EvModelFallback:
		t.note(e, true, "%s did not answer (%s); %s goes on", d.From, d.Reason, d.To)
	case protocol.EvForked:
		t.note(e, false, "forked here")
	case protocol.EvCancelled:
		t.Status = string(protocol.Cancelled)
		t.note(e, true, "cancelled by %s", d.By)
	case protocol.EvDone:
		t.Status = d.Status
		t.note(e, d.Status == string(protocol.Failed), "%s", d.Status)
	}
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

// Live takes a piece of live output in; the journaled text takes its place later.
func (t *Transcript) Live(f protocol.Frame) {
	if t.open == nil {
		t.begin()
	}
	switch f.Kind {
	case "text":
		it := t.reply(f.Step, 0)
		it.liveText.raw.WriteString(f.Text)
		it.changed()
	case "thinking":
		it := t.reply(f.Step, 0)
		it.liveThinking.raw.WriteString(f.Text)
		it.changed()
	case "stdout", "stderr":
		for _, it := range slices.Backward(t.Items) {
			if it.Kind == Tool && it.Open && it.Step == f.Step {
				it.Text = tail(it.Text+plain.Text(f.Text), liveResult)
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

func (t *Transcript) usage(d data) {
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
