package render

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"wf/api"
	"wf/protocol"
)

// A Reporter shows a run while it is driven. Notice is called for one update after the other;
// Close is called once, before the answer is written.
type Reporter interface {
	Notice(api.Update)
	Close()
}

// Reporter picks how progress is shown: as JSON lines on stdout, not at all, live on a
// terminal, in groups in GitHub Actions, else one line per event.
func (p *Printer) Reporter(b Backdrop) Reporter {
	b.steers = map[string]bool{}
	switch {
	case p.Format == "jsonl":
		return &jsonLines{p: p}
	case p.Quiet:
		return silence{}
	case p.Err.TTY:
		return newLive(p.Err, b)
	case InActions():
		return &groups{w: p.Err, Backdrop: b, lines: map[string][]string{}}
	}
	return &plainLines{w: p.Err, Backdrop: b, verbose: p.Verbose}
}

// Stream picks how wf watch shows a run, as the answer on stdout: as JSON lines, not at all, as a
// transcript on a terminal, else one line per event.
func (p *Printer) Stream(b Backdrop) Reporter {
	b.steers, b.Guest = map[string]bool{}, true
	switch {
	case p.Format == "json", p.Quiet && p.Format != "jsonl":
		return silence{}
	case p.Format == "jsonl":
		return &jsonLines{p: p, live: true}
	case p.Out.TTY:
		return &transcript{Backdrop: b, w: p.Out}
	}
	return &plainLines{w: p.Out, Backdrop: b}
}

// InActions reports whether wf runs in GitHub Actions.
func InActions() bool { return os.Getenv("GITHUB_ACTIONS") == "true" }

// unordered is a line that came from elsewhere. GitHub takes one that begins with :: for a command, which it must not be; a Screen
// sees to those with ##[ in them.
func unordered(line string) string {
	if InActions() && strings.HasPrefix(strings.TrimSpace(line), "::") {
		return strings.Replace(line, "::", ": :", 1)
	}
	return line
}

// Said shows a line that a check wrote.
func (p *Printer) Said(line string) { fmt.Fprintln(p.Err, unordered(Visible(line))) }

// Silent shows nothing of a run.
func Silent(Backdrop) Reporter { return silence{} }

type silence struct{}

func (silence) Notice(api.Update) {}
func (silence) Close()            {}

// jsonLines streams the events to stdout.
type jsonLines struct {
	p    *Printer
	live bool // live output too, which is no event: a frame of the replay protocol
}

func (j *jsonLines) Notice(n api.Update) {
	if n.Entry == nil {
		j.delta(n)
		return
	}
	e, err := NewEventJSON(n.Entry, n.Data)
	if err == nil {
		err = WriteLine(j.p.Out, e)
	}
	if err != nil {
		j.p.Progress("error: event %d was not shown: %v", n.Entry.Seq, err)
	}
}

func (j *jsonLines) delta(n api.Update) {
	d, ok := n.Data.(protocol.Delta)
	if !ok || !j.live {
		return
	}
	f := protocol.Frame{Type: protocol.FrameDelta, AfterSeq: n.After, Step: n.Step, N: n.N, Kind: d.Kind, Text: d.Text}
	b, err := f.Encode(protocol.JSONFrames)
	if err == nil {
		err = WriteLine(j.p.Out, json.RawMessage(b))
	}
	if err != nil {
		j.p.Progress("error: live output was not shown: %v", err)
	}
}

func (j *jsonLines) Close() {}

// plainLines writes one line per event, with its time, and with verbose what commands wrote.
type plainLines struct {
	Backdrop
	w       *Screen
	verbose bool
	last    *protocol.Entry
}

