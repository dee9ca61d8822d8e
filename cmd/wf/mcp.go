package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"wf/agentkit/config"
	"wf/agentkit/mcp"
	"wf/engine/lang"
	"wf/protocol"
)

// servers are the servers of tools that the configs name, for programs that start in a directory of a workspace.
func (a *app) servers(root, dir string) ([]protocol.MCPServer, error) {
	c, err := a.config()
	if err != nil {
		return nil, err
	}
	return c.Servers(root, dir)
}

// serverNames are their names, for those who check a workflow; a config that cannot be read
// names none.
func (a *app) serverNames() []string {
	c, err := a.config()
	if err != nil {
		return nil
	}
	return c.MCPNames()
}

// allowsServer reports whether a server that the workflow declares was allowed by its name.
func (a *app) allowsServer(name string) bool {
	return slices.Contains(a.mcp, name) || slices.Contains(a.mcp, "*")
}

// trustsServer says why a server is not trusted, and what to do; nil where it is.
func (a *app) trustsServer(s protocol.MCPServer, at mcp.Place) error {
	c, err := a.config()
	if err != nil {
		return err
	}
	trusted, err := c.TrustsServer(s, at)
	if trusted || err != nil {
		return err
	}
	cid, err := mcp.Key(s, at)
	if err != nil {
		return err
	}
	what := "the program is not trusted"
	switch changed, known, err := c.Changed(s, at.Files); {
	case err != nil:
		return err
	case s.URL != "":
		what = "the server is not trusted"
	case known:
		what = strings.Join(changed, ", ") + " changed since the program was trusted"
	case len(at.Files) > 0:
		what = strings.Join(changed, ", ") + ", which it runs as you from the workspace, is not trusted as it is now"
	}
	return fail(mcp.ErrUntrusted, mcp.ErrUntrusted.Hint, "%s: %s (%s)", mcp.Says(s), what, cid)
}

// wantedServers are the servers that a workflow declares, and its sub-workflows, that run programs as the user, or
// that are called elsewhere or with a secret, for runs in this directory.
func (a *app) wantedServers(p *lang.Program, file string) ([]config.Want, error) {
	loaded, err := a.config()
	if err != nil {
		return nil, err
	}
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	var out []config.Want
	for s, role := range serversOf(p, nil) {
		at, err := mcp.PlaceOf(here, filepath.Join(here, role.Dir), s)
		if err != nil {
			return nil, fmt.Errorf("mcp:%s: %w", s.Name, err)
		}
		if at.Confined || mcp.Local(s) {
			continue
		}
		w, err := loaded.WantServer(s, file, at)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(out, func(x config.Want) bool { return x.CID == w.CID }) {
			out = append(out, w)
		}
	}
	return out, nil
}

func (a *app) trustFlag(flags *pflag.FlagSet) {
	flags.StringArrayVar(&a.mcp, "trust-mcp", nil, "start or call this server, which the workflow declares under mcp; * is all")
	flags.StringArrayVar(&a.trusted, "trust", nil, "trust the definition, server or provider of this CID, for this command alone (WF_TRUST=CID,…)")
}
