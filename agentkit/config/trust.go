package config

import (
	"errors"
	"reflect"
	"strings"

	"wf/agentkit/mcp"
	"wf/protocol"
)

// TrustsServer reports whether a person trusts a server: by its words, and the files of the workspace that its
// command names, or, where it names none, by naming it in the same words in the user's own config. One that is
// trusted to run as the user is trusted within walls.
func (l *Loaded) TrustsServer(s protocol.MCPServer, at mcp.Place) (bool, error) {
	places := []mcp.Place{at}
	if at.Confined {
		places = append(places, mcp.Place{})
	}
	for _, at := range places {
		cid, err := mcp.Key(s, at)
		if err != nil {
			return false, err
		}
		if has, err := l.grants.Has(StartServer, cid); has || err != nil {
			return has, err
		}
	}
	return len(at.Files) == 0 && l.ownServer(s), nil
}

// ownServer reports whether the user's own config has a server in the same words.
func (l *Loaded) ownServer(s protocol.MCPServer) bool {
	for name, raw := range l.user.MCP {
		own, err := mcp.Parse(name, raw)
		if err != nil {
			continue // it is reported where it is used
		}
		if own.Name = s.Name; reflect.DeepEqual(own, s) {
			return true
		}
	}
	return false
}

// Changed are the files that differ from those with which a server was trusted in the same words; known is false, and
// they are all, where it never was.
func (l *Loaded) Changed(s protocol.MCPServer, files []mcp.File) (changed []string, known bool, err error) {
	grants, err := l.grants.List()
	if err != nil {
		return nil, false, err
	}
	names := func(old string) (out []string) {
		for _, f := range files {
			if !strings.Contains("\n"+old, "\n"+mcp.Text(protocol.MCPServer{}, mcp.Place{Files: []mcp.File{f}})) {
				out = append(out, f.Name)
			}
		}
		return out
	}
	changed = names("")
	for _, g := range grants {
		if g.Power != StartServer || !strings.HasPrefix(g.Text, mcp.Text(s, mcp.Place{})+"file ") {
			continue
		}
		if now := names(g.Text); len(now) > 0 && (!known || len(now) < len(changed)) {
			changed, known = now, true
		}
	}
	return changed, known, nil
}

// Servers are the servers of tools for programs that start in the directory dir of the workspace root. One of the
// project takes the place of the user's once it is trusted; where the user has none of its name it is listed
// anyway, to be refused with the reason.
func (l *Loaded) Servers(root, dir string) ([]protocol.MCPServer, error) {
	var out []protocol.MCPServer
	for _, name := range sorted(l.MCP) {
		s, err := mcp.Parse(name, l.MCP[name])
		if err != nil {
			return nil, err
		}
		if own, has := l.user.MCP[name]; has && l.fromProject(name) {
			trusted := false
			if at, err := mcp.PlaceOf(root, dir, s); err == nil {
				if trusted, err = l.TrustsServer(s, at); err != nil {
					return nil, err
				}
			}
			if !trusted {
				if s, err = mcp.Parse(name, own); err != nil {
					return nil, err
				}
			}
		}
		out = append(out, s)
	}
	return out, nil
}

func (l *Loaded) fromProject(server string) bool {
	_, ok := l.project.MCP[server]
	return ok
}

// Distrust takes the trust in all that back.
func (l *Loaded) Distrust() error {
	wants, err := l.Wants()
	errs := []error{err}
	for _, w := range wants {
		errs = append(errs, l.Revoke(w))
	}
	return errors.Join(errs...)
}

// Revoke takes the trust in a want back: in a server with the files that it names as they are, and as they ever were.
func (l *Loaded) Revoke(w Want) error {
	all, err := l.grants.List()
	if err != nil {
		return err
	}
	words, files, _ := strings.Cut("\n"+w.Text, "\nfile ")
	errs := []error{l.grants.Remove(w.Power, w.CID)}
	for _, g := range all {
		if old, _, _ := strings.Cut("\n"+g.Text, "\nfile "); files != "" && g.Power == w.Power && old == words {
			errs = append(errs, l.grants.Remove(g.Power, g.CID))
		}
	}
	return errors.Join(errs...)
}
