package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"wf/agentkit/prompt"
	"wf/agentkit/task"
	"wf/cas"
	"wf/engine"
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
		Args: takes(1, 1, "a step, such as -1:coder#2"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.WithStore(ctx, func(s *cas.Store) error { return a.messages(ctx, s, args[0]) })
		},
	}
}

func (a *app) messages(ctx context.Context, s *cas.Store, arg string) error {
	at, err := a.resolveStep(ctx, s, arg)
	if err != nil {
		return err
	}
	e := a.Engine(s, nil)
	now, before, name, err := promptsOf(ctx, e, at)
	if err != nil {
		return err
	}
	if !a.asJSON() {
		st, err := e.State(ctx, at.run)
		if err != nil {
			return err
		}
		id, err := protocol.ParseStepID(at.step)
		if err != nil {
			return err
		}
		if role, ok := st.Program().Workflow.RoleNamed(id.Role); ok && role.Action == protocol.ActRun {
			return a.commandLines(ctx, e, at, role)
		}
	}
	if a.asJSON() {
		return a.answer(now.json())
	}
	return a.messageLines(now, before, name)
}

// promptsOf builds what a visit was sent, and what the visit that it resumes was sent before;
// that is nil, and its name "", where there is none.
func promptsOf(ctx context.Context, e *engine.Engine, at ref) (now, before *sentPrompt, name string, err error) {
	v, err := e.Outline(ctx, at.run)
	if err != nil {
		return nil, nil, "", err
	}
	step, err := stepOf(v, at.step)
	if err != nil {
		return nil, nil, "", err
	}
	if step.Action != protocol.ActPrompt && step.Action != protocol.ActRun {
		return nil, nil, "", usagef("%s is no agent: nothing is sent to a model (%s)", at.step, step.Action)
	}
	wanted := []string{at.step}
	for _, other := range v.Steps {
		if step.Resumes != nil && other.CID != nil && *other.CID == *step.Resumes {
			name = other.ID
			wanted = append(wanted, name)
		}
	}
	histories, err := e.HistoriesOf(ctx, at.run, wanted...)
	if err != nil {
		return nil, nil, "", fmt.Errorf("%s: %w", at, err)
	}
	prompts := make([]*sentPrompt, len(histories))
	for i, h := range histories {
		if prompts[i], err = promptOf(h); err != nil {
			return nil, nil, "", fmt.Errorf("%s: %w", wanted[i], err)
		}
	}
	if name == "" {
		return prompts[0], nil, "", nil
	}
	return prompts[0], prompts[len(prompts)-1], name, nil
}

// sentPrompt is P_k of a visit.
type sentPrompt struct {
	messages []protocol.Message
	tools    string // canonical JSON list, "" is none
}

func promptOf(h protocol.History) (*sentPrompt, error) {
	messages, err := prompt.BuildMessages(h)
	return &sentPrompt{messages, h.Tools}, err
}

func (p *sentPrompt) bytes() []byte { return prompt.Bytes(p.tools, p.messages) }

func (p *sentPrompt) json() messagesJSON {
	tools := json.RawMessage(p.tools)
	if p.tools == "" {
		tools = json.RawMessage("[]")
	}
	return messagesJSON{"wf.messages/v1", prompt.Digest(p.tools, p.messages).String(), p.messages, tools}
}

// commandLines shows what a command was given: no model was asked, and so nothing was sent.
func (a *app) commandLines(ctx context.Context, e *engine.Engine, at ref, role *protocol.Role) error {
	h, err := e.History(ctx, at.run, at.step)
	if err != nil {
		return err
	}
	p := paint{a.out.color}
	fmt.Fprintf(a.out, "%s is a command: no model was asked. It was given\n", p.bold(at.step))
	rows := [][]string{{"  " + p.dim("run"), indentLines(visible(role.Run), "    ")}}
	row := func(name, value string) {
		if value != "" {
			rows = append(rows, []string{"  " + p.dim(name), indentLines(visible(value), "    ")})
		}
	}
	row("dir", role.Dir)
	for _, v := range role.Env {
		row("env", v.Name+"="+v.Value)
	}
	row("edge prompt", h.Visit.EdgePrompt)
	row("stdin", "its turn, wf.turn/v1: the inputs, what happened before, and the messages that an agent in its place would be sent; -o json shows those")
	return table(a.out, rows)
}

// messageLines shows the messages, and where what the previous visit was sent ends.
func (a *app) messageLines(m, before *sentPrompt, name string) error {
	p := paint{a.out.color}
	if m.tools != "" {
		fmt.Fprintf(a.out, "%s %s\n", p.bold("tools"), p.dim(fmt.Sprintf("%d bytes", len(m.tools))))
	}
	shared := -1
	if before != nil {
		shared = len(before.messages)
		if task.Offered(m.tools) {
			shared = 1 // of a task before, only the system message is read again
		}
	}
	for i, msg := range m.messages {
		if i == shared {
			fmt.Fprintf(a.out, "%s\n\n", p.dim(sharedLine(m, before, name)))
		}
		fmt.Fprintf(a.out, "%s %s\n", p.bold(fmt.Sprintf("%d %s", i, msg.Role)), p.dim(fmt.Sprintf("%d bytes", len(msg.Content))))
		fmt.Fprintf(a.out, "%s\n\n", visible(msg.Content))
	}
	_, err := fmt.Fprintf(a.out, "%s %s\n", p.dim("digest"), prompt.Digest(m.tools, m.messages))
	return err
}

// sharedLine says how much of a prompt the provider has seen before.
func sharedLine(m, before *sentPrompt, name string) string {
	now := m.bytes()
	earlier := before.bytes()
	if task.Offered(m.tools) {
		earlier = prompt.Lasting(earlier)
	}
	same := prompt.Compare(earlier, now)
	if !same.Whole() {
		return fmt.Sprintf("──────── differs from %s's request at byte %d, in its %s ────────", name, same.Shared, same.Part)
	}
	return fmt.Sprintf("──────── identical to %s's request up to here: %d of %d bytes ────────", name, same.Shared, len(now))
}
