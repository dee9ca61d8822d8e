package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"

	"wf/api"
	"wf/cas"
	"wf/protocol"
)

// A reporter shows a run while it is driven. notice is called for one event after the other;
// close is called once, before the answer is written.
type reporter interface {
	notice(api.Update)
	close()
}

// newReporter picks how progress is shown: as JSON lines on stdout, not at all, live on a
// terminal, in groups in GitHub Actions, else one line per event.
func (a *app) newReporter(b backdrop) reporter {
	switch {
	case a.format == "jsonl":
		return &jsonLines{a: a}
	case a.quiet:
		return silence{}
	case a.err.tty:
		return newLive(a.err, b)
	case inActions():
		return &groups{w: a.err, backdrop: b, lines: map[string][]string{}}
	}
	return &plainLines{w: a.err, backdrop: b, verbose: a.Verbose, fold: a.newFolder()}
}

// inActions reports whether wf runs in GitHub Actions.
func inActions() bool { return os.Getenv("GITHUB_ACTIONS") == "true" }

// A backdrop is what a reporter looks up beside the events: the edges of the workflow, and the
// records of the steps.
type backdrop struct {
	ctx    context.Context
	blocks protocol.Blocks
	edges  []protocol.Edge
	steers map[string]bool // calls by which agents steer their tasks: task events tell the same
	guest  bool            // another process drives the run: whoever leaves does not stop it
}

// leaving says what Ctrl-C does.
func (b backdrop) leaving() string {
	if b.guest {
		return "Ctrl-C leaves, the run goes on"
	}
	return "Ctrl-C suspends safely"
}

// tell is tell, with how a command ended.
func (b backdrop) tell(d protocol.Data) string {
	switch d := d.(type) {
	case protocol.ToolCall:
		steers := protocol.IsTaskControl(d.Name)
		if b.steers != nil {
			b.steers[d.Call] = steers // ids of calls may repeat between steps
		}
		if steers {
			return ""
		}
	case protocol.ToolResult:
		if b.steers[d.Call] && !d.IsError {
			return ""
		}
	}
	if done, ok := d.(protocol.StepCompleted); ok {
		return strings.TrimSpace(tell(d) + "  " + b.exit(done))
	}
	return tell(d)
}

// exit is "exit 1" for the step of a command, "" for others.
func (b backdrop) exit(d protocol.StepCompleted) string {
	code, _ := b.command(d)
	if code == nil {
		return ""
	}
	return fmt.Sprintf("exit %d", *code)
}

// command is how the step of a command ended and what it wrote; a nil code is no command. A
// record that cannot be read is no reason to stop the run: wf verify tells of it.
func (b backdrop) command(d protocol.StepCompleted) (code *int, wrote func() string) {
	var record protocol.StepRecord
	raw, err := b.blocks.Block(b.ctx, d.Record)
	if err != nil || cas.Decode(raw, &record) != nil || !record.Data.Defined() {
		return nil, nil
	}
	data, err := protocol.ReadPayload(b.ctx, b.blocks, record.Data)
	var fields struct {
		ExitCode *int `json:"exit_code"`
	}
	if err != nil || json.Unmarshal(data, &fields) != nil || fields.ExitCode == nil {
		return nil, nil
	}
	return fields.ExitCode, func() string {
		text, err := protocol.ReadPayload(b.ctx, b.blocks, record.Output)
		if err != nil || !record.Output.Defined() {
			return ""
		}
		return string(text)
	}
}

// wroteLines is how much of what a command wrote stands below its step, its end.
const wroteLines = 20

// wrote are the lines that a command wrote, the last ones; the first one then says how many are
// left out, and what shows them.
func (b backdrop) wrote(run protocol.RunID, step string, data protocol.Data) []string {
	d, ok := data.(protocol.StepCompleted)
	if !ok {
		return nil
	}
	code, text := b.command(d)
	if code == nil {
		return nil
	}
	said := strings.TrimRight(visible(text()), "\n")
	if said == "" {
		return nil
	}
	lines := strings.Split(said, "\n")
	if left := len(lines) - wroteLines; left > 0 {
		lines = append([]string{fmt.Sprintf("… %s before: wf log %s:%s", protocol.Plural(left, "line"), run, step)}, lines[left:]...)
	}
	for i, l := range lines {
		lines[i] = "    " + l
	}
	return lines
}

