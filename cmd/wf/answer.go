package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"wf/cas"
	"wf/engine"
	"wf/protocol"
)

type answerFlags struct {
	choice string
	fields []string
	signal string
	record bool
}

func newAnswer(a *app) *cobra.Command {
	var f answerFlags
	cmd := &cobra.Command{
		Use:   "answer RUN|RUN:STEP [TEXT]",
		Short: "Answer what a run asks, and go on with it",
		Long: `Answer a question, approve a tool call, or give a signal to a run that waits for it; then the run goes
on. The answer is on disk before anything happens. TEXT - reads the answer from stdin.`,
		Example: `  wf answer -1 "use Postgres"
  wf answer 7K3Q:gate#1 --choice retry "look at Split first"

  # a form, a signal, and only to record the answer
  wf answer -1 --field name=Ada --field age=36
  wf answer -1 --signal deployed --record`,
		Args: takes(1, 2, "a run, such as -1 or 7K3Q:gate#1"),
		RunE: func(cmd *cobra.Command, args []string) error {
			reply, err := a.reply(args[1:], f)
			if err != nil {
				return err
			}
			return a.answerRun(cmd.Context(), args[0], reply, f.record)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.choice, "choice", "", "value or label of the choice")
	flags.StringArrayVar(&f.fields, "field", nil, "a field of the form: name=value; a value that is JSON is taken as such")
	flags.StringVar(&f.signal, "signal", "", "give this signal instead of answering a step")
	a.trustFlag(flags)
	flags.BoolVar(&f.record, "record", false, "only record the answer, do not go on")
	return cmd
}

func (a *app) reply(args []string, f answerFlags) (engine.Reply, error) {
	r := engine.Reply{Choice: f.choice, Signal: f.signal, By: whoami(), Source: "cli"}
	if len(args) == 1 {
		r.Text = written(args[0])
		if r.Text == "-" {
			b, err := a.readArgument("-")
			if err != nil {
				return r, fmt.Errorf("answer: %w", err)
			}
			r.Text = strings.TrimRight(string(b), "\n")
		}
	}
	if len(f.fields) == 0 {
		return r, nil
	}
	fields := map[string]any{}
	for _, arg := range f.fields {
		name, value, ok := strings.Cut(arg, "=")
		if !ok || name == "" {
			return r, usagef("--field %q: want name=value", arg)
		}
		if fields[name] = any(value); json.Valid([]byte(value)) {
			fields[name] = json.RawMessage(value)
		}
	}
	b, err := protocol.CanonicalJSON(fields)
	r.Fields = b
	return r, err
}

func (a *app) answerRun(ctx context.Context, arg string, reply engine.Reply, record bool) error {
	return a.withStore(ctx, func(s *cas.Store) error {
		at, err := a.resolve(ctx, s, arg)
		if err != nil {
			return err
		}
		if at.block.Defined() {
			return usagef("%s is a block, a run or a step of one is wanted", written(arg))
		}
		reply.Step = at.step
		e := a.newEngine(s, nil)
		_, before, err := s.Tip(ctx, at.run)
		if err != nil {
			return err
		}
		step, err := e.Answer(ctx, at.run, reply)
		if err != nil {
			return err
		}
		a.note(ctx, s, at.run)
		a.progress("answered %s of run %s", step, at.run)
		if !record {
			err := a.drive(ctx, s, at.run, engine.DriveOptions{By: whoami()})
			if !errors.Is(err, protocol.ErrRunLive) {
				return err
			}
			a.progress("another process drives the run and goes on with it")
			return a.watch(ctx, s, at.run, before, a.newReporter)
		}
		v, err := a.shown(ctx, e, at.run)
		if err != nil {
			return err
		}
		return a.showOutcome(v)
	})
}
