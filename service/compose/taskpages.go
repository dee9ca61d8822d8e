package compose

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"wf/api"
	"wf/engine"
	"wf/files"
	"wf/protocol"
	"wf/service/query"
	"wf/store"
)

// TasksDir is where the pages of completed tasks lie, beside the store: tasks/RUN/STEP.md.
const TasksDir = "tasks"

// taskPages writes a page for each task that is completed while this process looks on. What is
// missing, after a crash for example, wf task export writes.
type taskPages struct {
	work sync.WaitGroup

	mu   sync.Mutex
	runs map[protocol.RunID]*query.TaskReader
}

// keepTasks has a page written for each completed task that the engine tells of, and passes
// everything on to watch, which may be nil.
func (u *Setup) keepTasks(s store.Store, watch func(api.Update)) func(api.Update) {
	return func(n api.Update) {
		if watch != nil {
			watch(n)
		}
		if _, done := n.Data.(protocol.TaskDone); done && n.Entry != nil {
			u.pages.work.Go(func() {
				if err := u.pages.write(u, s, n.Run, n.Step); err != nil {
					u.warnf("the page of task %s was not written: %v; wf task export %s writes it", n.Step, err, protocol.ShellWord(string(n.Run)))
				}
			})
		}
	}
}

// write writes the page of one task. The journal is read on from where it was read to before.
func (p *taskPages) write(u *Setup, s store.Store, run protocol.RunID, step string) error {
	table, err := u.Prices()
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.runs[run]
	if r == nil {
		if p.runs == nil {
			p.runs = map[protocol.RunID]*query.TaskReader{}
		}
		r = &query.TaskReader{}
		p.runs[run] = r
	}
	// A run that is being suspended must not lose its pages.
	ctx := context.Background()
	if err := r.Read(ctx, &engine.Engine{Store: s}, s, run); err != nil {
		delete(p.runs, run) // read from the beginning next time
		return err
	}
	t := r.Of(step)
	if t == nil {
		return fmt.Errorf("run %s has no task %s: %w", run, step, protocol.ErrNotFound)
	}
	dir, err := TaskDir(s, run)
	if err == nil {
		cost, _ := query.CostOf(t.Calls, table)
		_, err = WriteTask(dir, t.ID, t.Markdown(cost))
	}
	r.Forget(step)
	return err
}

// TaskDir makes the directory of the pages of a run. A store may come from elsewhere: no link in it is followed.
func TaskDir(s store.Store, run protocol.RunID) (string, error) {
	dir := filepath.Join(s.Beside(), TasksDir)
	if err := files.MakeDir(dir); err != nil {
		return "", err
	}
	dir = filepath.Join(dir, string(run))
	return dir, files.MakeDir(dir)
}

// WriteTask writes the page of a task into a directory. A page that is there keeps its old
// content until the new one is complete. The id may come from elsewhere: one that leads out of the directory is
// an error wrapping protocol.ErrCorrupt.
func WriteTask(dir, id, page string) (path string, err error) {
	if id == "" || strings.ContainsAny(id, "/\\\x00") {
		return "", fmt.Errorf("the id %.80q of a task is no name for a file: %w", id, protocol.ErrCorrupt)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	path = filepath.Join(dir, id+".md")
	return path, files.ReplaceSoon(path, []byte(page))
}
