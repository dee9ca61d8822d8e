package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"wf/agentkit/price"
	"wf/files"
	"wf/protocol"
)

// FileName is the name of a config in a project's .wf and in the user's directory.
const FileName = "config.yaml"

// Places are where configs and trust are kept; "" is nowhere.
type Places struct {
	Project string // the .wf of the project
	User    string // $XDG_CONFIG_HOME/wf
	State   string // $XDG_STATE_HOME/wf
}

// Loaded is a Config with where it came from.
type Loaded struct {
	Config
	Files   []File
	Project *File // nil where the project has none

	places  Places
	blocked map[string]string // provider → why it cannot be used
	wanted  Models            // the default that a project names which is not trusted, where it leads off this machine
	offered price.Table       // the prices of a project that is not trusted: a limit of cost would hold by them
}

// File is one config that was read.
type File struct {
	Path    string
	Trusted bool
	User    bool // the user's own
	text    []byte
}

// Load reads the configs there are. A broken one is an error wrapping ErrConfig, and so is a
// .wf that belongs to another user.
func Load(p Places) (*Loaded, error) {
	l := &Loaded{places: p, blocked: map[string]string{}}
	var user Config
	if p.User != "" {
		f, c, err := read(files.ReadNamed, filepath.Join(p.User, FileName))
		if err != nil {
			return nil, err
		}
		if f != nil {
			f.User, f.Trusted = true, true
			l.Files = append(l.Files, *f)
			user = c.from(f)
		}
	}
	l.Config = Config{}.over(user)
	if p.Project == "" {
		return l, nil
	}
	if err := ownDirectory(p.Project); err != nil {
		return nil, err
	}
	f, project, err := read(files.Read, filepath.Join(p.Project, FileName))
	if err != nil {
		return nil, err
	}
	if f == nil {
		return l, nil
	}
	if project.ContainerIsSandbox {
		return nil, fmt.Errorf("config %s: %w", f.Path, &protocol.Error{Code: ErrConfig.Code, Message: "container_is_sandbox says something of your machine, and a project cannot know that",
			Hint: "remove it there; in your own config it holds, " + filepath.Join(p.User, FileName)})
	}
	if f.Trusted, err = p.trusted(f); err != nil {
		return nil, err
	}
	l.Files, l.Project = append(l.Files, *f), f
	project = project.from(f)
	if !f.Trusted {
		l.block(project, user)
		l.offered.Prices = project.prices()
		project = project.unpriced()
		project.MCP, project.Sandbox, project.AllowModels = nil, Sandbox{}, nil
	}
	l.Config = project.over(user)
	if !f.Trusted && slices.ContainsFunc(project.Model, func(m string) bool { return !l.Local(m) }) {
		l.wanted, l.Model = project.Model, nil
	}
	return l, nil
}

// from notes where the providers were named.
func (c Config) from(f *File) Config {
	for name, p := range c.Providers {
		p.From, p.Trusted = f.Path, f.Trusted
		c.Providers[name] = p
	}
	return c
}

// unpriced is the config without its prices.
func (c Config) unpriced() Config {
	c.Prices = nil
	c.Providers = maps.Clone(c.Providers)
	for name, p := range c.Providers {
		p.Price = nil
		c.Providers[name] = p
	}
	return c
}

// block says which providers of a project cannot be used before it is trusted.
func (l *Loaded) block(project, user Config) {
	for name, p := range project.Providers {
		_, replaces := user.Providers[name]
		switch {
		case p.KeyEnv != "":
			l.blocked[name] = fmt.Sprintf("it would send $%s to %s", p.KeyEnv, orDefault(p.BaseURL, "the maker of the wire"))
		case replaces || slices.Contains([]string{"openai", "anthropic"}, name):
			l.blocked[name] = "it would take the place of your provider of that name"
		case !p.loopback():
			l.blocked[name] = fmt.Sprintf("it would send what agents are told to %s, which is no literal address of this machine such as http://127.0.0.1:8080/v1", orDefault(p.BaseURL, "the maker of the wire"))
		}
	}
}

// UntrustedMCP reports whether the project's config names programs that are not started
// because it is not trusted.
func (l *Loaded) UntrustedMCP() bool {
	if l.Project == nil || l.Project.Trusted {
		return false
	}
	c, err := Parse(l.Project.Path, string(l.Project.text))
	return err == nil && len(c.MCP) > 0
}

// MCPNames are the servers of tools that the configs name, those of a project that is not
// trusted included, sorted.
func (l *Loaded) MCPNames() []string {
	names := slices.Collect(maps.Keys(l.MCP))
	if l.UntrustedMCP() {
		if c, err := Parse(l.Project.Path, string(l.Project.text)); err == nil {
			names = slices.AppendSeq(names, maps.Keys(c.MCP))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func orDefault(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

// maxFile bounds a config, in bytes.
const maxFile = 1 << 20

// read reads one config by files.Read or files.ReadNamed; the file is nil where there is none.
func read(by func(string, int64) ([]byte, error), path string) (*File, Config, error) {
	unreadable := func(err error) error {
		return fmt.Errorf("config %s: %w", path, &protocol.Error{Code: ErrConfig.Code, Message: err.Error(), Hint: "make it a file that can be read, or move it away; only your own config may be a link"})
	}
	text, err := by(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, Config{}, nil
	}
	if err != nil {
		return nil, Config{}, unreadable(err)
	}
	c, err := Parse(path, string(text))
	return &File{Path: path, text: text}, c, err
}
