package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"wf/api"
	"wf/cmd/internal/render"
	"wf/protocol"
)

func newCache(a *app) *cobra.Command {
	var least float64
	cmd := &cobra.Command{
		Use:   "cache [RUN]",
		Short: "Tell how much of each prompt the provider has seen before",
		Long: `Build every prompt of a run again and tell, for each model call, how much of the prompt before it begins
with, byte for byte, and what the provider read from its cache. A call that should have been read and was
not has a label: cold, short, ttl, model, tools, system, history, compaction, attempt or provider.`,
		Example: `  wf cache -1

  # in CI: fail when a prompt no longer begins with the one before
  wf cache -1 --min-prefix 1.0`,
		Args: takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if least < 0 || least > 1 {
				return usagef("--min-prefix %v: want a share, from 0 to 1.0", least)
			}
			ctx := cmd.Context()
			return a.at(ctx, func(p *target) error { return a.cache(ctx, p, latestUnless(args), least) })
		},
	}
	cmd.Flags().Float64Var(&least, "min-prefix", 0, "exit 1 if a prompt shares less than this of the one before; compactions aside")
	return cmd
}

func (a *app) cache(ctx context.Context, here *target, arg string, least float64) error {
	run, err := here.run(ctx, arg)
	if err != nil {
		return err
	}
	out, err := here.Cache(ctx, run)
	if err != nil {
		return err
	}
	if err := a.showCache(out); err != nil {
		return err
	}
	if out.MinPrefix < least {
		return fail(errDifference, "the part that differs is named above; wf messages shows the prompts",
			"run %s: a prompt begins with only %.4f of the one before", run, out.MinPrefix)
	}
	return nil
}

func (a *app) showCache(c *api.Cache) error {
	if a.AsJSON() {
		return a.Answer(c)
	}
	p := a.Out.Paint()
	var head []string
	for _, name := range []string{"step", "call", "prompt", "of the one before", "differs", "input", "cached", "written", "miss"} {
		head = append(head, p.Dim(name))
	}
	rows := [][]string{head}
	for _, i := range c.Items {
		shared, differs := "", ""
		if i.Before != "" {
			shared = fmt.Sprintf("%d of %d bytes, %s", i.Shared, i.Of, i.Before)
		}
		if i.Differs != nil {
			differs = fmt.Sprintf("byte %d, %s", *i.Differs, i.Part)
		}
		rows = append(rows, []string{i.Step, strconv.Itoa(i.Call), fmt.Sprintf("%d bytes", i.Bytes), shared, differs, render.Count(i.Input), render.Count(i.Cached), render.Count(i.Written), i.Miss})
	}
	if err := render.Table(a.Out, rows); err != nil {
		return err
	}
	if len(c.Items) == 0 {
		_, err := fmt.Fprintln(a.Out, "no model calls: there is nothing to compare")
		return err
	}
	hit := "not told"
	if c.Hit != nil {
		hit = fmt.Sprintf("%.1f %%", *c.Hit*100)
	}
	least := fmt.Sprintf("shared prefix ≥ %.4f", c.MinPrefix)
	if !slices.ContainsFunc(c.Items, func(i *api.CacheCall) bool { return i.Before != "" }) {
		least = "no call goes on from another: no prefix to compare"
	}
	if n := c.Compactions; n > 0 {
		least += fmt.Sprintf(", but ≥ %.4f after %s", *c.MinCompacted, protocol.Plural(n, "compaction"))
	}
	_, err := fmt.Fprintf(a.Out, "%s   read from the cache: %s\n", least, hit)
	return err
}
