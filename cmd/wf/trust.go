package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"wf/agentkit/config"
	"wf/engine/lang"
	"wf/protocol"
)

func newTrust(a *app) *cobra.Command {
	var revoke, yes, list bool
	cmd := &cobra.Command{
		Use:   "trust [FILE | CID]...",
		Short: "Let workflows be served, and the project's config send your keys",
		Long: `Without FILE, trust the nearest .wf/config.yaml as it is now: its providers get the keys they name, its
programs may be started. A change to the file takes the trust back.

With FILE, trust workflows: wf serve may start them, by the clock too, and agents that say "sandbox: off" may
run what they write. The trust is in what a workflow does, with its sub-workflows: it holds wherever the file
lies, and a comment asks nothing. What changed since it was trusted is shown. Without --yes it asks, once.`,
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

// trust trusts the project's config, or takes that back.
func (a *app) trust(ctx context.Context, revoke, yes bool) error {
	c, err := a.config()
	if err != nil {
		return err
	}
	if c.Project == nil {
		return fail(config.ErrConfig, "put one at .wf/config.yaml; your own needs no trust. wf trust FILE is for workflows", "there is no project config here")
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

// trustFiles trusts workflows with all powers that they need.
func (a *app) trustFiles(ctx context.Context, files []string, yes bool) error {
	var all []config.Grant
	programs := map[protocol.Link]*lang.Program{}
	for _, file := range files {
		p, wanted, err := a.weighed(file)
		if err != nil {
			return err
		}
		for _, x := range wanted {
			programs[x.CID] = p
		}
		all = append(all, wanted...)
	}
	if len(all) > 0 {
		if err := a.askTrust(ctx, all, func(x config.Grant) []string { return actsOf(programs[x.CID]) }, yes); err != nil {
			return err
		}
	}
	return a.listTrust(files)
}

// weighed reads a workflow, with the powers that it waits for.
func (a *app) weighed(file string) (*lang.Program, []config.Grant, error) {
	d, err := a.readDefinition(file)
	if err != nil {
		return nil, nil, err
	}
	p, err := a.valid(d)
	if err != nil {
		return nil, nil, err
	}
	path, err := filepath.Abs(file)
	if err != nil {
		return nil, nil, err
	}
	wanted, err := a.wanted(p, path, d.source)
	return p, wanted, err
}

// trustRow is a line of wf trust --list.
type trustRow struct {
	Power   config.Power `json:"power"`
	CID     string       `json:"cid"`
	Name    string       `json:"name"`
	File    string       `json:"file"`
	Trusted bool         `json:"trusted"`
}

// listTrust lists the powers of workflows, those of the files that are named or all that are served
// here, and, without files, what else is trusted.
func (a *app) listTrust(files []string) error {
	rows := []trustRow{}
	listed := map[string]bool{}
	add := func(x config.Grant, trusted bool) {
		if key := string(x.Power) + x.CID.String(); !listed[key] {
			listed[key] = true
			rows = append(rows, trustRow{x.Power, x.CID.String(), x.Name, x.File, trusted})
		}
	}
	all := files
	if len(files) == 0 {
		store, _, err := a.storeDir()
		if err != nil {
			return err
		}
		s, err := a.newShelf(nil, store)
		if err != nil {
			return err
		}
		served, err := s.list()
		if err != nil {
			return err
		}
		for _, f := range served {
			if f.program != nil {
				all = append(all, f.path)
			}
		}
	}
	loaded, err := a.config()
	if err != nil {
		return err
	}
	for _, file := range all {
		p, wanted, err := a.weighed(file)
		if err != nil {
			return err
		}
		waits := map[config.Power]bool{}
		for _, x := range wanted {
			waits[x.Power] = true
		}
		def, err := p.Block()
		if err != nil {
			return err
		}
		for _, power := range powersOf(loaded, p) {
			add(config.Grant{Power: power, CID: def.Link, Name: p.Workflow.Name, File: file}, !waits[power])
		}
	}
	if len(files) == 0 {
		g, err := a.grants()
		if err != nil {
			return err
		}
		kept, err := g.List()
		if err != nil {
			return err
		}
		for _, x := range kept {
			add(x, true)
		}
	}
	if a.asJSON() {
		return a.answer(map[string]any{"schema": "wf.trusted/v1", "items": rows})
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintln(a.out, "nothing here needs trust")
		return err
	}
	var lines [][]string
	for _, r := range rows {
		state := map[bool]string{true: "trusted", false: "waits"}[r.Trusted]
		lines = append(lines, []string{state, string(r.Power), visible(r.Name), r.CID, visible(r.File)})
	}
	return table(a.out, lines)
}

// revokeTrust takes the trust in workflows back, which are named by their files or CIDs.
func (a *app) revokeTrust(args []string) error {
	g, err := a.grants()
	if err != nil {
		return err
	}
	var errs []error
	for _, arg := range args {
		cid, err := protocol.ParseLink(arg)
		if err != nil {
			p, _, err := a.weighed(arg)
			if err != nil {
				return err
			}
			def, err := p.Block()
			if err != nil {
				return err
			}
			cid = def.Link
		}
		for _, power := range []config.Power{config.Serve, config.Schedule, config.Unconfined} {
			errs = append(errs, g.Remove(power, cid))
		}
		a.progress("%s is not trusted", visible(arg))
	}
	return errors.Join(errs...)
}
