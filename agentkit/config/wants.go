package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"wf/agentkit/mcp"
	"wf/agentkit/price"
	"wf/protocol"
)

// A Want is what an entry of a config can do only once a person trusts it.
type Want struct {
	Grant
	Does    string // what it may then do, for people
	Trusted bool
}

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
	file := ""
	if l.Project != nil {
		file = l.Project.Path
	}
	out, err := l.wantModels(l.project, file)
	if err != nil {
		return nil, err
	}
	for _, name := range sorted(l.project.Providers) {
		w, ok, err := l.wantProvider(name, l.project.Providers[name], l.replaces(name))
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, w)
		}
	}
	servers, err := l.wantServers(file)
	if err != nil {
		return nil, err
	}
	out = append(out, servers...)
	if w, ok, err := l.wantWalls(l.project.Sandbox, file); err != nil {
		return nil, err
	} else if ok {
		out = append(out, w)
	}
	if w, ok, err := l.wantPrices(l.project.prices(), file); err != nil {
		return nil, err
	} else if ok {
		out = append(out, w)
	}
	return out, nil
}

func (l *Loaded) wantServers(file string) ([]Want, error) {
	var out []Want
	root, dir := l.here()
	for _, name := range sorted(l.MCP) {
		theirs := l.fromProject(name)
		if !theirs && root == "" {
			continue
		}
		s, err := mcp.Parse(name, l.MCP[name])
		if err != nil {
			return nil, err
		}
		at, err := mcp.PlaceOf(root, dir, s)
		if err != nil {
			return nil, fmt.Errorf("mcp:%s: %w", name, err)
		}
		if !theirs && len(at.Files) == 0 {
			continue // the user's own
		}
		from := file
		if !theirs {
			from = filepath.Join(l.places.User, FileName)
		}
		w, err := l.WantServer(s, from, at)
		if err != nil {
			return nil, err
		}
		out = append(out, w)
	}
	return out, nil
}

// want judges a value: key is what trust is in, a change of which asks again.
func (l *Loaded) want(power Power, name, file, does, text string, key any) (Want, error) {
	cid, err := mcp.KeyOf(key)
	if err != nil {
		return Want{}, err
	}
	has, err := l.grants.Has(power, cid)
	return Want{Grant{Power: power, CID: cid, Name: name, File: file, Text: text}, does, has}, err
}

// wantProvider is what a provider of the project wants; ok is false for one that wants nothing: a server of this
// machine that is sent no key, and takes the place of none.
func (l *Loaded) wantProvider(name string, p Provider, replaces bool) (w Want, ok bool, err error) {
	to := cmp.Or(p.BaseURL, "the maker of the wire "+p.Wire)
	does := ""
	switch {
	case p.KeyEnv != "":
		does = fmt.Sprintf("send $%s to %s, as %s/…", p.KeyEnv, to, name)
	case !p.loopback():
		does = fmt.Sprintf("send prompts to %s, as %s/…", to, name)
	case replaces:
		does = fmt.Sprintf("take the place of your provider %s, by %s", name, to)
	default:
		return w, false, nil
	}
	text := fmt.Sprintf("provider %s\nwire %s\nbase_url %s\nkey_env %s\n", name, p.Wire, p.BaseURL, p.KeyEnv)
	w, err = l.want(SendPrompts, name, p.From, does, text, []string{"provider", name, p.Wire, p.BaseURL, p.KeyEnv})
	return w, true, err
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
func (l *Loaded) wantWalls(s Sandbox, file string) (w Want, ok bool, err error) {
	var does, lines []string
	for _, path := range s.Read {
		lines = append(lines, "read "+path)
	}
	if len(s.Read) > 0 {
		does = append(does, "let the commands of agents read "+strings.Join(s.Read, ", "))
	}
	for _, name := range s.Sockets {
		lines = append(lines, "socket "+name)
	}
	if len(s.Sockets) > 0 {
		does = append(does, "let the commands of agents use every key of your ssh-agent, to sign and to log in as you")
	}
	for _, path := range s.Devices {
		lines = append(lines, "device "+path)
	}
	if len(s.Devices) > 0 {
		does = append(does, "let the commands of agents use the devices "+strings.Join(s.Devices, ", "))
	}
	if s.Limits != (SandboxLimits{}) {
		does = append(does, "set the limits of agents' commands")
		raw, err := json.Marshal(s.Limits)
		if err != nil {
			return w, false, err
		}
		lines = append(lines, "limits "+string(raw))
	}
	if len(does) == 0 {
		return w, false, nil
	}
	w, err = l.want(OpenWalls, "sandbox", file, strings.Join(does, "; "), strings.Join(lines, "\n")+"\n", append([]string{"sandbox"}, lines...))
	return w, true, err
}

// wantPrices is what the project wants to be paid by.
func (l *Loaded) wantPrices(prices map[string]price.Price, file string) (w Want, ok bool, err error) {
	if len(prices) == 0 {
		return w, false, nil
	}
	lines := []string{}
	for _, name := range sorted(prices) {
		raw, err := json.Marshal(prices[name])
		if err != nil {
			return w, false, err
		}
		lines = append(lines, name+" "+string(raw))
	}
	w, err = l.want(SetPrices, "prices", file, "set the prices by which limits of cost hold, of "+strings.Join(sorted(prices), ", "),
		strings.Join(lines, "\n")+"\n", append([]string{"prices"}, lines...))
	return w, true, err
}

// wantModels is what the project wants of models: of the default, where that leads off this machine, and of those that
// clients of a daemon choose.
func (l *Loaded) wantModels(c Config, file string) ([]Want, error) {
	var out []Want
	if slices.ContainsFunc(c.Model, func(m string) bool { return !l.Local(m) }) {
		w, err := l.want(ChooseDefault, "the default model", file, "make "+strings.Join(c.Model, ", ")+" the default model, which agents that name none send their prompts to",
			strings.Join(c.Model, "\n")+"\n", []any{"model", c.Model})
		if err != nil {
			return nil, err
		}
		out = append(out, w)
	}
	if len(c.AllowModels) > 0 {
		w, err := l.want(OfferModels, "allow_models", file, "let clients of a daemon choose the models "+strings.Join(c.AllowModels, ", "),
			strings.Join(c.AllowModels, "\n")+"\n", []any{"allow_models", c.AllowModels})
		if err != nil {
			return nil, err
		}
		out = append(out, w)
	}
	return out, nil
}
