package chat

import (
	"cmp"
	"slices"

	tea "charm.land/bubbletea/v2"

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
