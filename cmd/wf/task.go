package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"wf/agentkit/price"
	"wf/agentkit/task"
	"wf/api"
	"wf/cas"
	"wf/cmd/internal/render"
	"wf/protocol"
	"wf/service/compose"
	"wf/service/query"
)

func newTask(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "task",
		Short: "Look at the tasks of a run",
		Long: `Look at the tasks of a run: the visits of agents with context: task. Each has a goal, a state, a cost of
its own, and as it completes a page in Markdown beside the store.`,
		Example: `  wf task ls -1
  wf task show -1:coder#2
  wf task export -1 --out pages`,
		Args: known,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.taskLs(), a.taskShow(), a.taskCostCommand(), a.taskExport())
	return cmd
}

func (a *app) taskLs() *cobra.Command {
	return &cobra.Command{
		Use:   "ls [RUN]",
		Short: "List the tasks of a run",
		Example: `  wf task ls
  wf task ls 7K3Q -o json | jq '.items[].goal'`,
		Args: takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.withRun(ctx, latestUnless(args), func(s *cas.Store, run protocol.RunID) error { return a.listTasks(ctx, s, run) })
		},
	}
}

func (a *app) taskShow() *cobra.Command {
	return &cobra.Command{
		Use:   "show [RUN[:STEP]]",
		Short: "Show a task as a page, the newest one of a run where none is named",
		Example: `  wf task show
  wf task show -1:coder#2`,
		Args: takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.WithStore(ctx, func(s *cas.Store) error { return a.showTask(ctx, s, latestUnless(args)) })
		},
	}
}

func (a *app) taskCostCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "cost [RUN]",
		Short:   "Tell what the tasks of a run used and cost; as wf cost --by task",
		Example: `  wf task cost -1`,
		Args:    takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.at(ctx, func(p *target) error { return a.cost(ctx, p, latestUnless(args), "task") })
		},
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
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.WithStore(ctx, func(s *cas.Store) error { return a.exportTasks(ctx, s, latestUnless(args), out) })
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "the directory to write to (default: tasks/RUN beside the store)")
	return cmd
}

// taskJSON is one task in wf.tasks/v1 and wf.task/v1.
type taskJSON struct {
	*task.Task
	Created   string       `json:"created"`
	Completed *string      `json:"completed"`
	Seconds   *int64       `json:"duration_s"`
	Cost      *api.CostRow `json:"cost"`
}

func newTaskJSON(t *task.Task, table price.Table) taskJSON {
	out := taskJSON{Task: t, Created: render.TimeText(t.Created)}
	_, out.Cost = query.CostOf(t.Calls, table)
	out.Cost.Name, out.Cost.Goal = "", ""
	if t.Completed > 0 {
		at, seconds := render.TimeText(t.Completed), (t.Completed-t.Created)/1e6
		out.Completed, out.Seconds = &at, &seconds
	}
	return out
}

func (a *app) listTasks(ctx context.Context, s *cas.Store, run protocol.RunID) error {
	table, err := a.Prices()
	if err != nil {
		return err
	}
	tasks, err := query.Tasks(ctx, s, run)
	if err != nil {
		return err
	}
	if a.AsJSON() {
		items := []taskJSON{}
		for _, t := range tasks {
			items = append(items, newTaskJSON(t, table))
		}
		return a.Answer(struct {
			Schema string         `json:"schema"`
			Run    protocol.RunID `json:"run"`
			Items  []taskJSON     `json:"items"`
		}{"wf.tasks/v1", run, items})
	}
	if len(tasks) == 0 {
		_, err := fmt.Fprintf(a.Out, "run %s has no tasks: an agent has them with context: task, or all with wf run --context task\n", run)
		return err
	}
	return a.taskTable(tasks, table)
}

func (a *app) taskTable(tasks []*task.Task, prices price.Table) error {
	p := a.Out.Paint()
	rows := [][]string{}
	completed := 0
	for _, t := range tasks {
		if t.Status == protocol.TaskCompleted {
			completed++
		}
		note := t.State
		if t.Status == protocol.TaskWaiting {
			note = "asks: " + t.Question
		}
		cost, _ := query.CostOf(t.Calls, prices)
		rows = append(rows, []string{taskSign(p, t), t.ID, render.Visible(t.Goal), task.Dollars(cost), t.Tokens().Short(), p.Dim(render.OneLine(note, 80))})
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

// taskNamed reads the tasks of a run and picks the one of a step.
func (a *app) taskNamed(ctx context.Context, s *cas.Store, arg string) (at api.Ref, tasks []*task.Task, picked *task.Task, err error) {
	if at, err = a.resolve(ctx, s, arg); err != nil {
		return at, nil, nil, err
	}
	if at.Block.Defined() {
		return at, nil, nil, usagef("%s is a block, a run or a task of one is wanted", written(arg))
	}
	if tasks, err = query.Tasks(ctx, s, at.Run); err != nil {
		return at, nil, nil, err
	}
	for _, t := range tasks {
		if t.ID == at.Step {
			picked = t
		}
	}
	if at.Step != "" && picked == nil {
		err = fail(protocol.ErrNotFound, "wf task ls "+string(at.Run)+" lists the tasks", "run %s has no task %s", at.Run, at.Step)
	}
	return at, tasks, picked, err
}

func (a *app) showTask(ctx context.Context, s *cas.Store, arg string) error {
	prices, err := a.Prices()
	if err != nil {
		return err
	}
	at, tasks, t, err := a.taskNamed(ctx, s, arg)
	if err != nil {
		return err
	}
	if t == nil {
		if len(tasks) == 0 {
			return fail(protocol.ErrNotFound, "an agent has tasks with context: task", "run %s has no tasks", at.Run)
		}
		t = tasks[len(tasks)-1]
	}
	if a.AsJSON() {
		return a.Answer(struct {
			Schema string         `json:"schema"`
			Run    protocol.RunID `json:"run"`
			taskJSON
		}{"wf.task/v1", at.Run, newTaskJSON(t, prices)})
	}
	cost, _ := query.CostOf(t.Calls, prices)
	page := t.Markdown(cost)
	if a.Out.TTY {
		page = render.Visible(page)
	}
	_, err = io.WriteString(a.Out, page)
	return err
}

func (a *app) exportTasks(ctx context.Context, s *cas.Store, arg, dir string) error {
	prices, err := a.Prices()
	if err != nil {
		return err
	}
	at, tasks, picked, err := a.taskNamed(ctx, s, arg)
	if err != nil {
		return err
	}
	if dir == "" {
		if dir, err = compose.TaskDir(s, at.Run); err != nil {
			return err
		}
	}
	files := []string{}
	for _, t := range tasks {
		if t != picked && (picked != nil || t.Status != protocol.TaskCompleted) {
			continue
		}
		file, err := compose.WriteTask(dir, t, prices)
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
