package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"wf/api"
	"wf/cmd/internal/plain"
	"wf/protocol"
)

// do carries out something of the session's aside. line is what was written for it.
func (a *App) do(line string, f func(ctx context.Context) (Outcome, error)) tea.Cmd {
	epoch, ctx := a.epoch, a.ctx
	a.said, a.stays = "", false
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		out, err := f(ctx)
		return outcome{epoch: epoch, line: line, result: out, err: err}
	}
}

func (a *App) perform(action Action, arg string) tea.Cmd {
	return a.do("", func(ctx context.Context) (Outcome, error) {
		return a.session.Command(ctx, Command{Action: action, Arg: arg})
	})
}

// waiting is the question that the next line answers.
func (a *App) waiting() (Waiting, bool) {
	if len(a.t.Waiting) == 0 {
		return Waiting{}, false
	}
	return a.t.Waiting[0], true
}

// send takes the line that was written, or the choice that was picked.
func (a *App) send() tea.Cmd {
	if a.going != nil {
		a.said = "wait until the files are in place; Ctrl+C leaves, and the next chat ends it"
		return nil
	}
	line, text := a.prompt.take()
	a.scroll.follow()
	w, asked := a.waiting()
	if line == "" {
		if value := a.picked(w); value != "" && len(w.Fields) > 0 {
			return a.fillIn(w, value, "", "")
		} else if value != "" {
			return a.choose(w, value, "", "")
		}
		return nil
	}
	if c, ok := commandOf(line); ok {
		return a.command(c)
	}
	if asked && len(w.Choices) > 0 && len(w.Fields) > 0 {
		value := a.picked(w)
		if value == "" {
			first, rest, _ := strings.Cut(text, "\n")
			var known bool
			if value, known = choiceOf(w, strings.TrimSpace(first)); !known {
				a.said = "pick one too: its number or name on the first line, or ↑↓ in the empty box"
				a.prompt.giveBack(line)
				return nil
			}
			text = rest
		}
		return a.fillIn(w, value, text, line)
	}
	if asked && len(w.Choices) > 0 {
		value, known := choiceOf(w, line)
		why := ""
		if !known && w.Kind == protocol.WaitApproval {
			value, why, known = denial(w, text)
		}
		if !known {
			if a.said = "pick one by its number or name"; w.Kind == protocol.WaitApproval { // it was written for the agent
				a.said = "the call is to be answered first: Ctrl+C empties the box, then y, a or n; Up brings the line back"
				a.prompt.giveBack(line)
			}
			return nil
		}
		return a.choose(w, value, why, line)
	}
	if strings.HasPrefix(text, "//") {
		text = text[1:]
	}
	if len(w.Fields) > 0 {
		return a.fillIn(w, "", text, line)
	}
	if len(text) > protocol.EdgePromptMax && a.long != line {
		a.long, a.stays = line, true
		a.said = fmt.Sprintf("an agent reads the first %d of these %d bytes: put the text in a file of the workspace and name that by @, or Enter sends it all the same", protocol.EdgePromptMax, len(text))
		a.prompt.giveBack(line)
		return nil
	}
	a.long = ""
	on := a.t.WordGoesOn && a.t.Status == protocol.Suspended
	return a.do(line, func(ctx context.Context) (Outcome, error) {
		if strings.Contains(line, "@") { // of what was pasted no name counts
			more, err := a.session.Attached(ctx, line, attachAllMax-len(text))
			if err != nil {
				return Outcome{}, err
			}
			text += more
		}
		if w.Step != "" {
			return Outcome{}, a.session.Answer(ctx, api.Answer{Step: w.Step, Text: text})
		}
		err := a.session.Say(ctx, text)
		if err == nil && on { // the agent that was interrupted hears it
			_, err = a.session.Command(ctx, Command{Action: Resume})
			if errors.Is(err, protocol.ErrRunLive) { // another screen was faster
				err = nil
			}
		}
		return Outcome{}, err
	})
}

// picked is the value of the choice that the arrows are at, "" for none.
func (a *App) picked(w Waiting) string {
	if a.pick < 1 || a.pick > len(w.Choices) {
		return ""
	}
	return w.Choices[a.pick-1].Value
}

// fillIn answers a question that asks for fields, and with choice one that offers choices too. text
// are the fields, line is what was written.
func (a *App) fillIn(w Waiting, choice, text, line string) tea.Cmd {
	fields, err := map[string]any{}, error(nil)
	if strings.TrimSpace(text) != "" {
		fields, err = fill(w.Fields, text)
	}
	if err == nil {
		err = complete(w.Fields, fields)
	}
	if err != nil {
		a.said = err.Error()
		a.prompt.giveBack(line)
		return nil
	}
	return a.do(line, func(ctx context.Context) (Outcome, error) {
		b, err := json.Marshal(fields)
		if err != nil {
			return Outcome{}, err
		}
		return Outcome{}, a.session.Answer(ctx, api.Answer{Step: w.Step, Choice: choice, Fields: b})
	})
}

func (a *App) choose(w Waiting, value, text, line string) tea.Cmd {
	a.pick = 0
	return a.do(line, func(ctx context.Context) (Outcome, error) {
		return Outcome{}, a.session.Answer(ctx, api.Answer{Step: w.Step, Choice: value, Text: text, Shown: w.Shown})
	})
}

func (a *App) command(c command) tea.Cmd {
	switch c.name {
	case "clear":
		a.hidden = len(a.t.Items)
		return nil
	case "think":
		a.think()
		return nil
	case "help":
		a.panel = &dialog{title: "Help", text: helpLines}
		return nil
	case "quit":
		return a.quit()
	case "task":
		return a.readTasks(true, c.arg)
	}
	switch action := Action(c.name); action {
	case Model, Fork:
		if a.running() && (action == Fork && c.arg == "" || action == Model && c.arg != "") { // the one that is left would go on beside it
			a.said = fmt.Sprintf("the agent works: Esc stops it, then /%s", action)
			return nil
		}
		return a.perform(action, c.arg)
	case Compact, Resume, Reset, Dump, Cost, Memories, Sessions:
		return a.perform(action, c.arg)
	case Undo, Redo, Rewind:
		return a.goBack(action, c.arg)
	}
	hint := "/help lists them, // begins a text with a slash"
	if near := nearest(c.name); near != "" {
		hint = "did you mean /" + near + "?"
	}
	a.said = fmt.Sprintf("/%s is no command; %s", plain.Line(plain.Text(c.name), 40), hint)
	return nil
}

// think shows or folds the reasoning of the last answer that has one.
func (a *App) think() {
	for i := len(a.t.Items) - 1; i >= a.hidden; i-- {
		if it := a.t.Items[i]; it.Kind == Reply && it.Thinking != "" {
			it.Unfolded = !it.Unfolded
			it.changed()
			return
		}
	}
	a.said = "no reasoning to show"
}
