package chat

import (
	"cmp"
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
// end, where there is room, the model. On a narrow screen the status stays, and what stands
// before it goes.
func (a *App) statusLine() string {
	m := a.t.Metrics
	word := a.word(len(a.news()) == 0)
	context, left := "", ""
	if w := a.info.Window; w > 0 {
		context, left = fmt.Sprintf("ctx %d%%", m.Context*100/w), fmt.Sprintf("(%d tok left)", max(0, w-m.Context))
	} else if m.Context > 0 {
		context = fmt.Sprintf("ctx %d tok", m.Context)
	}
	tps, turns := "", fmt.Sprintf("(turns: %d)", m.Turns)
	if m.TPS > 0 {
		tps = fmt.Sprintf("%.1f t/s", m.TPS)
	}
	line := ""
	for _, parts := range [][]string{{tps, context, left, turns}, {context, left, turns}, {context, turns}, {context}, {}} {
		parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
		line = " " + word
		if len(parts) > 0 {
			line = " " + styleDim.Render(strings.Join(parts, " ")) + " " + word
		}
		if plain.Width(line) <= a.width {
			break
		}
	}
	line = plain.Cut(line, a.width, "…")
	model := plain.Line(plain.Text(cmp.Or(m.Model, a.info.Model)), 40)
	if gap := a.width - plain.Width(line) - plain.Width(model) - 1; model != "" && gap >= 2 {
		line += strings.Repeat(" ", gap) + styleDim.Render(model)
	}
	return line
}

// newsMax is how many lines there are for what a command or the connection has to say; a few
// words stand in the status line.
const (
	newsMax  = 3
	fewWords = 32
)

// news is what a command or the connection has to say, where it is more than a few words.
func (a *App) news() []string {
	text, style := a.latest()
	if plain.Width(text) <= fewWords || a.height < ruleFrom {
		return nil
	}
	out := plain.Wrap(text, max(1, a.scroll.width-2))
	for i := range out {
		out[i] = "  " + style.Render(out[i])
	}
	return out[:min(len(out), newsMax)]
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
	case a.scroll.up > 0:
		return styleTool.Render(fmt.Sprintf("%s ↓ %d lines below (End)", a.t.Status, a.scroll.up))
	case a.running():
		return styleTool.Render(a.spin.String()) + styleDim.Render(" · Esc interrupts")
	}
	if w, ok := a.waiting(); ok && w.Step != "" {
		return styleWaits.Render("your turn")
	}
	if a.t.Status == protocol.Running {
		return styleFailed.Render("interrupted") + styleDim.Render(" · /resume goes on")
	}
	status := cmp.Or(string(a.t.Status), "idle")
	if a.t.Status == protocol.Suspended {
		return styleFailed.Render(status) + styleDim.Render(" · /resume goes on")
	}
	return status
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
		return fmt.Sprintf("%s running %dm%02ds", sign, int(d.Minutes()), int(d.Seconds())%60)
	} else if d >= time.Second {
		return fmt.Sprintf("%s running %ds", sign, int(d.Seconds()))
	}
	return sign + " running"
}
