package chat

import (
	"cmp"
	"fmt"
	"slices"

	tea "charm.land/bubbletea/v2"

	"wf/cmd/internal/frame"
	"wf/cmd/internal/markdown"
	"wf/cmd/internal/plain"
	"wf/protocol"
)

// Task is a task as the side bar shows it.
type Task struct {
	ID     string
	Goal   string
	State  string
	Status protocol.TaskStatus
}

// taskMarks are the signs of where a task stands.
var taskMarks = map[protocol.TaskStatus]string{protocol.TaskActive: "▶", protocol.TaskWaiting: "⏸", protocol.TaskCompleted: "✓"}

// TaskList are the tasks of a run, oldest first.
type TaskList []*Task

// Done counts the completed ones.
func (l TaskList) Done() (n int) {
	for _, x := range l {
		if x.Status == protocol.TaskCompleted {
			n++
		}
	}
	return n
}

// Current is the newest task that is not completed, or nil.
func (l TaskList) Current() *Task {
	for i := len(l) - 1; i >= 0; i-- {
		if l[i].Status != protocol.TaskCompleted {
			return l[i]
		}
	}
	return nil
}

// named finds the task of a step. One that began on an older page has no goal here.
func (l *TaskList) named(step string) *Task {
	for i := len(*l) - 1; i >= 0; i-- {
		if (*l)[i].ID == step {
			return (*l)[i]
		}
	}
	x := &Task{ID: step, Status: protocol.TaskActive}
	*l = append(*l, x)
	return x
}

// task folds the events of a task.
func (t *Transcript) task(e *protocol.Entry, step string, d protocol.Data) {
	x := t.Tasks.named(step)
	switch d := d.(type) {
	case protocol.TaskStarted:
		x.Goal = plain.Text(d.Goal)
	case protocol.TaskStateUpdated:
		x.State = plain.Text(d.State.S)
	case protocol.TaskWaitingOn:
		x.Status = protocol.TaskWaiting
	case protocol.TaskDone:
		x.Status = protocol.TaskCompleted
		t.closeReply(step)
		if text := plain.Text(d.FinalResponse.S); text != "" && !t.said(step, text) {
			t.add(&Item{Kind: Reply, Seq: e.Seq, Step: step, Text: text})
		}
	}
}

// said reports whether the newest reply of a step is text.
func (t *Transcript) said(step, text string) bool {
	for i := len(t.Items) - 1; i >= 0; i-- {
		if it := t.Items[i]; it.Kind == Reply && it.Step == step {
			return it.Text == text
		}
	}
	return false
}

// gotTasks are all tasks of the run; show says that they were asked for.
type gotTasks struct {
	epoch int
	tasks []TaskPage
	show  bool
	named string
	err   error
}

// readTasks reads all tasks of the run, to show them, or to know those of older pages.
func (a *App) readTasks(show bool, named string) tea.Cmd {
	epoch, ctx, session := a.epoch, a.ctx, a.session
	if show {
		a.said = ""
	}
	return func() tea.Msg {
		tasks, err := session.Tasks(ctx)
		return gotTasks{epoch, tasks, show, named, err}
	}
}

func (a *App) gotTasks(m gotTasks) {
	switch {
	case m.epoch != a.epoch:
		return
	case m.err != nil:
		a.said = "tasks: " + plain.Line(plain.Text(m.err.Error()), 300)
		return
	}
	a.past = m.tasks
	switch {
	case !m.show:
	case len(m.tasks) == 0:
		a.said = "this run has no tasks; wf chat --context task makes each message one"
	default:
		b, err := newBrowser(m.tasks, m.named)
		if err != nil {
			a.said = plain.Line(plain.Text(err.Error()), 300)
			return
		}
		a.panel = b
	}
}

// tasks are all tasks that are known: those of the pages that were read, behind those that
// began before them.
func (a *App) tasks() TaskList {
	if len(a.past) == 0 {
		return a.t.Tasks
	}
	var all TaskList
	read := slices.Clone(a.t.Tasks)
	for i := range a.past {
		x := &a.past[i].Task
		at := slices.IndexFunc(read, func(y *Task) bool { return y.ID == x.ID })
		if at < 0 {
			all = append(all, x)
			continue
		}
		if read[at].Goal == "" {
			y := *read[at]
			y.Goal, y.State = x.Goal, cmp.Or(y.State, x.State)
			read[at] = &y
		}
	}
	return append(all, read...)
}

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

// sideLines are the tasks in a column: the current one, its state, how many are completed, and
// those before.
func sideLines(tasks TaskList, height int) []string {
	out := []string{" " + styleQuestion.Render("Task"), ""}
	text := func(s string, style func(...string) string) {
		for _, l := range plain.Wrap(s, sideWidth-2) {
			out = append(out, " "+style(l))
		}
	}
	current := tasks.Current()
	if current != nil {
		text(taskMarks[current.Status]+" "+cmp.Or(current.Goal, current.ID), styleQuestion.Render)
		if current.State != "" {
			out = append(out, "")
			text(current.State, plainStyle)
		}
	} else {
		text("none at work", styleDim.Render)
	}
	out = append(out, "")
	text(fmt.Sprintf("✓ %d completed", tasks.Done()), styleWaits.Render)
	out = append(out, "")
	for i := len(tasks) - 1; i >= 0 && len(out) < height; i-- {
		if x := tasks[i]; x != current {
			out = append(out, " "+styleDim.Render(plain.Cut(taskMarks[x.Status]+" "+plain.Line(cmp.Or(x.Goal, x.ID), sideWidth), sideWidth-2, "…")))
		}
	}
	if len(out) > height {
		out = out[:height]
	}
	if n := len(tasks); n > 1 && height > 0 && len(out) == height {
		out[height-1] = " " + styleDim.Render("… /task browses all")
	}
	return out
}
