package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/cas"
	"wf/engine"
	"wf/protocol"
	"wf/service/compose"
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
on. The answer is on disk before anything happens. TEXT - reads the answer from stdin.

A tool call is shown whole by wf show RUN. It is answered with allow (this call), allow_run (exactly this
call, until the run ends; not offered without a sandbox) or deny, and a reason that the agent reads. A call
that differs when it is to run is asked for again.`,
		Example: `  wf answer -1 "use Postgres"
  wf answer 7K3Q:gate#1 --choice retry "look at Split first"

  # a tool call
  wf answer -1 --choice allow
  wf answer -1 "deny use the test database"

  # a form (wf show lists its fields), a signal, and only to record the answer
  wf answer -1 --field name=Ada --field age=36
  wf answer -1 --signal deployed --record`,
		Args: takes(1, 2, "a run, such as -1 or 7K3Q:gate#1"),
		RunE: func(cmd *cobra.Command, args []string) error {
			reply, err := a.reply(args[1:], f)
			if err != nil {
				return err
			}
			return a.answerRun(cmd.Context(), args[0], reply, f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.choice, "choice", "", "value or label of the choice")
	flags.StringArrayVar(&f.fields, "field", nil, "a field of the form: name=value, read as the type of the field; wf show RUN lists the fields")
	flags.StringVar(&f.signal, "signal", "", "give this signal instead of answering a step")
	a.trustFlag(flags)
	flags.BoolVar(&f.record, "record", false, "only record the answer, do not go on")
	return cmd
}

func (a *app) reply(args []string, f answerFlags) (engine.Reply, error) {
	r := engine.Reply{Choice: f.choice, Signal: f.signal, By: compose.User(), Source: "cli"}
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
	return r, nil
}

// read takes the flags --field as the form of the step wants them. What a form does not have
// goes along, to be refused in its own words.
func (f answerFlags) read(v *api.Run, step string) (protocol.JSON, error) {
	if len(f.fields) == 0 {
		return nil, nil
	}
	var form []protocol.FormField
	for _, w := range v.Waiting {
		if w.Step == step || step == "" && len(v.Waiting) == 1 {
			form = protocol.FormFields(string(w.Form))
		}
	}
	fields := map[string]any{}
	for _, arg := range f.fields {
		name, value, ok := strings.Cut(arg, "=")
		if !ok || name == "" {
			return nil, usagef("--field %q: want name=value", arg)
		}
		field := protocol.FormField{Name: name}
		if i := slices.IndexFunc(form, func(f protocol.FormField) bool { return f.Name == name }); i >= 0 {
			field = form[i]
		}
		fields[name] = field.Read(value)
	}
	return protocol.CanonicalJSON(fields)
}

func (a *app) answerRun(ctx context.Context, arg string, reply engine.Reply, f answerFlags) error {
	return a.WithStore(ctx, func(s *cas.Store) error {
		at, err := a.resolve(ctx, s, arg)
		if err != nil {
			return err
		}
		if at.block.Defined() {
			return usagef("%s is a block, a run or a step of one is wanted", written(arg))
		}
		reply.Step = at.step
		e := a.Engine(s, nil)
		before, err := a.shown(ctx, e, at.run)
		if err != nil {
			return err
		}
		if reply.Fields, err = f.read(before, reply.Step); err != nil {
			return err
		}
		step, err := e.Answer(ctx, at.run, reply)
		if err != nil {
			return err
		}
		a.Note(ctx, s, at.run)
		a.progress("answered %s of run %s", step, at.run)
		if !f.record {
			err := a.drive(ctx, s, at.run, engine.DriveOptions{By: compose.User()})
			if !errors.Is(err, protocol.ErrRunLive) {
				return err
			}
			a.progress("another process drives the run and goes on with it")
			return a.watch(ctx, s, at.run, before.Seq, a.newReporter)
		}
		v, err := a.shown(ctx, e, at.run)
		if err != nil {
			return err
		}
		return a.showOutcome(v)
	})
}
