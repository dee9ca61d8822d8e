package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"wf/api"
	"wf/files"
	"wf/protocol"
	"wf/service"
)

// bisectsFiles reports whether what is bisected are the steps of a run, not definitions: a single run or step, of which --good and
// --bad name steps.
func (f *bisectFlags) bisectsFiles(args []string) bool {
	steps := 0
	for _, name := range []string{f.good, f.bad} {
		switch {
		case isStep(name):
			steps++
		case name != "":
			return false
		}
	}
	switch {
	case len(f.versions) > 0 || len(args) > 1:
		return false
	case len(args) == 0:
		return steps > 0
	}
	name := written(args[0])
	_, err := api.ReadRef(name)
	return name != "-" && err == nil && !files.Exists(name)
}

// isStep reports whether a step is written, alone or behind its run.
func isStep(text string) bool {
	if files.Exists(text) {
		return false
	}
	if !strings.Contains(text, ":") {
		_, err := protocol.ParseStepID(text)
		return err == nil
	}
	w, err := api.ReadRef(text)
	return err == nil && w.Step != ""
}

// filesFlags are the flags that a bisect of files takes, of those that the command has.
var filesFlags = []string{"good", "bad", "check", "check-sandbox", "repeat", "max-trials", "carry", "anew"}

// bisectFiles finds the step of a run behind which its files fail the check.
func (a *app) bisectFiles(ctx context.Context, p *target, cmd *cobra.Command, args []string, f bisectFlags) error {
	var others []string
	cmd.LocalNonPersistentFlags().VisitAll(func(x *pflag.Flag) {
		if x.Changed && !slices.Contains(filesFlags, x.Name) {
			others = append(others, "--"+x.Name)
		}
	})
	switch {
	case len(others) > 0:
		return protocol.ErrUsage.With("leave it out; definitions are bisected with --good DEF --bad DEF", "%s belongs to a bisect of definitions: of a run nothing is performed again", strings.Join(others, ", "))
	case f.check.Command == "":
		return protocol.ErrUsage.With("--check CMD is a command that tells good files (exit 0) from bad ones; definitions are bisected with --good DEF --bad DEF", "the steps of a run are bisected by a check of its files, and there is none")
	case f.repeat < 1:
		return usagef("-n %d: want 1 or more", f.repeat)
	case f.trials < 0:
		return usagef("--max-trials %d: want 1 or more", f.trials)
	case !slices.Contains([]string{"", protocol.SandboxOn, protocol.SandboxOff}, f.check.Sandbox):
		return usagef("--check-sandbox %s: want on or off", f.check.Sandbox)
	}
	b := &service.FilesBisector{Local: p.here.Local, Check: f.check, Repeat: f.repeat, Trials: f.trials, Carry: f.carry, Anew: f.anew, Tell: a.TellLook}
	if err := a.placesInRun(ctx, p, b, args, f); err != nil {
		return err
	}
	if a.Verbose && !a.AsJSON() {
		b.Check.Show = a.Said
	}
	found, err := b.Find(ctx)
	if err == nil {
		return answer(a, found, nil, a.ShowBisectFiles)
	}
	var sig signalled
	stopped := errors.As(context.Cause(ctx), &sig)
	if found != nil && (stopped || errors.Is(err, service.ErrBisectLimit)) {
		if err := answer(a, found, nil, a.ShowBisectFiles); err != nil {
			return err
		}
	}
	if stopped {
		return interrupted{errRunSuspended.With("the same command goes on", "%s; the bisect stopped, nothing is lost", sig), sig}
	}
	return err
}

// placesInRun finds the run, and the steps between which it is bisected.
func (a *app) placesInRun(ctx context.Context, p *target, b *service.FilesBisector, args []string, f bisectFlags) error {
	if len(args) > 0 {
		at, err := p.besideTrials(ctx, args[0], p.runOrStep)
		if err != nil {
			return protocol.Hinted(err, "wf ls lists the runs; definitions are bisected with --good DEF --bad DEF")
		}
		if b.Run, b.Within = at.Run, at.Step; at.Step != "" {
			if _, err := p.Step(ctx, at.Run, at.Step); err != nil {
				return err
			}
		}
	}
	for _, end := range []struct {
		flag, name string
		step       *string
	}{{"--good", f.good, &b.Good}, {"--bad", f.bad, &b.Bad}} {
		if end.name == "" {
			continue
		}
		name := end.name
		if !strings.Contains(name, ":") {
			if b.Run == "" {
				return usagef("%s %s: name its run too, as in -1:%s", end.flag, name, name)
			}
			name = string(b.Run) + ":" + name
		}
		at, err := p.besideTrials(ctx, name, p.runOrStep)
		if err == nil && b.Run != "" && at.Run != b.Run {
			err = usagef("%s %s is a step of run %s, and run %s is bisected", end.flag, end.name, at.Run, b.Run)
		}
		if err == nil {
			_, err = p.Step(ctx, at.Run, at.Step)
		}
		if err != nil {
			return err
		}
		b.Run, *end.step = at.Run, at.Step
	}
	return nil
}
