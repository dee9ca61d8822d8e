package compose

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"wf/agentkit/config"
	"wf/agentkit/mcp"
	"wf/engine/lang"
	"wf/protocol"
)

// servers are the servers of tools that the configs name, for programs that start in a directory of a workspace.
func (u *Setup) servers(root, dir string) ([]protocol.MCPServer, error) {
	c, err := u.Config()
	if err != nil {
		return nil, err
	}
	return c.Servers(root, dir)
}

// serverNames are their names, for those who check a workflow; a config that cannot be read
// names none.
func (u *Setup) serverNames() []string {
	c, err := u.Config()
	if err != nil {
		return nil
	}
	return c.MCPNames()
}

// allowsServer reports whether a server that the workflow declares was allowed by its name.
func (u *Setup) allowsServer(name string) bool {
	return slices.Contains(u.Options.Servers, name) || slices.Contains(u.Options.Servers, "*")
}

// trustsServer says why a server is not trusted, and what to do; nil where it is.
func (u *Setup) trustsServer(s protocol.MCPServer, at mcp.Place) error {
	c, err := u.Config()
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
	return mcp.ErrUntrusted.With(mcp.ErrUntrusted.Hint, "%s: %s (%s)", mcp.Says(s), what, cid)
}

// WantedServers are the servers that a workflow declares, and its sub-workflows, that run programs as the user, or
// that are called elsewhere or with a secret, for runs in this directory.
func (u *Setup) WantedServers(p *lang.Program, file string) ([]config.Want, error) {
	loaded, err := u.Config()
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
