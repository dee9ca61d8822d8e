package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"wf/cas"
	"wf/protocol"
)

// Event says in one line what happened, without time and step; "" for what only repeats
// something else.
func Event(d protocol.Data) string {
	switch d := d.(type) {
	case protocol.RunStarted:
		return "run started: " + d.Title
	case protocol.StepStarted:
		text := "started"
		if d.Preparing {
			text = "is prepared"
		}
		if d.Attempt > 1 {
			text = fmt.Sprintf("started, attempt %d", d.Attempt)
		}
		if prompt := OneLine(d.EdgePrompt.S, 100); prompt != "" {
			text += ": " + prompt
		}
		return text
	case protocol.PromptSent:
		return "asked " + d.Model
	case protocol.Thinking:
		return "thought " + OneLine(d.Content.S, 100)
	case protocol.TextSaid:
		return "said " + OneLine(beginning(d.Content.S), 100)
	case protocol.ToolCall:
		return "calls " + d.Name + " " + OneLine(d.Args.S, 100)
	case protocol.ToolResult:
		text := "tool answered "
		if d.IsError {
			text = "tool failed: "
		}
		text += OneLine(d.Content.S, 100)
		if _, wall, met := strings.Cut(d.Content.S, "\n[sandbox "); met && !d.IsError {
			text += "  [sandbox " + OneLine(wall, 400)
		}
		return both(text, d.Appeared.String())
	case protocol.Reused:
		return "takes the result of " + d.Origin + ", " + reusedFiles(d.Files)
	case protocol.NotReused:
		return "takes no earlier result: " + OneLine(d.Text(), 160)
	case protocol.NotStored:
		return "its result is not kept for others: " + OneLine(strings.TrimPrefix(d.Part+": "+d.Detail.S, ": "), 160)
	case protocol.Held:
		text := "held: " + OneLine(d.String(), 240)
		if d.Until > 0 {
			text += ", again at " + stamp(d.Until)
		}
		return text
	case protocol.Released:
		return "goes on after " + Span(time.Duration(d.MS)*time.Millisecond)
	case protocol.Usage:
		return tokens(d)
	case protocol.FilesTracked:
		if d.On {
			return ""
		}
		return "the files of the workspace are not recorded: " + OneLine(d.Why, 200)
	case protocol.FilesAt:
		if d.Why == "" {
			return "" // wf files and wf diff --files tell what is in it
		}
		return "the files of the workspace are not recorded here: " + OneLine(d.Why, 200)
	case protocol.FilesLaid:
		text := "goes on in " + OneLine(d.Workspace, 200) + " on machine " + OneLine(d.Machine, 40)
		if n := max(len(d.LeftOut), d.LeftOutCount); n > 0 {
			text += fmt.Sprintf(", without %d of its files: %s", n, OneLine(d.LeftOut[0], 160))
		}
		return text
	case protocol.AttemptFailed:
		text := fmt.Sprintf("attempt %d failed: %s", d.Attempt, OneLine(d.Error.Error(), 160))
		if d.RetryAt > 0 {
			text += ", again at " + stamp(d.RetryAt)
		}
		return text
	case protocol.StepCompleted:
		return fmt.Sprintf("completed %s in %s  %s", cmp.Or(string(d.Status), "ok"), Span(time.Duration(d.MS)*time.Millisecond), d.Record.Short())
	case protocol.WaitingFor:
		text := "waits for " + protocol.Article(string(d.Kind))
		if d.Kind == protocol.WaitTask {
			text = "asks the user"
		}
		if q := question(d.Question.S, 160); q != "" {
			text += ": " + q
		}
		if d.Due > 0 {
			text += ", until " + stamp(d.Due)
		}
		if len(d.Assignees) > 0 {
			text += ", asked of " + OneLine(strings.Join(d.Assignees, ", "), 160)
		}
		return text
	case protocol.Answered:
		return "answered by " + cmp.Or(d.By, "someone") + ": " + strings.TrimSpace(d.Choice+" "+OneLine(d.Text.S, 100))
	case protocol.MessageIn:
		return "message from " + d.Source + ": " + OneLine(d.Text.S, 100)
	case protocol.TimerFired:
		return "timer fired"
	case protocol.Reminded:
		return fmt.Sprintf("reminder %d", d.N)
	case protocol.Escalated:
		text := "escalated"
		if len(d.Assignees) > 0 {
			text += " to " + OneLine(strings.Join(d.Assignees, ", "), 160)
		}
		return text + ", until " + stamp(d.Due)
	case protocol.Approval:
		return d.Decision + " " + d.Tool + " by " + cmp.Or(d.By, "policy")
	case protocol.SandboxTier:
		if text := both(d.Met, d.Appeared.String()); text != "" {
			return text
		}
		return "sandbox " + d.Tier
	case protocol.SuspendedBy:
		return "suspended (" + string(d.Reason) + ")" + Because(OneLine(d.Detail.S, 200))
	case protocol.ResumedBy:
		return "resumed by " + cmp.Or(d.By, "someone")
	case protocol.LimitReached:
		return fmt.Sprintf("limit %s reached: %s of %s", d.Limit, amount(d.Limit, d.Value), amount(d.Limit, d.Max))
	case protocol.LimitChanged:
		return fmt.Sprintf("limit %s is now %s", d.Limit, amount(d.Limit, d.Max))
	case protocol.ModelFallback:
		return fmt.Sprintf("model %s instead of %s: %s", d.To, d.From, OneLine(d.Reason, 100))
	case protocol.Correction:
		return fmt.Sprintf("answer %d does not fit: %s", d.Number, OneLine(d.Reasons.S, 200))
	case protocol.Compacted:
		return fmt.Sprintf("compacted the %s: %d → about %d tokens", d.Scope, d.TokensBefore, d.TokensAfter) + Because(OneLine(d.Error.S, 160))
	case protocol.TaskStarted:
		return "task: " + OneLine(d.Goal, 100)
	case protocol.TaskStateUpdated:
		return "state: " + OneLine(d.State.S, 160)
	case protocol.TaskWaitingOn:
		return "" // the waiting event beside it tells the same
	case protocol.TaskDone:
		return "task completed: " + OneLine(d.FinalResponse.S, 160)
	case protocol.MemoryChanged:
		return "memory " + d.Scope + " changed"
	case protocol.Forked:
		return "forked from event " + d.Base.Short()
	case protocol.QueuedFor:
		return queuedBehind(d)
	case protocol.AdmittedTo:
		return "holds a slot of the group " + OneLine(d.Group, 60)
	case protocol.GroupWaiting:
		return waitsForGroup(d.Group, d.Behind)
	case protocol.GroupEntered:
		return "entered the group " + OneLine(d.Group, 60)
	case protocol.GroupLeft:
		return "left the group " + OneLine(d.Group, 60)
	case protocol.Closing:
		words := "closing: the run ends as " + string(d.Status)
		if d.By != "" {
			words += " by " + d.By
		}
		return words + Because(OneLine(d.Message.S, 160))
	case protocol.CancelAsked:
		return "cancelled by " + cmp.Or(d.By, "someone") + " while it closes: its always roles go on, and to cancel it again skips them" + Because(OneLine(d.Reason, 160))
	case protocol.ClosingSkipped:
		return "what is left of closing is skipped (" + d.Code + ")" + Because(OneLine(d.Reason, 160))
	case protocol.CancelledBy:
		return "cancelled by " + cmp.Or(d.By, "someone") + Because(d.Reason)
	case protocol.Finished:
		return string(d.Status) + "  result " + d.Result.Short()
	}
	return ""
}

