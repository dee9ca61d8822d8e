package chat

import (
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"wf/cmd/internal/plain"
	"wf/protocol"
)

// approvalKeys are the keys that answer a tool call, in the empty box.
var approvalKeys = map[string]string{"y": protocol.Allow, "a": protocol.AllowRun, "n": protocol.Deny}

// denies is what the key for a denial writes into the box; the reason goes behind it.
const denies = "deny: "

// settling is how long a call is on the screen before a key answers it: a key that was on its way belongs to
// what the person was writing.
const settling = 300 * time.Millisecond

// An approval is the tool call that keys answer.
type approval struct {
	of      string // the call, with the digest of what is shown; "" is none
	settled bool
	read    bool // all of it was put on the screen when it was not there
}

// settled says that a call was on the screen for a while.
type settled struct{ of string }

// approve has keys answer the tool call that is asked for, after a while.
func (a *App) approve() tea.Cmd {
	w, ok := a.waiting()
	of := ""
	if ok && w.Kind == protocol.WaitApproval {
		of = w.call + "\x00" + w.Shown
	}
	if of == a.approval.of {
		return nil
	}
	a.approval = approval{of: of}
	if of == "" {
		return nil
	}
	return tea.Tick(settling, func(time.Time) tea.Msg { return settled{of} })
}

// approvalKey answers the tool call that is asked for. It reports whether the key did; else the key is the box's.
func (a *App) approvalKey(name string) (tea.Cmd, bool) {
	value := approvalKeys[name]
	if value == "" || !a.approval.settled || a.going != nil {
		return nil, false
	}
	w, _ := a.waiting()
	switch {
	case !w.offers(value):
		a.said = "this call is allowed once or not at all: a part of it is hidden, or nothing confines it"
		return nil, true
	case value == protocol.Deny:
		a.prompt.area.SetValue(denies)
		a.prompt.area.MoveToEnd()
		return nil, true
	}
	if it := a.t.questions[w.call]; it != nil && !a.approval.read {
		folded := !a.scroll.whole && len(it.asked(a.scroll.width, true)) > foldedDiff
		if folded || !a.scroll.follows() { // a part of it, or all, is not on the screen
			a.approval.read, a.scroll.whole = true, a.scroll.whole || folded
			a.scroll.follow()
			a.said = "all of the call is shown now; " + name + " again allows it"
			return nil, true
		}
	}
	a.approval.settled = false // one answer is enough
	a.scroll.follow()
	return a.choose(w, value, "", ""), true
}

// offers reports whether a choice is one of a question.
func (w Waiting) offers(value string) bool {
	return slices.ContainsFunc(w.Choices, func(c protocol.Choice) bool { return c.Value == value })
}

// denying reports whether the box holds a denial, with what the person wrote of the reason.
func (a *App) denying() bool {
	return a.approval.of != "" && strings.HasPrefix(a.prompt.area.Value()+" ", denies)
}

// approvalLines are the answers to a tool call, by their keys.
func (a *App) approvalLines(w Waiting, width int) []string {
	how := "  a key, or ↑↓ and Enter:"
	switch {
	case a.denying():
		how = "  why? The agent reads it. Enter denies the call, Esc does not."
	case !a.approval.settled:
		how = ""
	}
	out := []string{styleDim.Render(plain.Cut(how, width, "…"))}
	for i, c := range w.Choices {
		key := " "
		for k, value := range approvalKeys {
			if value == c.Value {
				key = k
			}
		}
		if c.Value == protocol.AllowRun { // other calls of the same tool are asked for all the same
			c.Label = "Allow exactly this call, until the run ends"
		}
		out = append(out, a.choiceLine(i, key, c, width)...)
	}
	return out
}
