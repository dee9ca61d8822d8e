package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"wf/agentkit/mcp"
	"wf/agentkit/sandbox"
	"wf/protocol"
)

// A Want is what an entry of a config can do only once a person trusts it.
type Want struct {
	Grant
	Does    string // what it may then do, for people
	Trusted bool
}

// untrusted reports whether there is a want that no person trusts; the zero Want wants nothing.
func (w Want) untrusted() bool { return w.Does != "" && !w.Trusted }

// here is the workspace of a run that is started in this directory, and that directory.
func (l *Loaded) here() (root, dir string) {
	dir = l.places.Dir
	if l.places.Project == "" {
		return dir, dir
	}
	root = filepath.Dir(l.places.Project)
	if rel, err := filepath.Rel(root, dir); dir == "" || err != nil || !filepath.IsLocal(rel) {
		if dir == "" {
			dir = root
		}
		return dir, dir
	}
	return root, dir
}

// Wants lists what the project's config can do only once it is trusted, and the servers of the user's own that
// run files of the workspace as the user, in the order in which they are asked for.
func (l *Loaded) Wants() ([]Want, error) {
	wants := []func() (Want, error){l.wantDefault, l.wantAllowed}
	for _, name := range sorted(l.project.Providers) {
		wants = append(wants, func() (Want, error) { return l.wantProvider(name, l.project.Providers[name]) })
	}
	for _, name := range sorted(l.MCP) {
		wants = append(wants, func() (Want, error) { return l.wantServer(name) })
	}
	var out []Want
	for _, want := range append(wants, l.wantWalls, l.wantPrices, l.wantNotify) {
		w, err := want()
		if err != nil {
			return nil, err
		}
		if w.Does != "" {
			out = append(out, w)
		}
	}
	return out, nil
}

// wantServer is what a server of the configs wants; nothing if it is the user's own and runs no file of the workspace.
func (l *Loaded) wantServer(name string) (w Want, err error) {
	root, dir := l.here()
	theirs := l.fromProject(name)
	if !theirs && root == "" {
		return w, nil
	}
	s, err := mcp.Parse(name, l.MCP[name])
	if err != nil {
		return w, err
	}
	at, err := mcp.PlaceOf(root, dir, s)
	if err != nil {
		return w, fmt.Errorf("mcp:%s: %w", name, err)
	}
	switch {
	case theirs:
		return l.WantServer(s, l.Project.Path, at)
	case len(at.Files) == 0:
		return w, nil
	}
	return l.WantServer(s, filepath.Join(l.places.User, FileName), at)
}

// want judges a value of the project: key is what trust is in, a change of which asks again.
func (l *Loaded) want(power Power, name, does, text string, key any) (Want, error) {
	cid, err := mcp.KeyOf(key)
	if err != nil {
		return Want{}, err
	}
	has, err := l.grants.Has(power, cid)
	return Want{Grant{Power: power, CID: cid, Name: name, File: l.Project.Path, Text: text}, does, has}, err
}

// wantProvider is what a provider of the project wants; nothing if it is a server of this machine that is sent no
// key, and takes the place of none.
func (l *Loaded) wantProvider(name string, p Provider) (w Want, err error) {
	to := cmp.Or(p.BaseURL, "the maker of the wire "+p.Wire)
	does := ""
	switch {
	case p.KeyEnv != "":
		does = fmt.Sprintf("send $%s to %s, as %s/…", p.KeyEnv, to, name)
	case !p.loopback():
		does = fmt.Sprintf("send prompts to %s, as %s/…", to, name)
	case l.replaces(name):
		does = fmt.Sprintf("take the place of your provider %s, by %s", name, to)
	default:
		return w, nil
	}
	text := fmt.Sprintf("provider %s\nwire %s\nbase_url %s\nkey_env %s\n", name, p.Wire, p.BaseURL, p.KeyEnv)
	return l.want(SendPrompts, name, does, text, []string{"provider", name, p.Wire, p.BaseURL, p.KeyEnv})
}