// EventJSON is one line of wf replay and of a stream.
type EventJSON struct {
	Seq  protocol.Seq       `json:"seq"`
	TS   string             `json:"ts"`
	Type protocol.EventType `json:"type"`
	Step *string            `json:"step"`
	CID  protocol.Link      `json:"-"`
	Prev protocol.Link      `json:"-"`
	Data json.RawMessage    `json:"-"`
}

// MarshalJSON writes CIDs as plain strings, prev null for the first event.
func (e EventJSON) MarshalJSON() ([]byte, error) {
	type plain EventJSON
	return json.Marshal(struct {
		plain
		CID  string          `json:"cid"`
		Prev *string         `json:"prev"`
		Data json.RawMessage `json:"data"`
	}{plain(e), e.CID.String(), linkString(e.Prev), e.Data})
}

// linkString is a CID as JSON has it: null for none.
func linkString(l protocol.Link) *string {
	if !l.Defined() {
		return nil
	}
	return new(l.String())
}

// NewEventJSON shows an event with its decoded data: linked texts inline, other links as
// {"/":"cid"}, keys of later versions kept. d is nil for a type of a later version.
func NewEventJSON(e *protocol.Entry, d protocol.Data) (EventJSON, error) {
	out := EventJSON{Seq: e.Seq, TS: string(protocol.AppendTime(nil, e.TS)), Type: e.Type, Step: e.Step, CID: e.CID, Prev: e.Prev}
	stored, err := cas.ToJSON(e.Data)
	if err != nil {
		return out, fmt.Errorf("event %d: %w", e.Seq, err)
	}
	out.Data = stored
	if d == nil || !e.Type.Spec().HasTexts() {
		return out, nil
	}
	resolved, err := json.Marshal(d)
	if err != nil {
		return out, fmt.Errorf("event %d: %w", e.Seq, err)
	}
	var all, known map[string]json.RawMessage
	if err := json.Unmarshal(stored, &all); err != nil {
		return out, fmt.Errorf("event %d: %w", e.Seq, err)
	}
	if err := json.Unmarshal(resolved, &known); err != nil {
		return out, fmt.Errorf("event %d: %w", e.Seq, err)
	}
	for key, value := range known {
		if _, there := all[key]; there {
			all[key] = value
		}
	}
	out.Data, err = json.Marshal(all)
	return out, err
}
