package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"wf/agentkit/price"
	"wf/agentkit/task"
	"wf/cas"
	"wf/engine"
	"wf/files"
	"wf/protocol"
)

// tasksDir is where the pages of completed tasks lie, beside the store: tasks/RUN/STEP.md.
const tasksDir = "tasks"

// taskPages writes a page for each task that is completed while this process looks on. What is
// missing, after a crash for example, wf task export writes.
type taskPages struct {
	work sync.WaitGroup

	mu   sync.Mutex
	runs map[protocol.RunID]*taskReader
}

// keepTasks has a page written for each completed task that the engine tells of, and passes
// everything on to watch, which may be nil.
func (a *app) keepTasks(s *cas.Store, watch func(engine.Notice)) func(engine.Notice) {
	return func(n engine.Notice) {
		if watch != nil {
			watch(n)
		}
		if _, done := n.Data.(protocol.TaskDone); done && n.Entry != nil {
			a.pages.work.Go(func() {
				if err := a.pages.write(a, s, n.Run, n.Step); err != nil {
					a.progress("warning: the page of task %s was not written: %v; wf task export %s writes it", n.Step, err, n.Run)
				}
			})
		}
	}
}

// wait returns when all pages are written.
func (p *taskPages) wait() { p.work.Wait() }

// write writes the page of one task. The journal is read on from where it was read to before.
func (p *taskPages) write(a *app, s *cas.Store, run protocol.RunID, step string) error {
	table, err := a.prices()
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.runs[run]
	if r == nil {
		if p.runs == nil {
			p.runs = map[protocol.RunID]*taskReader{}
		}
		r = &taskReader{}
		p.runs[run] = r
	}
	// A run that is being suspended must not lose its pages.
	ctx := context.Background()
	if err := r.read(ctx, a.taskEngine(s), s, run); err != nil {
		delete(p.runs, run) // read from the beginning next time
		return err
	}
	t := r.fold.Of(step)
	if t == nil {
		return fmt.Errorf("run %s has no task %s: %w", run, step, protocol.ErrNotFound)
	}
	dir, err := taskDir(s, run)
	if err == nil {
		_, err = writeTask(dir, t, table)
	}
	r.fold.Forget(step)
	return err
}

// taskEngine only decodes events.
func (a *app) taskEngine(s *cas.Store) *engine.Engine { return &engine.Engine{Store: s} }

// taskDir makes the directory of the pages of a run. A store may come from elsewhere: no link in it is followed.
func taskDir(s *cas.Store, run protocol.RunID) (string, error) {
	dir := filepath.Join(s.Dir(), tasksDir)
	if err := files.MakeDir(dir); err != nil {
		return "", err
	}
	dir = filepath.Join(dir, string(run))
	return dir, files.MakeDir(dir)
}

// taskReader folds the tasks of a run.
type taskReader struct {
	fold task.Fold
	seq  protocol.Seq
}

// ofTasks are the event types that tell of tasks.
var ofTasks = map[protocol.EventType]bool{
	protocol.EvTaskStarted: true, protocol.EvTaskStateUpdated: true, protocol.EvTaskWaiting: true, protocol.EvTaskCompleted: true,
	protocol.EvStepStarted: true, protocol.EvStepCompleted: true, protocol.EvAnswered: true, protocol.EvUsage: true,
}

// read goes on to the newest event.
func (r *taskReader) read(ctx context.Context, e *engine.Engine, s protocol.Source, run protocol.RunID) error {
	for x, err := range s.After(ctx, run, r.seq) {
		if err != nil {
			return err
		}
		if err := r.take(x, func() (engine.Notice, error) { return e.Notice(ctx, run, x) }); err != nil {
			return err
		}
	}
	return nil
}

// take takes the next event in; notice decodes it, which is asked only for what tells of tasks.
func (r *taskReader) take(x protocol.Entry, notice func() (engine.Notice, error)) error {
	r.seq = x.Seq
	if !ofTasks[x.Type] || x.Type != protocol.EvTaskStarted && r.fold.Of(x.StepName()) == nil {
		return nil
	}
	n, err := notice()
	if err != nil {
		return fmt.Errorf("event %d: %w", x.Seq, err)
	}
	r.fold.Add(x.StepName(), x.TS, n.Data)
	return nil
}

// tasksOf reads all tasks of a run.
func (a *app) tasksOf(ctx context.Context, s *cas.Store, run protocol.RunID) ([]*task.Task, error) {
	var r taskReader
	if err := r.read(ctx, a.taskEngine(s), s, run); err != nil {
		return nil, fmt.Errorf("tasks of run %s: %w", run, err)
	}
	return r.fold.Tasks, nil
}

// taskCost is what the calls of a task cost, in pico-dollars, and as a row of costs.
func taskCost(t *task.Task, table price.Table) (*int64, *costRow) {
	row := &costRow{Name: t.ID, Goal: t.Goal}
	for _, u := range t.Calls {
		row.add(u, table)
	}
	row.sum()
	if row.CostUSD == nil {
		return nil, row
	}
	return &row.pico, row
}

// writeTask writes the page of a task into a directory. A page that is there keeps its old
// content until the new one is complete.
func writeTask(dir string, t *task.Task, table price.Table) (path string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(dir, ".task-*")
	if err != nil {
		return "", err
	}
	cost, _ := taskCost(t, table)
	_, err = f.WriteString(t.Markdown(cost))
	err = errors.Join(err, f.Close())
	path = filepath.Join(dir, t.ID+".md")
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return path, nil
}
