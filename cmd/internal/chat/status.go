package chat

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"wf/cmd/internal/plain"
	"wf/protocol"
)

// statusLine is {tps} ctx {pct}% ({remaining} tok left) (turns: N) {status}, and at its right
// end what the run cost and the model. On a narrow screen the status stays, then the cost, the context,
// the model.
func (a *App) statusLine() string {
	m := a.t.Metrics
	word := a.word(len(a.news()) == 0)
	share, left, both := "", "", ""
	if w := a.info.Window; w > 0 {
		share, left = fmt.Sprintf("ctx %d%%", m.Context*100/w), fmt.Sprintf("(%d tok left)", max(0, w-m.Context))
		both = fmt.Sprintf("ctx %s/%s %d%%", tokens(m.Context), tokens(w), m.Context*100/w)
	} else if m.Context > 0 {
		share = fmt.Sprintf("ctx %s tok", tokens(m.Context))
		both = share
	}
	tps, turns := "", fmt.Sprintf("(turns: %d)", m.Turns)
	switch {
	case m.TPS >= 1000:
		tps = tokens(int64(m.TPS)) + " t/s"
	case m.TPS > 0:
		tps = fmt.Sprintf("%.1f t/s", m.TPS)
	}
	model := plain.Line(plain.Text(cmp.Or(m.Model, a.info.Model)), 40)
	cost := plain.Line(a.spent, 16)
	for _, x := range [][2][]string{
		{{tps, share, left, turns}, {cost, model}}, {{share, left, turns}, {cost, model}}, {{both, turns}, {cost, model}}, {{both}, {cost, model}},
		{{share}, {cost, model}}, {{both}, {cost}}, {{share}, {cost}}, {{}, {cost}}, {{}, {}},
	} {
		line, right := joined(x[0], " "), joined(x[1], " · ")
		if line != "" {
			line = styleDim.Render(line) + " "
		}
		line = " " + line + word
		gap := a.width - plain.Width(line) - plain.Width(right) - 1
		switch {
		case right != "" && gap >= 2:
			return line + strings.Repeat(" ", gap) + styleDim.Render(right)
		case right == "" && plain.Width(line) <= a.width:
			return line
		}
	}
	return plain.Cut(" "+word, a.width, "…")
}

// joined are the parts that are not empty.
func joined(parts []string, by string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(parts), func(s string) bool { return s == "" }), by)
}

// tokens is a count of tokens in few letters: 950, 12.3K, 1.2M.
func tokens(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 999_950:
		return strings.Replace(fmt.Sprintf("%.1fK", float64(n)/1e3), ".0K", "K", 1)
	}
	return strings.Replace(fmt.Sprintf("%.1fM", float64(n)/1e6), ".0M", "M", 1)
}

// gotSpent is what the run cost so far.
type gotSpent struct {
	epoch int
	spent string
	err   error
}

// spend asks what the run cost so far, one question at a time.
func (a *App) spend() tea.Cmd {
	if a.asking {
		a.askAgain = true
		return nil
	}
	a.asking, a.askAgain = true, false
	epoch, ctx, session := a.epoch, a.ctx, a.session
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		spent, err := session.Spent(ctx)
		return gotSpent{epoch, spent, err}
	}
}

func (a *App) gotSpent(m gotSpent) tea.Cmd {
	if m.epoch != a.epoch {
		return nil
	}
	a.asking = false
	if a.spent = plain.Text(m.spent); m.err != nil {
		a.spent = "cost ?" // /cost tells why
	}
	if a.askAgain {
		return a.spend()
	}
	return nil
}

// newsMax is how many lines there are for what a command or the connection has to say, and a quarter of the screen.
const newsMax = 8

// news is what a command or the connection has to say, above the box where there is room.
func (a *App) news() []string {
	text, style := a.latest()
	if text == "" || a.height < ruleFrom {
		return nil
	}
	out, most := plain.Wrap(text, max(1, a.scroll.width-2)), min(newsMax, a.height/4)
	if len(out) > most {
		out = out[:most]
		out[most-1] = plain.Cut(out[most-1]+" …", max(1, a.scroll.width-2), "…")
	}
	for i := range out {
		out[i] = "  " + style.Render(out[i])
	}
	return out
}

// latest is the newest word of the connection, or of a command.
func (a *App) latest() (string, lipgloss.Style) {
	if a.leaving {
		return "Ctrl+C again leaves; the run stays as it is", styleTool
	}
	if a.link != "" {
		return "⚠ " + plain.Line(plain.Text(a.link), 300), styleFailed
	}
	return plain.Text(a.said), styleTool
}

// word is what there is to say at the end of the status line; few says that the news are among
// it.
func (a *App) word(few bool) string {
	text, style := a.latest()
	switch {
	case few && text != "":
		return style.Render(text)
	case a.loading:
		return styleTool.Render("reading older events…")
	case !a.scroll.follows():
		return styleTool.Render(fmt.Sprintf("%s ↓ %d lines below (End)", a.t.Status, a.scroll.below(a.visible())))
	case a.link != "":
		return styleFailed.Render("not connected") + styleDim.Render(" · last seen "+cmp.Or(string(a.t.Status), "idle"))
	case a.running():
		if !a.session.Stops() {
			return styleTool.Render(a.spin.String()) + styleDim.Render(" · in another process")
		}
		return styleTool.Render(a.spin.String()) + styleDim.Render(" · Esc stops")
	}
	if w, ok := a.waiting(); ok && w.Step != "" {
		switch {
		case w.offers(protocol.AllowRun):
			return styleWaits.Render("asks you: y, a or n")
		case w.Kind == protocol.WaitApproval:
			return styleWaits.Render("asks you: y or n")
		}
		return styleWaits.Render("your turn")
	}
	if a.t.Status == protocol.Running {
		return styleFailed.Render("no process drives it") + styleDim.Render(" · /resume goes on")
	}
	if a.t.Status == protocol.Suspended {
		return styleFailed.Render("stopped") + styleDim.Render(" · /resume goes on")
	}
	return cmp.Or(string(a.t.Status), "idle")
}

// spin is the sign of life while the run goes on.
type spin struct {
	on    bool // a tick is on its way
	frame int
	since time.Time // when the run began to go on
	now   time.Time
}

// tick turns the sign.
type tick struct{}

const turnEvery = 120 * time.Millisecond

var signs = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

// next asks for a tick while the run goes on.
func (s *spin) next(running bool) tea.Cmd {
	if !running || s.on {
		return nil
	}
	s.on = true
	return tea.Tick(turnEvery, func(time.Time) tea.Msg { return tick{} })
}

func (s *spin) turn() {
	s.on, s.frame, s.now = false, s.frame+1, time.Now()
}

// from begins to count, from an event of the past (in unix microseconds) or, for 0, from now.
// What another machine's clock puts in the future is now.
func (s *spin) from(ts int64) {
	s.now = time.Now()
	s.since = s.now
	if at := time.UnixMicro(ts); ts > 0 && at.Before(s.now) {
		s.since = at
	}
}

// String is the sign with the time that has passed.
func (s *spin) String() string {
	sign := string(signs[s.frame%len(signs)])
	if d := s.now.Sub(s.since); d >= time.Minute {
		return fmt.Sprintf("%s working %dm%02ds", sign, int(d.Minutes()), int(d.Seconds())%60)
	} else if d >= time.Second {
		return fmt.Sprintf("%s working %ds", sign, int(d.Seconds()))
	}
	return sign + " working"
}