func (p *plainLines) Notice(n api.Update) {
	if n.Entry == nil {
		return
	}
	x := p.fold(n.Run, n.Step, n.Entry.TS, n.Data)
	lines := x.stamped(n.Entry, x.before)
	if x.own {
		if text := p.tell(n.Data); text != "" {
			lines = append(lines, eventLine(n.Entry, text))
			if p.verbose {
				lines = append(lines, p.wrote(n.Run, n.Step, n.Data)...)
			}
		}
	}
	for _, l := range append(lines, x.stamped(n.Entry, x.behind)...) {
		fmt.Fprintln(p.w, l)
	}
	p.last = n.Entry
}

// Close says how far the fan-outs came that have not ended.
func (p *plainLines) Close() { p.Fold.close(p.w, p.last) }

// eventLine is an event on a line of its own: time in UTC, step, what happened.
func eventLine(e *protocol.Entry, text string) string { return stamped(e, e.StepName(), text) }

// stamped is a line of the time of an event.
func stamped(e *protocol.Entry, step, text string) string {
	if step != "" {
		step += "  "
	}
	return stamp(e.TS) + "  " + step + text
}

// stamp is a time in UTC, as all times of a line that begins with one are.
func stamp(us int64) string { return time.UnixMicro(us).UTC().Format("2006-01-02T15:04:05.000Z") }

// groups writes each step as a foldable group of GitHub Actions once it is over: the lines of
// concurrent steps must not mix, and groups do not nest.
type groups struct {
	Backdrop
	w     *Screen
	lines map[string][]string // of the open steps
	tail  map[string]string   // an incomplete line of output
	last  *protocol.Entry
}

func (g *groups) Notice(n api.Update) {
	if delta, ok := n.Data.(protocol.Delta); ok {
		g.output(n.Step, delta.Text)
		return
	}
	if n.Entry == nil {
		return
	}
	x := g.fold(n.Run, n.Step, n.Entry.TS, n.Data)
	g.last = n.Entry
	for _, l := range x.stamped(n.Entry, x.before) {
		fmt.Fprintln(g.w, l)
	}
	defer func() {
		for _, l := range x.stamped(n.Entry, x.behind) {
			fmt.Fprintln(g.w, l)
		}
	}()
	if _, over := n.Data.(protocol.StepCompleted); over && !x.own {
		delete(g.lines, n.Step)
		delete(g.tail, n.Step)
		return
	}
	text := g.tell(n.Data)
	switch {
	case text == "":
		return
	case n.Step == "":
		fmt.Fprintln(g.w, eventLine(n.Entry, text))
		return
	}
	if g.tail[n.Step] != "" {
		g.output(n.Step, "\n")
	}
	g.lines[n.Step] = append(g.lines[n.Step], eventLine(n.Entry, text))
	switch d := n.Data.(type) {
	case protocol.StepCompleted:
		g.flush(n.Step, text)
		if d.Status == protocol.StepFailed {
			fmt.Fprintf(g.w, "::error title=%s::step %s failed\n", n.Step, n.Step)
		}
	case protocol.WaitingFor:
		if x.own {
			g.flush(n.Step, text)
		}
	}
}

// output gathers what a command or a model says, line by line.
func (g *groups) output(step, text string) {
	if g.tail == nil {
		g.tail = map[string]string{}
	}
	lines := strings.Split(g.tail[step]+Visible(text), "\n")
	g.tail[step] = lines[len(lines)-1]
	for _, l := range lines[:len(lines)-1] {
		g.lines[step] = append(g.lines[step], "  "+unordered(l))
	}
}

func (g *groups) flush(step, title string) {
	if g.tail[step] != "" {
		g.output(step, "\n")
	}
	fmt.Fprintf(g.w, "::group::%s  %s\n", step, title)
	for _, l := range g.lines[step] {
		fmt.Fprintln(g.w, l)
	}
	fmt.Fprintln(g.w, "::endgroup::")
	delete(g.lines, step)
	delete(g.tail, step)
}

func (g *groups) Close() {
	for step := range g.lines {
		if !g.Fold.folds(step) {
			g.flush(step, "not over")
		}
	}
	g.Fold.close(g.w, g.last)
}
