package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"wf/agentkit/config"
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
	c, err := a.Config()
	if err != nil {
		return err
	}
	wants, err := c.Wants()
	if err != nil {
		return err
	}
	if c.Project == nil && len(wants) == 0 {
		return fail(config.ErrConfig, "put one at .wf/config.yaml; your own needs no trust. wf trust FILE is for workflows", "there is no project config here")
	}
	file := ""
	if c.Project != nil {
		file = c.Project.Path
	}
	powers := []string{}
	for _, w := range wants {
		powers = append(powers, w.Does)
		if file == "" {
			file = w.File
		}
	}
	answer := func(trusted bool, powers []string) error {
		if a.AsJSON() {
			return a.Answer(map[string]any{"schema": "wf.trust/v1", "file": file, "trusted": trusted, "powers": powers})
		}
		_, err := fmt.Fprintf(a.Out, "%s: %s\n", file, map[bool]string{true: "trusted", false: "not trusted"}[trusted])
		return err
	}
	if revoke {
		if err := c.Distrust(); err != nil {
			return err
		}
		return answer(false, []string{})
	}
	if wanted, does := untrustedOf(wants); len(wanted) > 0 {
		if err := a.askTrust(ctx, file, wanted, func(x config.Grant) []string { return does[x.CID] }, yes); err != nil {
			return err
		}
	}
	return answer(true, powers)
}

// untrustedOf are the wants that are not trusted yet, and what each would let happen.
func untrustedOf(wants []config.Want) (out []config.Grant, does map[protocol.Link][]string) {
	does = map[protocol.Link][]string{}
	for _, w := range wants {
		if !w.Trusted {
			out = append(out, w.Grant)
			does[w.CID] = append([]string{"it may then " + w.Does}, strings.Split(strings.TrimSpace(w.Text), "\n")...)
		}
	}
	return out, does
}

// trustFiles trusts workflows with all powers that they need.
func (a *app) trustFiles(ctx context.Context, files []string, yes bool) error {
	var all []config.Grant
	acts := map[protocol.Link][]string{}
	for _, file := range files {
		w, err := a.weighed(file)
		if err != nil {
			return err
		}
		for _, x := range w.wanted {
			acts[x.CID] = compose.Acts(w.program)
		}
		servers, does := untrustedOf(w.servers)
		maps.Copy(acts, does)
		all = append(append(all, w.wanted...), servers...)
	}
	if len(all) > 0 {
		if err := a.askTrust(ctx, strings.Join(files, ", "), all, func(x config.Grant) []string { return acts[x.CID] }, yes); err != nil {
			return err
		}
	}
	return a.listTrust(files)
}

// A weighed workflow is one with what it waits for.
type weighed struct {
	program *lang.Program
	wanted  []config.Grant // of the definition
	servers []config.Want  // that it declares
}

func (a *app) weighed(file string) (w weighed, err error) {
	d, err := a.Read(file)
	if err != nil {
		return w, err
	}
	if w.program, err = a.valid(d); err != nil {
		return w, err
	}
	path, err := filepath.Abs(file)
	if err != nil {
		return w, err
	}
	if w.wanted, err = a.Wanted(w.program, path, d.Source); err != nil {
		return w, err
	}
	w.servers, err = a.WantedServers(w.program, path)
	return w, err
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
		store, _, err := a.StoreDir()
		if err != nil {
			return err
		}
		s, err := a.NewCatalog(nil, store)
		if err != nil {
			return err
		}
		served, err := s.List()
		if err != nil {
			return err
		}
		for _, f := range served {
			if f.Program != nil {
				all = append(all, f.Path)
			}
		}
	}
	loaded, err := a.Config()
	if err != nil {
		return err
	}
	for _, file := range all {
		w, err := a.weighed(file)
		if err != nil {
			return err
		}
		waits := map[config.Power]bool{}
		for _, x := range w.wanted {
			waits[x.Power] = true
		}
		def, err := w.program.Block()
		if err != nil {
			return err
		}
		for _, power := range compose.PowersOf(loaded, w.program) {
			add(config.Grant{Power: power, CID: def.Link, Name: w.program.Workflow.Name, File: file}, !waits[power])
		}
		for _, x := range w.servers {
			add(x.Grant, x.Trusted)
		}
	}
	if len(files) == 0 {
		wants, err := loaded.Wants()
		if err != nil {
			return err
		}
		for _, w := range wants {
			add(w.Grant, w.Trusted)
		}
		g, err := a.Grants()
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
	if a.AsJSON() {
		return a.Answer(map[string]any{"schema": "wf.trusted/v1", "items": rows})
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintln(a.Out, "nothing here needs trust")
		return err
	}
	var lines [][]string
	for _, r := range rows {
		state := map[bool]string{true: "trusted", false: "waits"}[r.Trusted]
		lines = append(lines, []string{state, string(r.Power), render.Visible(r.Name), r.CID, render.Visible(r.File)})
	}
	return render.Table(a.Out, lines)
}

// revokeTrust takes the trust in workflows back, with the servers that they declare, or in what has a CID.
func (a *app) revokeTrust(args []string) error {
	g, err := a.Grants()
	if err != nil {
		return err
	}
	loaded, err := a.Config()
	if err != nil {
		return err
	}
	var errs []error
	for _, arg := range args {
		cid, err := protocol.ParseLink(arg)
		if err != nil {
			w, err := a.weighed(arg)
			if err != nil {
				return err
			}
			def, err := w.program.Block()
			if err != nil {
				return err
			}
			cid = def.Link
			for _, s := range w.servers {
				errs = append(errs, loaded.Revoke(s))
			}
		}
		for _, power := range config.Powers {
			errs = append(errs, g.Remove(power, cid))
		}
		a.Progress("%s is not trusted", render.Visible(arg))
	}
	return errors.Join(errs...)
}
