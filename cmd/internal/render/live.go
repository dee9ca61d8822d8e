package render

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"wf/api"
	"wf/cmd/internal/plain"
	"wf/protocol"
)

// A live screen keeps the open steps at the bottom of the terminal and lets what is over
// scroll away above them:
//
//	✓ test#1     0.3s  exit 1   k3mau2xq  2 failing
//	↺ coder      test → coder (2): "fix the two failing tests"
//	⠹ coder#2    2.7s  in 1494 (cached 812)  "The split case must…"
//	⠹ review#1   12.3s  1,000 items: 412 ok, 2 failed, 8 running, 578 to come
//	─ 416 steps · 19.7s · Ctrl-C suspends safely
//
// A long fan-out is one of the open steps; only those of its items that want to be looked at have lines.
type live struct {
	Backdrop
	w    *Screen
	stop chan struct{}
	done chan struct{}

	mu    sync.Mutex
	open  []*liveStep // in order of their start
	over  int
	begun time.Time
	frame int
	drawn int // lines at the bottom to be wiped
}

type liveStep struct {
	id              string
	begun           time.Time
	calls           int
	in, cached, out int64
	tail            string // last line said
	cut             bool   // the newest reply was cut off
	fan             *fan   // a fan-out that is folded
}

// spinner is one turn of the sign in front of an open step.
var spinner = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

const frameEvery = 100 * time.Millisecond

func newLive(w *Screen, b Backdrop) *live {
	l := &live{Backdrop: b, w: w, stop: make(chan struct{}), done: make(chan struct{}), begun: time.Now()}
	go l.spin()
	return l
}

func (l *live) spin() {
	defer close(l.done)
	tick := time.NewTicker(frameEvery)
	defer tick.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-tick.C:
			l.mu.Lock()
			l.frame++
			l.draw("")
			l.mu.Unlock()
		}
	}
}

func (l *live) Close() {
	close(l.stop)
	<-l.done
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range slices.Clone(l.open) {
		if s.fan != nil { // what came of it as far as it came
			s.fan.leave()
			l.close1(s.id, l.row(l.w.sign(s.fan.Worst()), s.id, s.fan.String()))
		}
	}
	l.open = nil
	l.w.redraw(l.drawn, "")
	l.drawn = 0
}

func (l *live) Notice(n api.Update) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Fold.folds(n.Step) && n.Entry == nil {
		return // the words of one of many
	}
	x := l.fold(n.Run, n.Step, at(n.Entry), n.Data)
	if x.fan != nil && l.step(x.fan.name) == nil {
		l.open = append(l.open, &liveStep{id: x.fan.name, begun: time.UnixMicro(x.fan.began), fan: x.fan})
	}
	if x.own {
		l.event(n)
	}
	if _, over := n.Data.(protocol.StepCompleted); over && x.fan != nil {
		if !x.own {
			l.over++
		}
		if x.fan.done() {
			l.close1(x.fan.name, l.row(l.w.sign(x.fan.Worst()), x.fan.name, x.fan.String()))
		}
	}
	for _, text := range x.before {
		if strings.HasPrefix(text, "…") { // the fan-out itself is at the bottom
			l.draw(l.row(l.w.Yellow("!"), x.fan.name, text))
		}
	}
}

// at is the time of an event in µs, now for what is none.
func at(e *protocol.Entry) int64 {
	if e == nil {
		return time.Now().UnixMicro()
	}
	return e.TS
}

// event shows what has lines of its own.
func (l *live) event(n api.Update) {
	s := l.step(n.Step)
	open := s != nil
	if !open {
		s = &liveStep{} // what is said of it is not shown
	}
	switch d := n.Data.(type) {
	case protocol.StepStarted:
		again := ""
		if d.Attempt > 1 {
			again = fmt.Sprintf(" (attempt %d)", d.Attempt)
		}
		if !open {
			l.open = append(l.open, &liveStep{id: n.Step, begun: time.Now()})
		}
		if !open && d.Visit > 1 && d.EdgePrompt.S != "" || again != "" {
			l.draw(l.reentry(n.Step, d, again))
		}
	case protocol.Delta:
		s.hear(d.Text)
	case protocol.TextSaid:
		s.tail = gist(d.Content.S)
	case protocol.Usage:
		s.add(d)
	case protocol.ToolCall:
		if !protocol.IsTaskControl(d.Name) {
			s.tail = d.Name + " " + OneLine(d.Args.S, 60)
		}
	case protocol.TaskStarted, protocol.TaskStateUpdated, protocol.Held:
		s.tail = Event(d)
	case protocol.Released:
		s.tail = ""
	case protocol.ToolResult:
		l.appeared(n.Step, d.Appeared)
	case protocol.SandboxTier:
		l.appeared(n.Step, d.Appeared)
	case protocol.AttemptFailed:
		l.draw(l.row(l.w.Yellow("!"), n.Step, Event(d)))
	case protocol.WaitingFor:
		l.close1(n.Step, l.row(l.w.Yellow("⏸"), n.Step, Event(d)))
	case protocol.StepCompleted:
		l.completed(n.Step, s, d)
	case protocol.GroupWaiting:
		s.tail = Event(d)
	case protocol.Reused:
		s.tail = "reused: the result of " + d.Origin
	case protocol.NotStored:
		l.draw(l.row(l.w.Yellow("!"), n.Step, Event(d)))
	case protocol.GroupEntered:
		s.tail = ""
	case protocol.QueuedFor:
		l.draw(l.row(l.w.Yellow("○"), "", Event(d)+"; Ctrl-C leaves the queue"))
	case protocol.Reminded, protocol.Escalated, protocol.SuspendedBy, protocol.LimitReached, protocol.ModelFallback, protocol.CancelledBy, protocol.ResumedBy, protocol.Closing, protocol.CancelAsked, protocol.ClosingSkipped:
		l.draw(l.row(l.w.Yellow("!"), n.Step, Event(n.Data)))
	}
}

