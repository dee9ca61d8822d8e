package main

import (
	"context"
	"errors"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"wf/cas"
	"wf/cmd/internal/chat"
	"wf/daemon"
	"wf/engine"
	"wf/hub/client"
	"wf/protocol"
	"wf/service/compose"
	"wf/service/query"
)

// chatFlags are how a chat begins.
type chatFlags struct {
	run  runFlags
	last bool
}

// chatType marks the runs that are chats.
const chatType = "chat"

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
			arg := ""
			if len(args) > 0 {
				arg = args[0]
			}
			if url := a.hubURL(); url != "" {
				return a.atServer(url, func(p *target) error { return a.chatThere(cmd.Context(), p, args, f) })
			}
			return a.chat(cmd.Context(), arg, f)
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&f.last, "continue", "c", false, "go on with the newest chat")
	flags.StringArrayVarP(&f.run.inputs, "input", "i", nil, "an input of the workflow: name=value, or name=@file")
	openFlag(flags, &f.run.open)
	flags.StringArrayVar(&f.run.models, "model", nil, "model for every role, or role=model; several are tried in order")
	flags.StringVar(&f.run.dir, "dir", "", "workspace in which commands and tools work (default: here)")
	flags.StringVar(&f.run.context, "context", "", "how the agent sees its past: conversation, task or fresh")
	flags.StringArrayVar(&f.run.tags, "tag", nil, "a tag, kept with the run")
	a.trustFlag(flags)
	return cmd
}

// chat opens the screen of a new or an old chat.
func (a *app) chat(ctx context.Context, arg string, f chatFlags) error {
	if err := a.wantsTerminal("chat", "wf run and wf answer"); err != nil {
		return err
	}
	s, err := a.OpenStore(ctx)
	if err != nil {
		return err
	}
	return errors.Join(a.chatOn(ctx, s, arg, f), s.Close())
}

// chatOn drives the chat in this process.
func (a *app) chatOn(ctx context.Context, s *cas.Store, arg string, f chatFlags) error {
	return daemon.Private(a.Setup, s, f.run.dir, func(d *daemon.Daemon, api *client.API) error {
		run, err := a.chatRun(ctx, d, arg, f)
		if err != nil {
			return err
		}
		return a.chatScreen(ctx, &chatSession{a: a, api: api, run: run, local: d})
	})
}

// chatRun finds or begins the run of a chat, and has it driven.
func (a *app) chatRun(ctx context.Context, d *daemon.Daemon, arg string, f chatFlags) (protocol.RunID, error) {
	def, isRun, err := a.chatDefinition(arg, f.last)
	if err != nil {
		return "", err
	}
	if isRun {
		run, err := a.chatToContinue(ctx, d, arg, f.last)
		if err != nil {
			return "", err
		}
		st, err := d.Service.Engine.State(ctx, run)
		if err == nil {
			err = d.Service.Engine.MayDrive(run, st, nil)
		}
		if err != nil {
			return "", err
		}
		d.Supervisor.Keep(run, engine.DriveOptions{By: compose.User()})
		return run, nil
	}
	mode, err := protocol.ParseContext(f.run.context)
	if err != nil {
		return "", usagef("--context %s: want conversation, task or fresh", f.run.context)
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
		return "", hintedAs(err, "there is no model to talk with: none was named, and no key is set")
	}
	run, _, err := d.Service.Launch(ctx, def, inputs, engine.Launch{Type: chatType, Tags: f.run.tags, CreatedBy: compose.User(), Models: models, Context: mode, AllowSecretInputs: f.run.open})
	return run, err
}

// chatToContinue is the run that an argument names, or the newest chat.
func (a *app) chatToContinue(ctx context.Context, d *daemon.Daemon, arg string, last bool) (protocol.RunID, error) {
	if !last {
		return a.resolveRun(ctx, d.Service.Store, arg)
	}
	heads, err := query.Newest(ctx, d.Service.Store)
	if err != nil {
		return "", err
	}
	for _, h := range heads {
		st, err := d.Service.Engine.State(ctx, protocol.RunOf(h.Name))
		if err != nil {
			return "", err
		}
		if st.Info.Type == chatType && !st.Status().Final() {
			return protocol.RunOf(h.Name), nil
		}
	}
	return "", fail(protocol.ErrUnknownRun, "wf chat begins one", "there is no chat to go on with")
}

// chatScreen shows a session until the person leaves.
func (a *app) chatScreen(ctx context.Context, s *chatSession) error {
	if err := s.learn(ctx); err != nil {
		return err
	}
	history := a.readHistory()
	quiet := a.Quiet
	a.Quiet = true // a word on stderr would tear the screen
	defer func() { a.Quiet = quiet }()
	screen := chat.New(ctx, s, history)
	err := onScreen(ctx, screen)
	a.writeHistory(screen.History(), len(history))
	a.Quiet = quiet
	if err = errors.Join(err, screen.Err()); err == nil {
		a.Progress("run %s stays as it is; wf chat %s goes on", screen.Run(), screen.Run())
	}
	return err
}

// onScreen runs a model on the terminal until the person leaves or ctx ends.
func onScreen(ctx context.Context, m tea.Model) error {
	_, err := tea.NewProgram(m, tea.WithContext(ctx), tea.WithoutSignalHandler()).Run()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// chatTimeout bounds what a chat asks of its own daemon or another one.
const chatTimeout = 30 * time.Second

// chatHistory is the file of what a person wrote in chats.
func chatHistory() string {
	if state := cas.StateDir(os.Getenv); state != "" {
		return state + "/chat_history"
	}
	return ""
}
