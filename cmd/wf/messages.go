package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"wf/agentkit"
	"wf/cas"
	"wf/protocol"
)

// messagesJSON is wf.messages/v1: what an agent was sent first.
type messagesJSON struct {
	Schema   string             `json:"schema"`
	Digest   string             `json:"digest"`
	Messages []protocol.Message `json:"messages"`
	Tools    json.RawMessage    `json:"tools"`
}

func newMessages(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "messages RUN:STEP",
		Short: "Show exactly what an agent was sent",
		Long: `Show the first request of a visit, built again from the records alone: the same bytes on any machine,
at any time. Its digest is that of the prompt event.`,
		Example: `  wf messages -1:coder#2
  wf messages 7K3Q:coder#2 -o json | jq -r .digest`,
		Args:              takes(1, 1, "a step, such as -1:coder#2"),
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.withStore(ctx, func(s *cas.Store) error { return a.messages(ctx, s, args[0]) })
		},
	}
}

func (a *app) messages(ctx context.Context, s *cas.Store, arg string) error {
	at, err := a.resolveStep(ctx, s, arg)
	if err != nil {
		return err
	}
	e := a.newEngine(s, nil)
	v, err := e.View(ctx, at.run)
	if err != nil {
		return err
	}
	step, err := stepOf(v, at.step)
	if err != nil {
		return err
	}
	if step.Action != protocol.ActPrompt && step.Action != protocol.ActRun {
		return usagef("%s is no agent: nothing was sent for a %s role", at.step, step.Action)
	}
	h, err := e.History(ctx, at.run, at.step)
	if err != nil {
		return err
	}
	messages, err := agentkit.BuildMessages(h)
	if err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	tools := json.RawMessage(h.Tools)
	if h.Tools == "" {
		tools = json.RawMessage("[]")
	}
	out := messagesJSON{"wf.messages/v1", agentkit.Digest(h.Tools, messages).String(), messages, tools}
	if a.asJSON() {
		return a.answer(out)
	}
	return a.messageLines(out)
}

func (a *app) messageLines(m messagesJSON) error {
	p := paint{a.out.color}
	if string(m.Tools) != "[]" {
		fmt.Fprintf(a.out, "%s %s\n", p.bold("tools"), p.dim(fmt.Sprintf("%d bytes", len(m.Tools))))
	}
	for i, msg := range m.Messages {
		fmt.Fprintf(a.out, "%s %s\n", p.bold(fmt.Sprintf("%d %s", i, msg.Role)), p.dim(fmt.Sprintf("%d bytes", len(msg.Content))))
		fmt.Fprintf(a.out, "%s\n\n", visible(msg.Content))
	}
	_, err := fmt.Fprintf(a.out, "%s %s\n", p.dim("digest"), m.Digest)
	return err
}