// appeared tells what a step left on which other programs act.
func (l *live) appeared(step string, a *protocol.Appeared) {
	if a != nil {
		l.draw(l.row(l.w.told(a), step, a.String()))
	}
}

// told is the sign of what a step left on which other programs act: red is an alarm.
func (p Paint) told(a *protocol.Appeared) string {
	if a.Alarm() {
		return p.Red("!")
	}
	return p.Yellow("!")
}

func (l *live) step(id string) *liveStep {
	for _, s := range l.open {
		if s.id == id && id != "" {
			return s
		}
	}
	return nil
}

// hear keeps the last line of what a step says.
func (s *liveStep) hear(text string) {
	all := s.tail + text
	if i := strings.LastIndexByte(strings.TrimRight(all, "\n"), '\n'); i >= 0 {
		all = all[i+1:]
	}
	s.tail = all[max(0, len(all)-400):]
}

// reentry is the line above a visit that goes on: what the moderator said.
func (l *live) reentry(step string, d protocol.StepStarted, again string) string {
	text := fmt.Sprintf("%s (visit %d)%s", l.way(d), d.Visit, again)
	if prompt := OneLine(d.EdgePrompt.S, 100); prompt != "" {
		text += `: "` + prompt + `"`
	}
	return l.row(l.w.Cyan("↺"), step, text)
}

func (l *live) completed(id string, s *liveStep, d protocol.StepCompleted) {
	l.over++
	sign := l.w.Green("✓")
	switch d.Status {
	case protocol.StepFailed:
		sign = l.w.Red("✗")
	case protocol.StepSkipped:
		sign = l.w.Dim("–")
	}
	text := Span(time.Duration(d.MS)*time.Millisecond) + s.used()
	if exit := l.exit(d); exit != "" {
		text += "  " + exit
	}
	how := l.itemEnded(id, d, s.cut)
	if isRed(how) {
		sign = l.w.sign(redItem)
	}
	text += "  " + l.w.Dim(d.Record.Short())
	if s.cut || how == cutShort {
		text += "  " + l.w.Yellow("cut off")
	}
	last := lastLine(s.tail)
	if last == "" || last == fence { // nothing was heard of it, or it ends with fields
		last = l.concluded(d)
	}
	if last = OneLine(last, 60); last != "" {
		text += "  " + last
	}
	l.close1(id, l.row(sign, id, text))
}

// close1 takes a step from the bottom and leaves a line above.
func (l *live) close1(id, text string) {
	l.open = slices.DeleteFunc(l.open, func(s *liveStep) bool { return s.id == id })
	l.draw(text)
}

func (s *liveStep) used() string {
	if s.calls == 0 {
		return ""
	}
	return fmt.Sprintf("  in %d (cached %d)  out %d", s.in, s.cached, s.out)
}

// add sums a model call; what the provider did not tell adds nothing.
func (s *liveStep) add(d protocol.Usage) {
	s.calls++
	if d.Kind == protocol.UsageTurn && d.Child == nil {
		s.cut = d.Stop == protocol.StopLength
	}
	for sum, n := range map[*int64]*int64{&s.in: d.Input, &s.cached: d.Cached, &s.out: d.Output} {
		if n != nil {
			*sum += *n
		}
	}
}

func (l *live) row(sign, step, text string) string {
	return fmt.Sprintf("  %s %-12s %s", sign, step, text)
}

// draw writes a line above the open steps, if it is not empty, and the open steps anew.
func (l *live) draw(above string) {
	var b strings.Builder
	wiped := l.drawn
	l.drawn = 0
	width, height := l.w.Size()
	fit := func(s string) {
		b.WriteString(plain.Cut(s, width-1, "…"))
		b.WriteByte('\n')
	}
	if above != "" {
		fit(above)
	}
	sign := l.w.Cyan(string(spinner[l.frame%len(spinner)]))
	shown := l.open
	if most := max(1, height-4); len(shown) > most { // what scrolled away could not be wiped
		shown = shown[:most-1]
	}
	for _, s := range shown {
		text := Span(time.Since(s.begun)) + s.used()
		if s.fan != nil {
			text += "  " + s.fan.standing()
		}
		if last := OneLine(lastLine(s.tail), 100); last != "" && last != fence {
			text += "  " + l.w.Dim(last)
		}
		fit(l.row(sign, s.id, text))
		l.drawn++
	}
	if more := len(l.open) - len(shown); more > 0 {
		fit(l.row(sign, "…", fmt.Sprintf("%d more are open", more)))
		l.drawn++
	}
	if len(l.open) > 0 {
		fit(l.w.Dim(fmt.Sprintf("─ %s · %s · %s", protocol.Plural(l.over, "step"), Span(time.Since(l.begun)), l.leaving())))
		l.drawn++
	}
	l.w.redraw(wiped, b.String())
}
