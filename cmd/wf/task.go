package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"wf/agentkit/task"
	"wf/api"
	"wf/cmd/internal/render"
	"wf/protocol"
	"wf/service/compose"
	"wf/service/query"
)

func newTask(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "task",
		Short: "Look at the tasks of a run",
		Long: `Look at the tasks of a run: the visits of agents with context: task. Each has a goal, a state, a cost of
its own, and as it completes a page in Markdown beside the store.`,
		Example: `  wf task ls -1
  wf task show -1:coder#2
  wf task export -1 --out pages`,
	}, a.taskLs(), a.taskShow(), a.taskCost(), a.taskExport())
}

func (a *app) taskLs() *cobra.Command {
	return &cobra.Command{
		Use:   "ls [RUN]",
		Short: "List the tasks of a run",
		Example: `  wf task ls
  wf task ls 7K3Q -o json | jq '.items[].goal'`,
		Args: takes(0, 1),
		RunE: a.ofRun(func(ctx context.Context, p *target, run protocol.RunID) error {
			list, err := p.Tasks(ctx, run, api.Part{})
			return answer(a, list, err, func(list *api.TaskList) error {
				if len(list.Items) == 0 {
					_, err := fmt.Fprintf(a.Out, "run %s has no tasks: an agent has them with context: task, or all with wf run --context task\n", run)
					return err
				}
				return a.taskTable(list.Items)
			})
		}),
	}
}

func (a *app) taskShow() *cobra.Command {
	return &cobra.Command{
		Use:   "show [RUN[:STEP]]",
		Short: "Show a task as a page, the newest one of a run where none is named",
		Example: `  wf task show
  wf task show -1:coder#2`,
		Args: takes(0, 1),
		RunE: a.inTarget(func(ctx context.Context, p *target, args []string) error {
			t, err := a.taskNamed(ctx, p, latestUnless(args))
			return answer(a, t, err, func(t *api.RunTask) error {
				shown, err := query.TaskPageOf(t.Task)
				if err != nil {
					return err
				}
				page := shown.Markdown()
				if a.Out.TTY {
					page = render.Visible(page)
				}
				_, err = io.WriteString(a.Out, page)
				return err
			})
		}),
	}
}

func (a *app) taskCost() *cobra.Command {
	return &cobra.Command{
		Use:     "cost [RUN]",
		Short:   "Tell what the tasks of a run used and cost; as wf cost --by task",
		Example: `  wf task cost -1`,
		Args:    takes(0, 1),
		RunE:    a.cost(new("task")),
	}
}

func (a *app) taskExport() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "export [RUN[:STEP]]",
		Short: "Write completed tasks as Markdown",
		Long: `Write the completed tasks of a run as Markdown, one file each, into --out, or beside the store, where they
are written as they complete. A task that is named is written also while it is open.`,
		Example: `  wf task export -1
  wf task export -1:coder#2 --out pages`,
		Args: takes(0, 1),
		RunE: a.inTarget(func(ctx context.Context, p *target, args []string) error {
			return a.exportTasks(ctx, p, latestUnless(args), out)
		}),
	}
	cmd.Flags().StringVar(&out, "out", "", "the directory to write to (default: tasks/RUN beside the store)")
	return cmd
}

func (a *app) taskTable(tasks []*api.Task) error {
	rows := [][]string{}
	completed := 0
	for _, x := range tasks {
		t, err := query.TaskPageOf(x)
		if err != nil {
			return err
		}
		if t.Status == protocol.TaskCompleted {
			completed++
		}
		note := t.State
		if t.Status == protocol.TaskWaiting {
			note = "asks: " + t.Question
		}
		rows = append(rows, []string{taskSign(a.Out.Paint, t.Task), render.Visible(t.ID), render.Visible(t.Goal), task.Dollars(t.Cost), t.Tokens().Short(), a.Out.Dim(render.OneLine(note, 80))})
	}
	if err := render.Table(a.Out, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.Out, "%d of %s completed\n", completed, protocol.Plural(len(tasks), "task"))
	return err
}

// taskSign is how a task stands.
func taskSign(p render.Paint, t *task.Task) string {
	switch sign := t.Sign(); sign {
	case "✓":
		return p.Green(sign)
	case "⏸":
		return p.Yellow(sign)
	case "✗":
		return p.Red(sign)
	default:
		return p.Cyan(sign)
	}
}

// taskNamed is the task of a step that the user wrote, and the newest one of a run.
func (a *app) taskNamed(ctx context.Context, p *target, arg string) (*api.RunTask, error) {
	at, err := p.runOrStep(ctx, arg)
	if err != nil {
		return nil, err
	}
	if at.Step != "" {
		return p.Task(ctx, at.Run, at.Step)
	}
	list, err := p.Tasks(ctx, at.Run, api.Part{})
	if err != nil {
		return nil, err
	}
	if len(list.Items) == 0 {
		return nil, protocol.ErrNotFound.With("an agent has tasks with context: task", "run %s has no tasks", at.Run)
	}
	return &api.RunTask{Schema: "wf.task/v1", Run: at.Run, Task: list.Items[len(list.Items)-1]}, nil
}

func (a *app) exportTasks(ctx context.Context, p *target, arg, dir string) error {
	at, err := p.runOrStep(ctx, arg)
	if err != nil {
		return err
	}
	var tasks []*api.Task
	if at.Step != "" {
		t, err := p.Task(ctx, at.Run, at.Step)
		if err != nil {
			return err
		}
		tasks = append(tasks, t.Task)
	} else {
		list, err := p.Tasks(ctx, at.Run, api.Part{})
		if err != nil {
			return err
		}
		tasks = slices.DeleteFunc(list.Items, func(t *api.Task) bool { return t.Status != protocol.TaskCompleted })
	}
	switch {
	case dir != "":
	case p.here == nil:
		return usagef("the store of run %s is at %s: --out DIR names the directory on this machine to write to", at.Run, p.name)
	default:
		if dir, err = compose.TaskDir(p.here.Store, at.Run); err != nil {
			return err
		}
	}
	files := []string{}
	for _, t := range tasks {
		page, err := query.TaskPageOf(t)
		if err != nil {
			return err
		}
		file, err := compose.WriteTask(dir, t.ID, page.Markdown())
		if err != nil {
			return fmt.Errorf("export task %s: %w", t.ID, err)
		}
		files = append(files, file)
	}
	if a.AsJSON() {
		return a.Answer(struct {
			Schema string         `json:"schema"`
			Run    protocol.RunID `json:"run"`
			Files  []string       `json:"files"`
		}{"wf.tasks_exported/v1", at.Run, files})
	}
	for _, f := range files {
		if _, err := fmt.Fprintln(a.Out, f); err != nil {
			return err
		}
	}
	if len(files) == 0 {
		a.Progress("run %s has no completed tasks", at.Run)
	}
	return nil
}
