package main

import (
	"context"

	"github.com/spf13/cobra"

	"wf/protocol"
	"wf/service"
	"wf/store"
)

func newStore(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "store",
		Short: "Make a store in a database, back one up, restore it, accept one that came from elsewhere",
		Example: `  wf store init postgres://wf@localhost/wf
  wf store copy .wf postgres://wf@localhost/wf
  wf store backup /mnt/backup/wf
  wf store restore /mnt/backup/wf .wf
  wf store adopt`,
	}, newStoreInit(a), newStoreMigrate(a), newStoreCheck(a), newStoreCopy(a), newStoreBackup(a), newStoreRestore(a), newStoreAdopt(a))
}

func newStoreAdopt(a *app) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "adopt [RUN]...",
		Short: "Let runs that came from elsewhere go on here",
		Long: `Let runs go on that this user has not begun on this machine, or that are older than what was seen of
them: after a backup was put back, a move to another machine or directory, wf import. Until then such runs are
shown, verified, exported and forked, but nothing drives them, and their timers do not fire. Without RUN all
such runs of the store are adopted. It lists what they would run, and asks. In a store that was restored from a backup nothing goes
on before; there all runs are adopted together, those that have not ended are suspended, and wf resume goes on with each.`,
		Example: `  wf store adopt
  wf store adopt 7K3Q
  wf store adopt --yes -o json`,
		Args: takes(0, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.WithStore(ctx, func(s store.Store) error { return a.adopt(ctx, s, args, yes) })
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func (a *app) adopt(ctx context.Context, s store.Store, args []string, yes bool) error {
	held, err := service.Held(ctx, s)
	if err != nil {
		return err
	}
	if held != nil && len(args) > 0 {
		return usagef("%s was restored from a backup: all of it is adopted at once, by wf store adopt without RUN", store.Shown(s.Name()))
	}
	var refs []string
	for _, arg := range args {
		refs = append(refs, written(arg))
	}
	list, err := service.Adoptable(ctx, a.Setup, s, refs)
	if err != nil {
		return err
	}
	if len(list.Runs) > 0 || held != nil {
		a.TellAdoptable(list.Runs)
		if !yes {
			runs := protocol.Plural(len(list.Runs), "run")
			err := a.confirm(ctx, "Let "+runs+" go on here?",
				errRefused.With("wf store adopt --yes does it without asking; wf verify proves the runs first", "%s of %s not adopted", runs, store.Shown(s.Name())))
			if err != nil {
				return err
			}
		}
		if err := list.Adopt(ctx, a.Setup, s); err != nil {
			return err
		}
	}
	return a.Say(map[string]any{"schema": "wf.adopt/v1", "store": store.Shown(s.Name()), "adopted": list.Runs},
		"adopted %s of %s\n", protocol.Plural(len(list.Runs), "run"), store.Shown(s.Name()))
}
