package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"wf/agentkit/task"
	"wf/api"
	"wf/cmd/internal/chat"
	"wf/daemon"
	"wf/engine"
	"wf/protocol"
	"wf/service"
	"wf/service/compose"
	"wf/service/query"
	"wf/store"
)

// chatFlags are how a chat begins.
type chatFlags struct {
	run  runFlags
	last bool
}

func newChat(a *app) *cobra.Command {
	var f chatFlags
	cmd := &cobra.Command{
		Use:   "chat [FILE | FILE:ROLE | RUN]",
		Short: "Talk with an agent in the terminal",
		Long: `Talk with an agent in the terminal. A chat is a run of a workflow in which a person and an agent take turns:
it resumes after a crash, forks at every answer, and is replayed and proved like any other.

Without an argument it is the workflow that comes with wf. FILE is one of your own; FILE:ROLE talks with one
agent of it; RUN goes on with a run, be it a chat or not. /help lists the commands.`,
		Example: `  wf chat
  wf chat --model anthropic/claude-sonnet-4-5

  # the newest chat goes on
  wf chat --continue

  # one agent of a workflow, each message a task of its own
  wf chat review.yaml:critic --context task`,
		Args: takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			arg := strings.Join(args, "") // there is one, or none
			if err := a.wantsTerminal("chat", "wf run and wf answer"); err != nil {
				return err
			}
			if url := a.hubURL(); url != "" {
				return a.atServer(url, func(p *target) error { return a.chatThere(cmd.Context(), p, arg, f) })
			}
			return a.WithNewStore(cmd.Context(), func(s store.Store) error { return a.chatOn(cmd.Context(), s, arg, f) })
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&f.last, "continue", "c", false, "go on with the newest chat")
	flags.StringArrayVarP(&f.run.inputs, "input", "i", nil, "an input of the workflow: name=value, or name=@file")
	flags.StringVar(&f.run.Context, "context", "", "how the agent sees its past: conversation, task or fresh")
	a.beginFlags(flags, &f.run)
	return cmd
}

// chatOn drives the chat in this process.
func (a *app) chatOn(ctx context.Context, s store.Store, arg string, f chatFlags) error {
	return daemon.Private(a.Setup, s, f.run.dir, func(d *daemon.Daemon) error {
		run, word, err := a.chatRun(ctx, d, arg, f)
		if err != nil {
			return err
		}
		at := a.chatHere(d)
		at.Word = word
		return a.chatScreen(ctx, at, run)
	})
}

// chatHere is where the runs of a daemon in this process are.
func (a *app) chatHere(d *daemon.Daemon) chat.Place {
	at := chatAt(d.Service, d)
	at.Near, at.Dump = d.Service, func(ctx context.Context, scope, path string) error {
		return a.memoryDump(ctx, d.Service, scope, []string{path})
	}
	at.Files, at.Models, at.Drives = newChatFiles, a.chatModels, d.Supervisor.Drives
	at.TakeUp = func(ctx context.Context, run protocol.RunID) (protocol.RunID, string, error) {
		return a.takesUp(ctx, d, run, nil)
	}
	return at
}

// chatAt is where a service and a follower find the runs.
func chatAt(s api.Service, f api.Follower) chat.Place {
	return chat.Place{Service: s, Follower: f, Me: compose.User(),
		Tasks: func(ctx context.Context, run protocol.RunID) ([]chat.TaskPage, error) {
			return chatTasks(ctx, s, run)
		}}
}

// chatThere talks with an agent of a server: a run of it, or a new one of a workflow that it serves.
func (a *app) chatThere(ctx context.Context, p *target, arg string, f chatFlags) error {
	if arg == "" {
		return usagef("name a run of %s, or a workflow that it serves: wf ls --hub %s lists runs", p.name, p.name)
	}
	run, err := p.run(ctx, arg)
	if errors.Is(err, protocol.ErrUnknownRun) {
		run, _, err = p.Start(ctx, api.Start{Workflow: arg, Type: service.ChatType, CreatedBy: compose.User(), Context: f.run.Context, Models: chosenModels(f.run.models)})
	}
	if err != nil {
		return err
	}
	return a.chatScreen(ctx, chatAt(p.Service, p.Follower), run)
}

// chatRun finds or begins the run of a chat, and has it driven. Restoring of files in its workspace that was interrupted is ended
// before; word tells that.
func (a *app) chatRun(ctx context.Context, d *daemon.Daemon, arg string, f chatFlags) (run protocol.RunID, word string, err error) {
	def, isRun, err := a.chatDefinition(arg, f.last)
	if err != nil {
		return "", "", err
	}
	if isRun {
		run, err := a.chatToContinue(ctx, d, arg, f.last)
		if err != nil {
			return "", "", err
		}
		return a.takesUp(ctx, d, run, a.restored())
	}
	ended, err := d.Service.SettleFiles(ctx, d.Service.Dir, a.restored())
	if err != nil {
		return "", "", err
	}
	run, err = a.chatBegun(ctx, d, def, f)
	return run, chat.ToldSettled(ended), err
}

