package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"

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

	Dir   string          // in which a run would be started; "" is that of the project
	Given []protocol.Link // trusted for this process alone
}

// Loaded is a Config with where it came from.
type Loaded struct {
	Config
	Files   []File
	Project *File // nil where the project has none

	places  Places
	grants  Grants
	user    Config
	project Config            // as its file says it, trusted or not
	blocked map[string]string // provider → why it cannot be used
	wanted  Models            // the default that a project names which is not trusted, where it leads off this machine
	// projectSinks are the sinks of the project that it is trusted with.
	projectSinks []Sink
	offered      price.Table // the prices of a project that is not trusted with them: a limit of cost would hold by them
}

// File is one config that was read.
type File struct {
	Path    string
	Trusted bool // all that it wants
	User    bool // the user's own
	text    []byte
}

// Load reads the configs there are. A broken one is an error wrapping ErrConfig, and so is a
// .wf that belongs to another user.
func Load(p Places) (*Loaded, error) {
	l := &Loaded{places: p, grants: GrantsIn(p.State, p.Given), blocked: map[string]string{}}
	if p.User != "" {
		f, c, err := read(files.ReadNamed, filepath.Join(p.User, FileName))
		if err != nil {
			return nil, err
		}
		if f != nil {
			f.User, f.Trusted = true, true
			l.Files = append(l.Files, *f)
			l.user = c.from(f)
		}
		if r := c.Retention; r != nil {
			if err := r.check(); err != nil {
				return nil, fmt.Errorf("config %s: %w: %w", filepath.Join(p.User, FileName), ErrConfig, err)
			}
		}
	}
	l.Config = Config{}.over(l.user)
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
	if project.Retention != nil {
		return nil, fmt.Errorf("config %s: %w", f.Path, ErrConfig.With("remove it there; in your own config it holds, "+filepath.Join(p.User, FileName),
			"retention deletes runs, which a project cannot ask for"))
	}
	if project.Store != "" {
		return nil, fmt.Errorf("config %s: %w", f.Path, ErrConfig.With("set it in your own config, "+filepath.Join(p.User, FileName)+", or by WF_STORE",
			"store says where all runs of yours are kept, which a project cannot ask for"))
	}
	if project.ContainerIsSandbox {
		return nil, fmt.Errorf("config %s: %w", f.Path, ErrConfig.With("remove it there; in your own config it holds, "+filepath.Join(p.User, FileName),
			"container_is_sandbox says something of your machine, and a project cannot know that"))
	}
	for _, name := range sorted(project.Providers) {
		if project.Providers[name].BuiltIn() {
			return nil, fmt.Errorf("config %s: %w", f.Path, ErrConfig.With("set them in your own config, "+filepath.Join(p.User, FileName),
				"the limits of the provider %s are those of your account, and its patience is yours, which a project does not know", name))
		}
	}
	l.Project, l.project = f, project.from(f)
	if err := l.admit(); err != nil {
		return nil, err
	}
	l.Files = append(l.Files, *f)
	return l, nil
}

// admit puts the project's config over the user's, but for what it wants and is not trusted with. Servers of
// tools are judged when they are started, see Servers.
func (l *Loaded) admit() error {
	c := l.project
	var failed error // what could not be judged; nothing is loaded then
	untrusted := func(w Want, err error) bool {
		failed = cmp.Or(failed, err)
		return err != nil || w.untrusted()
	}
	for name, p := range c.Providers {
		if untrusted(l.wantProvider(name, p)) {
			l.block(name, p)
		}
	}
	if untrusted(l.wantWalls()) {
		c.Sandbox = Sandbox{}
	}
	if untrusted(l.wantPrices()) {
		l.offered.Prices = c.prices()
		c = c.unpriced()
	}
	l.Config = c.over(l.user) // by which wantDefault knows what is local
	if untrusted(l.wantDefault()) {
		l.wanted, l.Model = c.Model, nil
	}
	if untrusted(l.wantAllowed()) {
		l.AllowModels = l.user.AllowModels
	}
	if !untrusted(l.wantNotify()) {
		l.projectSinks = l.project.Notify
	}
	if failed != nil {
		return failed
	}
	wants, err := l.Wants()
	l.Project.Trusted = err == nil && !slices.ContainsFunc(wants, Want.untrusted)
	return nil // what cannot be judged is not trusted, and wf trust says why
}

// ownDirectory refuses a directory of another user, since that user could change it at any time.
func ownDirectory(dir string) error {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("config: %w", err)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("config: %w", ErrConfig.With("work in a directory of your own, or chown it", "%s belongs to user %d, not to you", dir, stat.Uid))
	}
	return nil
}

// from notes where the providers were named.
func (c Config) from(f *File) Config {
	for name, p := range c.Providers {
		p.From = f.Path
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

// replaces reports whether a provider of the project takes the place of one that the user has.
func (l *Loaded) replaces(name string) bool {
	_, own := l.user.Providers[name]
	return own || isBuiltIn(name)
}

// isBuiltIn reports whether this binary has a provider of that name.
func isBuiltIn(name string) bool { return name == WireOpenAI || name == WireAnthropic }

// block says why a provider of the project cannot be used before it is trusted.
func (l *Loaded) block(name string, p Provider) {
	switch {
	case p.KeyEnv != "":
		l.blocked[name] = fmt.Sprintf("it would send $%s to %s", p.KeyEnv, cmp.Or(p.BaseURL, "the maker of the wire"))
	case l.replaces(name):
		l.blocked[name] = "it would take the place of your provider of that name"
	default:
		l.blocked[name] = fmt.Sprintf("it would send the prompts of agents to %s, which is no literal address of this machine such as http://127.0.0.1:8080/v1", cmp.Or(p.BaseURL, "the maker of the wire"))
	}
}

// MCPNames are the servers of tools that the configs name, sorted.
func (l *Loaded) MCPNames() []string { return sorted(l.MCP) }

// maxFile bounds a config, in bytes.
const maxFile = 1 << 20

// read reads one config by files.Read or files.ReadNamed; the file is nil where there is none.
func read(by func(string, int64) ([]byte, error), path string) (*File, Config, error) {
	unreadable := func(err error) error {
		return fmt.Errorf("config %s: %w", path, ErrConfig.With("make it a file that can be read, or move it away; only your own config may be a link", "%v", err))
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
