package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"wf/cmd/internal/render"
	"wf/engine/lang"
	"wf/protocol"
	"wf/service/compose"
)

func newTrust(a *app) *cobra.Command {
	var revoke, yes, list bool
	cmd := &cobra.Command{
		Use:   "trust [FILE | CID]...",
		Short: "Let workflows be served, and the project's config send your keys",
		Long: `Without FILE, trust what the nearest .wf/config.yaml wants: its providers get the keys they name, its
programs may be started. The trust is in each provider and server by itself, wherever the file lies: a change of
one asks for that one again, and a comment for none. A server that says "sandbox: off" and runs files of this
workspace is trusted with these files as they are, in your own config too.

With FILE, trust workflows: wf serve may start them, by the clock too, agents that say "sandbox: off" may
run what they write, and the programs of servers that they declare may be started. The trust is in what a
workflow does, with its sub-workflows. What changed since it was trusted is shown. Without --yes it asks, once.`,
		Example: `  wf trust
  wf trust workflows/*.yaml
  wf trust --list -o json
  wf trust --revoke nightly.yaml`,
		Args: takes(0, -1),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		switch {
		case list:
			return a.listTrust(args)
		case len(args) == 0:
			return a.trust(ctx, revoke, yes)
		case revoke:
			return a.revokeTrust(args)
		}
		return a.trustFiles(ctx, args, yes)
	}
	cmd.Flags().BoolVar(&revoke, "revoke", false, "take the trust back")
	cmd.Flags().BoolVar(&list, "list", false, "list what is trusted, and what waits for it, with the CIDs for --trust")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

// trust trusts what the configs want, or takes that back.
func (a *app) trust(ctx context.Context, revoke, yes bool) error {
	t, err := a.ConfigTrust()
	if err != nil {
		return err
	}
	if revoke {
		if err := a.DistrustConfig(); err != nil {
			return err
		}
		return a.ShowTrust(t.File, false, []string{})
	}
	if err := a.askTrust(ctx, t.File, t.Asked, yes); err != nil {
		return err
	}
	return a.ShowTrust(t.File, true, t.Powers)
}

// trustFiles trusts workflows with all powers that they need.
func (a *app) trustFiles(ctx context.Context, files []string, yes bool) error {
	all, err := a.weighed(files)
	if err != nil {
		return err
	}
	if err := a.askTrust(ctx, strings.Join(files, ", "), compose.Ask(all), yes); err != nil {
		return err
	}
	return a.listTrust(files)
}

// weighed reads workflows with what they wait for.
func (a *app) weighed(files []string) (all []compose.Weighed, err error) {
	for _, file := range files {
		d, p, err := a.readValid(file)
		if err != nil {
			return nil, err
		}
		w, err := a.Weigh(d, p)
		if err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	return all, nil
}

// listTrust lists the powers of the workflows that are named, or, without names, of all that are served here and
// of what else is trusted.
func (a *app) listTrust(files []string) (err error) {
	every := len(files) == 0
	if every {
		if files, err = a.ServedHere(); err != nil {
			return err
		}
	}
	all, err := a.weighed(files)
	if err != nil {
		return err
	}
	rows, err := a.Listed(all, every)
	if err != nil {
		return err
	}
	return a.ShowTrusted(rows)
}

// revokeTrust takes the trust in workflows back, or in what has a CID.
func (a *app) revokeTrust(args []string) error {
	var errs []error
	for _, arg := range args {
		if cid, err := protocol.ParseLink(arg); err == nil {
			errs = append(errs, a.DistrustCID(cid))
		} else {
			all, err := a.weighed([]string{arg})
			if err != nil {
				return err
			}
			errs = append(errs, a.Distrust(all[0]))
		}
		a.Progress("%s is not trusted", render.Visible(arg))
	}
	return errors.Join(errs...)
}

// askTrust shows what things can do, and how they differ from what is trusted, and asks once for all of them.
func (a *app) askTrust(ctx context.Context, question string, x compose.Asked, yes bool) error {
	if len(x) == 0 {
		return nil
	}
	all, err := a.Questions(x)
	if err != nil {
		return err
	}
	a.TellTrust(all)
	if !yes {
		if err := a.confirm(ctx, "Trust "+question+"?", errRefused.With("--yes does it without asking", "%s: not trusted", question)); err != nil {
			return err
		}
	}
	return a.Setup.Trust(x)
}

// mayRun asks the person at the terminal about a definition that has no walls. Where no person can
// be asked, Admit refuses it.
func (a *app) mayRun(ctx context.Context, p *lang.Program, d compose.Definition) error {
	if !a.interactive() {
		return nil
	}
	x, err := a.AskUnconfined(p, d)
	if err != nil {
		return err
	}
	return a.askTrust(ctx, protocol.Plural(1, "definition"), x, false)
}

// driveFlags are those of each command that drives runs: what is trusted, and for how long providers are waited for, for it alone.
func (a *app) driveFlags(flags *pflag.FlagSet) {
	flags.StringArrayVar(&a.Setup.Options.Servers, "trust-mcp", nil, "start or call this server, which the workflow declares under mcp; * is all")
	flags.Func("patience", "for how long a call waits for a provider that is down or busy, whatever roles and config say; 0 asks once (default: theirs, else 10m)", func(text string) error {
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return usagef("want a time such as 90s or 10m, or 0")
		}
		a.Patience = &d
		return nil
	})
	flags.StringArrayVar(&a.Trusted, "trust", nil, "trust the definition, server or provider of this CID, for this command alone (WF_TRUST=CID,…)")
}
