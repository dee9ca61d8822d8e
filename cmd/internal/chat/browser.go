package chat

import (
	"cmp"
	"fmt"

	"wf/cmd/internal/frame"
	"wf/cmd/internal/markdown"
	"wf/cmd/internal/plain"
	"wf/protocol"
)

// TaskPage is a task with what it used, and its page.
type TaskPage struct {
	Task
	Cost     string // $0.04
	Tokens   string // 5.7K in / 287 out
	Markdown string // the page, as wf task show writes it
}

// browser lists the tasks of a run and shows their pages.
type browser struct {
	tasks []TaskPage
	at    int // the chosen one
	top   int
	room  int     // rows of the list when it was drawn last
	page  *dialog // of the chosen one, nil is the list
}

// newBrowser shows the newest task of a list, or the page of the one that is named.
func newBrowser(tasks []TaskPage, named string) (*browser, error) {
	b := &browser{tasks: tasks, at: len(tasks) - 1}
	if named == "" {
		return b, nil
	}
	for i, x := range tasks {
		if x.ID == named {
			b.at = i
			b.open()
			return b, nil
		}
	}
	return nil, fmt.Errorf("there is no task %s; /task lists them", named)
}

func (b *browser) open() {
	x := b.tasks[b.at]
	text := plain.Text(x.Markdown)
	b.page = &dialog{title: taskMarks[x.Status] + " " + x.ID, text: func(width int) []string { return markdown.Lines(text, width) }}
}

func (b *browser) key(name string) (closed bool) {
	if b.page != nil {
		switch {
		case name == "left", name == "h":
			b.page = nil
		case b.page.key(name):
			b.page = nil
		}
		return false
	}
	switch name {
	case "esc", "q", "ctrl+c":
		return true
	case "enter", "right", "l", "space":
		b.open()
	case "up", "k":
		b.at--
	case "down", "j":
		b.at++
	case "pgup":
		b.at -= max(1, b.room-1)
	case "pgdown":
		b.at += max(1, b.room-1)
	case "home", "g":
		b.at = 0
	case "end", "G":
		b.at = len(b.tasks) - 1
	}
	b.at = max(0, min(b.at, len(b.tasks)-1))
	return false
}

func (b *browser) draw(width, height int) []string {
	if b.page != nil {
		return b.page.draw(width, height)
	}
	w, h := frame.Inside(width, height)
	b.room = h
	b.top = max(0, min(b.top, b.at, len(b.tasks)-h))
	if b.at >= b.top+h {
		b.top = b.at - h + 1
	}
	var idWidth, costWidth, tokensWidth, done int
	for _, x := range b.tasks {
		idWidth, costWidth, tokensWidth = max(idWidth, plain.Width(x.ID)), max(costWidth, len(x.Cost)), max(tokensWidth, len(x.Tokens))
		if x.Status == protocol.TaskCompleted {
			done++
		}
	}
	var lines []string
	for i := b.top; i < min(len(b.tasks), b.top+h); i++ {
		x := b.tasks[i]
		used := fmt.Sprintf("  %*s  %*s", costWidth, x.Cost, tokensWidth, x.Tokens)
		text := fmt.Sprintf("%s %s  %s", taskMarks[x.Status], plain.Pad(x.ID, idWidth), cmp.Or(plain.Line(plain.Text(x.Goal), protocol.TaskGoalMax), "…"))
		if room := w - plain.Width(used); room >= 20 {
			text = plain.Pad(plain.Cut(text, room, "…"), room) + used
		}
		text = plain.Pad(plain.Cut(text, w, "…"), w)
		if i == b.at {
			text = styleChosen.Render(text)
		}
		lines = append(lines, text)
	}
	f := frame.Frame{Title: styleQuestion.Render("Tasks") + fmt.Sprintf("  %d of %d completed", done, len(b.tasks)),
		Hint: styleDim.Render("↑↓ choose · Enter opens · Esc closes"), Style: styleDim}
	return f.Draw(lines, width, height)
}