// way is the edge by which a step was entered: "test → coder".
func (b backdrop) way(d protocol.StepStarted) string {
	if d.Edge < 0 || d.Edge >= len(b.edges) {
		return d.Role
	}
	return strings.Join(b.edges[d.Edge].From, "+") + " → " + d.Role
}

type silence struct{}

func (silence) notice(api.Update) {}
func (silence) close()            {}

// jsonLines streams the events to stdout.
type jsonLines struct {
	mu   sync.Mutex
	a    *app
	live bool // live output too, which is no event: a frame of the replay protocol
}

func (j *jsonLines) notice(n api.Update) {
	if n.Entry == nil {
		j.delta(n)
		return
	}
	e, err := newEventJSON(n.Entry, n.Data)
	j.mu.Lock()
	defer j.mu.Unlock()
	if err == nil {
		err = line(j.a.out, e)
	}
	if err != nil {
		j.a.progress("error: event %d was not shown: %v", n.Entry.Seq, err)
	}
}

func (j *jsonLines) delta(n api.Update) {
	d, ok := n.Data.(protocol.Delta)
	if !ok || !j.live {
		return
	}
	f := protocol.Frame{Type: protocol.FrameDelta, AfterSeq: n.After, Step: n.Step, N: n.N, Kind: d.Kind, Text: d.Text}
	b, err := f.Encode(protocol.JSONFrames)
	j.mu.Lock()
	defer j.mu.Unlock()
	if err == nil {
		err = line(j.a.out, json.RawMessage(b))
	}
	if err != nil {
		j.a.progress("error: live output was not shown: %v", err)
	}
}

func (j *jsonLines) close() {}

// plainLines writes one line per event, with its time, and with verbose what commands wrote.
type plainLines struct {
	backdrop
	mu      sync.Mutex
	w       *screen
	verbose bool
	fold    *folder
}

func (p *plainLines) notice(n api.Update) {
	if n.Entry == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	own, lines, behind := p.fold.take(n.Entry, n.Data, p.exit)
	if own {
		if text := p.tell(n.Data); text != "" {
			lines = append(lines, eventLine(n.Entry, text))
			if p.verbose {
				lines = append(lines, p.wrote(n.Run, n.Step, n.Data)...)
			}
		}
	}
	for _, l := range append(lines, behind...) {
		fmt.Fprintln(p.w, l)
	}
}

func (p *plainLines) close() {}

// eventLine is an event on a line of its own: time in UTC, step, what happened.
func eventLine(e *protocol.Entry, text string) string { return stamped(e, e.StepName(), text) }

// stamped is a line of the time of an event.
func stamped(e *protocol.Entry, step, text string) string {
	if step != "" {
		step += "  "
	}
	return e.Time().Format("2006-01-02T15:04:05.000Z") + "  " + step + text
}

// groups writes each step as a foldable group of GitHub Actions once it is over: the lines of
// concurrent steps must not mix, and groups do not nest.
type groups struct {
	backdrop
	mu    sync.Mutex
	w     *screen
	lines map[string][]string // of the open steps
	tail  map[string]string   // an incomplete line of output
}

func (g *groups) notice(n api.Update) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if delta, ok := n.Data.(protocol.Delta); ok {
		g.output(n.Step, delta.Text)
		return
	}
	text := g.tell(n.Data)
	switch {
	case n.Entry == nil || text == "":
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
		g.flush(n.Step, text)
	}
}

// output gathers what a command or a model says, line by line. A line that looks like a
// workflow command of GitHub must not be one.
func (g *groups) output(step, text string) {
	if g.tail == nil {
		g.tail = map[string]string{}
	}
	lines := strings.Split(g.tail[step]+visible(text), "\n")
	g.tail[step] = lines[len(lines)-1]
	for _, l := range lines[:len(lines)-1] {
		g.lines[step] = append(g.lines[step], "  "+strings.ReplaceAll(l, "::", ": :"))
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

func (g *groups) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for step := range g.lines {
		g.flush(step, "not over")
	}
}
