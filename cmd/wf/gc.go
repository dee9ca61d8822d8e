package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"wf/cas"
	"wf/protocol"
	"wf/store"
)

func newGC(a *app) *cobra.Command {
	var dry, yes bool
	var grace time.Duration
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Remove blocks that no run reaches",
		Long: `Remove the blocks that no head reaches, and none pointed to lately. Everything is read first: where a
block that is reached is missing, nothing is removed. --dry-run only tells. In a database what no head reaches goes with a
collection that lies at least three days behind one that found it so, under a role with the rights for it (wf store init --gc).`,
		Example: `  wf gc --dry-run
  wf gc --yes

  # while others write to the store
  wf gc --yes --grace 1h`,
		Args: takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			return a.WithStore(ctx, func(s store.Store) error {
				return a.gc(ctx, s, cas.GCOptions{DryRun: dry, Grace: grace}, yes)
			})
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&dry, "dry-run", false, "tell what would be removed, and change nothing")
	flags.BoolVar(&yes, "yes", false, "do not ask")
	flags.DurationVar(&grace, "grace", 0, "keep blocks that came in at most this long ago; in a database at least 72h, which is the default there")
	return cmd
}

func (a *app) gc(ctx context.Context, s store.Store, o cas.GCOptions, yes bool) error {
	if !o.DryRun && !yes {
		dry := o
		dry.DryRun = true
		r, err := store.Collect(ctx, s, dry)
		if err != nil {
			return err
		}
		if err := a.confirm(ctx, fmt.Sprintf("Remove %s (%d bytes) from %s?", protocol.Plural(int(r.Removed), "block"), r.Bytes, store.Shown(s.Name())), errRefused); err != nil {
			return err
		}
	}
	r, err := store.Collect(ctx, s, o)
	if err != nil {
		return err
	}
	did := "removed"
	if r.DryRun {
		did = "would remove"
	}
	return a.Say(r, "%s %s, %d bytes; kept %s; the store file has %d bytes, had %d\n",
		did, protocol.Plural(int(r.Removed), "block"), r.Bytes, protocol.Plural(int(r.Kept+r.Young), "block"), r.After, r.Before)
}
