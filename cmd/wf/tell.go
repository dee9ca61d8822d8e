package main

import (
	"fmt"
	"strings"
	"time"

	"wf/protocol"
	"wf/roles/frontmatter"
)

// tell says in one line what happened, without time and step; "" for what only repeats
// something else.
func tell(d protocol.Data) string {
	switch d := d.(type) {
	case protocol.RunStarted:
		return "run started: " + d.Title
	case protocol.StepStarted:
		text := "started"
		if d.Attempt > 1 {
			text = fmt.Sprintf("started, attempt %d", d.Attempt)
		}
		if prompt := oneLine(d.EdgePrompt.S, 100); prompt != "" {
			text += ": " + prompt
		}
		return text
	case protocol.PromptSent:
		return "asked " + d.Model
	case protocol.Thinking:
		return "thought " + oneLine(d.Content.S, 100)
	case protocol.TextSaid:
		return "said " + oneLine(withoutFences(d.Content.S), 100)
	case protocol.ToolCall:
		return "calls " + d.Name + " " + oneLine(d.Args.S, 100)
	case protocol.ToolResult:
		text := "tool answered "
		if d.IsError {
			text = "tool failed: "
		}
		text += oneLine(d.Content.S, 100)
		if _, wall, met := strings.Cut(d.Content.S, "\n[sandbox "); met && !d.IsError {
			text += "  [sandbox " + oneLine(wall, 400)
		}
		return both(text, d.Appeared.String())
	case protocol.Usage:
		return tokens(d)
	case protocol.AttemptFailed:
		text := fmt.Sprintf("attempt %d failed: %s", d.Attempt, oneLine(d.Error.Error(), 160))
		if d.RetryAt > 0 {
			text += ", again at " + clock(d.RetryAt)
		}
		return text
	case protocol.StepCompleted:
		return fmt.Sprintf("completed %s in %s  %s", orWord(string(d.Status), "ok"), span(time.Duration(d.MS)*time.Millisecond), d.Record.Short())
	case protocol.WaitingFor:
		text := "waits for " + article(string(d.Kind))
		if d.Kind == protocol.WaitTask {
			text = "asks the user"
		}
		if q := oneLine(d.Question.S, 160); q != "" {
			text += ": " + q
		}
		if d.Due > 0 {
			text += ", until " + clock(d.Due)
		}
		return text
	case protocol.Answered:
		return "answered by " + orWord(d.By, "someone") + ": " + strings.TrimSpace(d.Choice+" "+oneLine(d.Text.S, 100))
	case protocol.MessageIn:
		return "message from " + d.Source + ": " + oneLine(d.Text.S, 100)
	case protocol.TimerFired:
		return "timer fired"
	case protocol.Approval:
		return d.Decision + " " + d.Tool + " by " + orWord(d.By, "policy")
	case protocol.SandboxTier:
		if text := both(d.Met, d.Appeared.String()); text != "" {
			return text
		}
		return "sandbox " + d.Tier
	case protocol.SuspendedBy:
		return "suspended (" + string(d.Reason) + ")" + because(oneLine(d.Detail.S, 200))
	case protocol.ResumedBy:
		return "resumed by " + orWord(d.By, "someone")
	case protocol.LimitReached:
		return fmt.Sprintf("limit %s reached: %s of %s", d.Limit, amount(d.Limit, d.Value), amount(d.Limit, d.Max))
	case protocol.LimitChanged:
		return fmt.Sprintf("limit %s is now %s", d.Limit, amount(d.Limit, d.Max))
	case protocol.ModelFallback:
		return fmt.Sprintf("model %s instead of %s: %s", d.To, d.From, oneLine(d.Reason, 100))
	case protocol.Correction:
		return fmt.Sprintf("answer %d does not fit: %s", d.Number, oneLine(d.Reasons.S, 200))
	case protocol.Compacted:
		return fmt.Sprintf("compacted the %s: %d → about %d tokens", d.Scope, d.TokensBefore, d.TokensAfter) + because(oneLine(d.Error.S, 160))
	case protocol.TaskStarted:
		return "task: " + oneLine(d.Goal, 100)
	case protocol.TaskStateUpdated:
		return "state: " + oneLine(d.State.S, 160)
	case protocol.TaskWaitingOn:
		return "" // the waiting event beside it tells the same
	case protocol.TaskDone:
		return "task completed: " + oneLine(d.FinalResponse.S, 160)
	case protocol.MemoryChanged:
		return "memory " + d.Scope + " changed"
	case protocol.Forked:
		return "forked from event " + d.Base.Short()
	case protocol.CancelledBy:
		return "cancelled by " + orWord(d.By, "someone") + because(d.Reason)
	case protocol.Finished:
		return string(d.Status) + "  result " + d.Result.Short()
	}
	return ""
}

// withoutFences is an answer with the fields in front of it on one line, without their fences.
func withoutFences(text string) string {
	fields, body := fieldsAndBody(text)
	return strings.TrimLeft(fields+"\n"+body, "\n")
}

// gist is the most telling line of an answer: the last one, or the fields where they are all.
func gist(text string) string {
	fields, body := fieldsAndBody(text)
	return orWord(lastLine(body), fields)
}

func fieldsAndBody(text string) (fields, body string) {
	fields, body, err := frontmatter.Split(text)
	if err != nil {
		return "", text
	}
	return strings.Join(strings.FieldsFunc(fields, func(r rune) bool { return r == '\n' }), ", "), body
}

// article puts a or an in front of a word.
func article(word string) string {
	if word != "" && strings.ContainsRune("aeiou", rune(word[0])) {
		return "an " + word
	}
	return "a " + word
}

// tokens is what one model call used.
func tokens(d protocol.Usage) string {
	text := d.Model
	if d.Kind != protocol.UsageTurn {
		text += " for " + d.Kind
	}
	if d.Input != nil {
		text += fmt.Sprintf("  in %d", *d.Input)
	}
	if d.Cached != nil {
		text += fmt.Sprintf(" (cached %d)", *d.Cached)
	}
	if d.Output != nil {
		text += fmt.Sprintf("  out %d", *d.Output)
	}
	switch d.Stop {
	case protocol.StopLength:
		text += "  cut off"
	case protocol.StopRefused:
		text += "  refused"
	case protocol.StopGivenUp:
		text += "  given up before it answered"
	case protocol.StopOverflow:
		text += fmt.Sprintf("  refused: it holds %d tokens, the model reads %d", d.Held, d.Window)
	}
	if d.Child != nil {
		text += "  in run " + string(d.Child.Run)
	}
	return text
}

// amount is a value of a limit with its unit.
func amount(limit string, n int64) string {
	switch limit {
	case "cost_usd":
		return fmt.Sprintf("$%.4f", float64(n)/1e6)
	case "duration":
		return span(time.Duration(n) * time.Microsecond)
	}
	return fmt.Sprint(n)
}

// both are two texts on one line, or the one that there is.
func both(a, b string) string {
	if a != "" && b != "" {
		return a + "; " + b
	}
	return a + b
}

func orWord(s, instead string) string {
	if s == "" {
		return instead
	}
	return s
}

// span is a duration for people: 12ms, 4.1s, 3m05s, 2h10m.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// clock is a time of today, or a date, in the user's zone.
func clock(us int64) string {
	t := time.UnixMicro(us).Local()
	if time.Until(t).Abs() < 20*time.Hour {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04")
}
