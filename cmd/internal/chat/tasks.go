package chat

import (
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
func (t *Transcript) task(e protocol.WireEvent, step string, d data) {
	x := t.Tasks.named(step)
	switch e.Type {
	case protocol.EvTaskStarted:
		x.Goal = plain.Text(string(d.Goal))
	case protocol.EvTaskStateUpdated:
		x.State = plain.Text(string(d.State))
	case protocol.EvTaskWaiting:
		x.Status = protocol.TaskWaiting
	case protocol.EvTaskCompleted:
		x.Status = protocol.TaskCompleted
		t.closeReply(step)
		if text := plain.Text(string(d.Final)); text != "" && !t.said(step, text) {
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