// WantServer is what a server wants to be started, or reached, from the directory in which its program starts.
func (l *Loaded) WantServer(s protocol.MCPServer, file string, at mcp.Place) (Want, error) {
	does := "call the server of mcp:" + s.Name + ", " + s.URL
	if s.URL == "" {
		how := "as you"
		if at.Confined {
			how = "within walls"
		}
		does = fmt.Sprintf("start the program of mcp:%s, %s: %s", s.Name, how, strings.Join(s.Command, " "))
	}
	var named []string
	for _, v := range slices.Concat(s.Env, s.Headers) {
		if v.Secret != "" {
			named = append(named, "$"+v.Secret)
		}
	}
	if len(named) > 0 {
		does += ", with " + strings.Join(named, ", ")
	}
	cid, err := mcp.Key(s, at)
	if err != nil {
		return Want{}, err
	}
	trusted, err := l.TrustsServer(s, at)
	return Want{Grant{Power: StartServer, CID: cid, Name: s.Name, File: file, Text: mcp.Text(s, at)}, does, trusted}, err
}

// wantWalls is what the project wants for the commands of agents.
func (l *Loaded) wantWalls() (w Want, err error) {
	s := l.project.Sandbox
	var does, lines []string
	for _, of := range []struct {
		what  string
		names []string
		does  string
	}{
		{"read ", s.Read, "let the commands of agents read " + strings.Join(s.Read, ", ")},
		{"socket ", s.Sockets, "let the commands of agents use every key of your ssh-agent, to sign and to log in as you"},
		{"device ", s.Devices, "let the commands of agents use the devices " + strings.Join(s.Devices, ", ")},
	} {
		for _, name := range of.names {
			lines = append(lines, of.what+name)
		}
		if len(of.names) > 0 {
			does = append(does, of.does)
		}
	}
	if s.Limits != (sandbox.Limits{}) {
		does = append(does, "set the limits of agents' commands")
		raw, err := json.Marshal(s.Limits)
		if err != nil {
			return w, err
		}
		lines = append(lines, "limits "+string(raw))
	}
	if len(does) == 0 {
		return w, nil
	}
	return l.want(OpenWalls, "sandbox", strings.Join(does, "; "), strings.Join(lines, "\n")+"\n", append([]string{"sandbox"}, lines...))
}

// wantPrices is what the project wants to be paid by.
func (l *Loaded) wantPrices() (w Want, err error) {
	prices := l.project.prices()
	if len(prices) == 0 {
		return w, nil
	}
	lines := []string{}
	for _, name := range sorted(prices) {
		raw, err := json.Marshal(prices[name])
		if err != nil {
			return w, err
		}
		lines = append(lines, name+" "+string(raw))
	}
	return l.want(SetPrices, "prices", "set the prices by which limits of cost hold, of "+strings.Join(sorted(prices), ", "),
		strings.Join(lines, "\n")+"\n", append([]string{"prices"}, lines...))
}

// wantDefault is what the project wants of the default model, where that leads off this machine.
func (l *Loaded) wantDefault() (w Want, err error) {
	models := l.project.Model
	if !slices.ContainsFunc(models, func(m string) bool { return !l.Local(m) }) {
		return w, nil
	}
	return l.want(ChooseDefault, "the default model", "make "+strings.Join(models, ", ")+" the default model, which agents that name none send their prompts to",
		strings.Join(models, "\n")+"\n", []any{"model", models})
}

// wantAllowed is what the project wants clients of a daemon to choose.
func (l *Loaded) wantAllowed() (w Want, err error) {
	models := l.project.AllowModels
	if len(models) == 0 {
		return w, nil
	}
	return l.want(OfferModels, "allow_models", "let clients of a daemon choose the models "+strings.Join(models, ", "),
		strings.Join(models, "\n")+"\n", []any{"allow_models", models})
}