// takesUp has a run driven, once a restoring of files in its workspace that was interrupted is ended: now is the run in which the
// conversation goes on.
func (a *app) takesUp(ctx context.Context, d *daemon.Daemon, run protocol.RunID, each func(done, of int)) (now protocol.RunID, word string, err error) {
	settled, err := d.Service.SettleChat(ctx, run, "", each)
	if err != nil {
		return "", "", err
	}
	st, err := d.Service.Engine.State(ctx, settled.Run)
	if err == nil {
		err = d.Service.Engine.MayDrive(settled.Run, st, engine.DriveOptions{})
	}
	if err != nil {
		return "", "", err
	}
	d.Supervisor.Keep(settled.Run, engine.DriveOptions{By: compose.User()})
	return settled.Run, chat.ToldSettled(settled.Files), nil
}

// chatBegun begins a chat.
func (a *app) chatBegun(ctx context.Context, d *daemon.Daemon, def compose.Definition, f chatFlags) (protocol.RunID, error) {
	mode, err := protocol.ParseContext(f.run.Context)
	if err != nil {
		return "", usagef("--context %s: want conversation, task or fresh", f.run.Context)
	}
	inputs, err := a.given(def.Program.Coerce, f.run)
	if err != nil {
		return "", err
	}
	models, err := modelFlags(def.Program, f.run.models)
	if err != nil {
		return "", err
	}
	if _, _, err := a.ResolveModels(ctx, def.Program, models); errors.Is(err, protocol.ErrModel) {
		return "", protocol.ErrModel.With(protocol.HintOf(err), "there is no model to talk with: none was named, and no key is set")
	}
	run, _, err := d.Service.Launch(ctx, def, inputs, engine.Launch{Type: service.ChatType, Tags: f.run.Tags, CreatedBy: compose.User(), Models: models, Context: mode, AllowSecretInputs: f.run.AllowSecretInputs})
	return run, err
}

// chatToContinue is the run that an argument names, or the newest chat.
func (a *app) chatToContinue(ctx context.Context, d *daemon.Daemon, arg string, last bool) (protocol.RunID, error) {
	if !last {
		return a.atStore(d.Service.Store).run(ctx, arg)
	}
	run, err := d.Service.NewestChat(ctx)
	if err == nil && run == "" {
		err = protocol.ErrUnknownRun.With("wf chat begins one", "there is no chat to go on with")
	}
	return run, err
}

// chatScreen shows a run until the person leaves.
func (a *app) chatScreen(ctx context.Context, at chat.Place, run protocol.RunID) error {
	s, err := chat.Open(ctx, at, run)
	if err != nil {
		return err
	}
	kept := chatHistory()
	history, err := kept.read()
	if err != nil {
		a.Progress("warning: %v", err)
	}
	screen := chat.New(ctx, s, history)
	screen.Size = a.Out.Size
	err = a.onScreen(ctx, screen)
	if failed := kept.add(screen.History()[min(len(history), len(screen.History())):]); failed != nil {
		a.Progress("warning: what you wrote was not kept for the next chat: %v", failed)
	}
	if err = errors.Join(err, screen.Err()); err == nil {
		a.Progress("run %s stays as it is; wf chat %s goes on", screen.Run(), screen.Run())
	}
	return err
}

// wantsTerminal refuses a command that draws on a screen where there is none.
func (a *app) wantsTerminal(name, instead string) error {
	if a.interactive() && a.Out.TTY {
		return nil
	}
	return usagef("wf %s needs a terminal; %s do the same without one", name, instead)
}

// onScreen runs a model on the terminal until the person leaves or ctx ends.
func (a *app) onScreen(ctx context.Context, m tea.Model) error {
	left, err := guardTerminal()
	if err != nil {
		a.Progress("warning: if wf is killed, the terminal is not restored (the command reset does that): %v", err)
	} else {
		defer func() {
			if err := left(); err != nil {
				a.Progress("warning: the process that watches the terminal: %v", err)
			}
		}()
	}
	defer func(quiet bool) { a.Quiet = quiet }(a.Quiet)
	a.Quiet = true // a word on stderr would tear the screen
	_, err = tea.NewProgram(m, tea.WithContext(ctx), tea.WithoutSignalHandler()).Run()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// chatTasks are the tasks of a run, as the screen lists them, with their pages.
func chatTasks(ctx context.Context, s api.Tasks, run protocol.RunID) ([]chat.TaskPage, error) {
	list, err := s.Tasks(ctx, run, api.Part{})
	if err != nil {
		return nil, fmt.Errorf("tasks of run %s: %w", run, err)
	}
	var out []chat.TaskPage
	for _, x := range list.Items {
		t, err := query.TaskPageOf(x)
		if err != nil {
			return nil, err
		}
		tokens := "?"
		if used := t.Tokens(); used.Told {
			tokens = task.Count(used.In()) + " in / " + task.Count(used.Output) + " out"
		}
		out = append(out, chat.TaskPage{Task: chat.Task{ID: t.ID, Goal: t.Goal, State: t.State, Status: t.Status},
			Cost: task.Dollars(t.Cost), Tokens: tokens, Markdown: t.Markdown()})
	}
	return out, nil
}
