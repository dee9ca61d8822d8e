package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/protocol"
)

type answerFlags struct {
	api.Answer
	fields []string
	record bool
}

func newAnswer(a *app) *cobra.Command {
	var f answerFlags
	cmd := &cobra.Command{
		Use:   "answer RUN|RUN:STEP [TEXT]",
		Short: "Answer what a run asks, and go on with it",
		Long: `Answer a question, approve a tool call, or give a signal to a run that waits for it; then the run goes
on. The answer is on disk before anything happens. TEXT - reads the answer from stdin. Without an answer on the command
line, the question is asked at the terminal, a form field by field; Alt+Enter begins a line, what is pasted is one text,
and Esc leaves it open. What picks a choice is in front of it: a number where none of the choices begins with one.

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
		RunE: a.inTarget(func(ctx context.Context, p *target, args []string) error {
			f.Source = "cli"
			if len(args) == 2 {
				f.Text = written(args[1])
			}
			if f.Text == "-" {
				b, err := a.readArgument("-")
				if err != nil {
					return fmt.Errorf("answer: %w", err)
				}
				f.Text = strings.TrimRight(string(b), "\n")
			}
			return a.answerRun(ctx, p, args[0], f)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.Choice, "choice", "", "value or label of the choice")
	flags.StringArrayVar(&f.fields, "field", nil, "a field of the form: name=value, read as the type of the field; wf show RUN lists the fields")
	flags.StringVar(&f.Signal, "signal", "", "give this signal instead of answering a step")
	a.driveFlags(flags)
	flags.BoolVar(&f.record, "record", false, "only record the answer, do not go on")
	return cmd
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

// empty reports whether the command line answers nothing.
func (f answerFlags) empty() bool {
	return f.Text == "" && f.Choice == "" && f.Signal == "" && len(f.fields) == 0
}

// askFor asks the person at the terminal for an answer until one fits, and names the step that it answers; "" where
// the person leaves it open.
func (a *app) askFor(ctx context.Context, p *target, at api.Ref) (step string, err error) {
	for step == "" {
		v, err := p.Run(ctx, at.Run, api.Window{Limit: lastSteps})
		if err != nil {
			return "", err
		}
		asked, err := a.person.Ask(ctx, v, at.Step, func(ctx context.Context, x api.Answer) (err error) {
			step, err = p.Answer(ctx, at.Run, x)
			return err
		})
		if err != nil || !asked {
			return "", err
		}
	}
	return step, nil
}

func (a *app) answerRun(ctx context.Context, p *target, arg string, f answerFlags) error {
	at, err := p.runOrStep(ctx, arg)
	if err != nil {
		return err
	}
	before, err := p.Run(ctx, at.Run, api.Window{Limit: lastSteps})
	if err != nil {
		return err
	}
	fields, err := f.read(before, at.Step)
	if err != nil {
		return err
	}
	f.Step, f.Fields = at.Step, json.RawMessage(fields)
	var step string
	open := slices.ContainsFunc(before.Waiting, func(w api.Waiting) bool { return at.Step == "" || w.Step == at.Step })
	if open && f.empty() && a.interactive() && !a.AsJSON() {
		if step, err = a.askFor(ctx, p, at); err != nil {
			return err
		}
		if step == "" { // it is left open
			v, err := a.shown(ctx, p, at.Run)
			if err != nil {
				return err
			}
			return a.tellEnd(v)
		}
	} else if step, err = p.Answer(ctx, at.Run, f.Answer); err != nil {
		return err
	}
	switch {
	case before.Info.Machine != "":
		a.Progress("answered %s of run %s, which goes on on the machine of its files", step, at.Run)
	case f.record:
		a.Progress("answered %s of run %s", step, at.Run)
	default:
		return a.attend(ctx, p, at.Run, before.Seq)
	}
	return a.tell(ctx, p, at.Run)
}
