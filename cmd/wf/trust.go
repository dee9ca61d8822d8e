package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"wf/agentkit/config"
)

func newTrust(a *app) *cobra.Command {
	var revoke bool
	cmd := &cobra.Command{
		Use:   "trust",
		Short: "Let the project's config send your keys and start programs",
		Long: `Trust the nearest .wf/config.yaml as it is now: its providers get the keys they name, its programs may be
started. A change to the file takes the trust back. Without --yes it asks.`,
		Example: `  wf trust
  wf trust --revoke`,
		Args: takes(0, 0),
	}
	var yes bool
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return a.trust(cmd.Context(), revoke, yes) }
	cmd.Flags().BoolVar(&revoke, "revoke", false, "take the trust back")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func (a *app) trust(ctx context.Context, revoke, yes bool) error {
	c, err := a.config()
	if err != nil {
		return err
	}
	if c.Project == nil {
		return fail(config.ErrConfig, "put one at .wf/config.yaml; your own needs no trust", "there is no project config here")
	}
	answer := func(trusted bool, powers []string) error {
		if a.asJSON() {
			return a.answer(map[string]any{"schema": "wf.trust/v1", "file": c.Project.Path, "trusted": trusted, "powers": powers})
		}
		_, err := fmt.Fprintf(a.out, "%s: %s\n", c.Project.Path, map[bool]string{true: "trusted", false: "not trusted"}[trusted])
		return err
	}
	if revoke {
		if err := c.Distrust(); err != nil {
			return err
		}
		return answer(false, []string{})
	}
	powers, err := c.Powers()
	if err != nil {
		return err
	}
	if powers == nil {
		powers = []string{}
	}
	if c.Project.Trusted {
		return answer(true, powers)
	}
	for _, p := range powers {
		a.progress("it may then %s", visible(p))
	}
	if !yes {
		agreed, err := a.confirm(ctx, "Trust "+c.Project.Path+"?")
		if err != nil {
			return err
		}
		if !agreed {
			return fail(errRefused, "wf trust --yes does it without asking", "%s is not trusted", c.Project.Path)
		}
	}
	if err := c.Trust(); err != nil {
		return err
	}
	return answer(true, powers)
}
