package render

import (
	"fmt"
	"strings"

	"wf/api"
	"wf/protocol"
)

// groups writes each step as a foldable group of GitHub Actions once it is over: the lines of
// concurrent steps must not mix, and groups do not nest.
type groups struct {
	Backdrop
	w     *Screen
	lines map[string][]string // of the open steps
	tail  map[string]string   // an incomplete line of output
}

func (g *groups) Notice(n api.Update) {
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
	lines := strings.Split(g.tail[step]+Visible(text), "\n")
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

func (g *groups) Close() {
	for step := range g.lines {
		g.flush(step, "not over")
	}
}
