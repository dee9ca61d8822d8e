package compose

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/anthropic"
	"wf/agentkit/config"
	"wf/agentkit/mcp"
	"wf/agentkit/openai"
	"wf/agentkit/price"
	"wf/agentkit/prompt"
	"wf/agentkit/sandbox"
	"wf/agentkit/tape"
	"wf/api"
	"wf/cas"
	"wf/engine/lang"
	"wf/protocol"
	"wf/roles"
)

// Config reads the user's config and the nearest project's, once.
func (u *Setup) Config() (*config.Loaded, error) {
	u.loaded.once.Do(func() { u.loaded.config, u.loaded.err = u.loadConfig() })
	return u.loaded.config, u.loaded.err
}

func (u *Setup) loadConfig() (*config.Loaded, error) {
	var p config.Places
	cwd, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the config: %w", err)
	}
	if p.Project, err = nearest(cwd); err != nil {
		return nil, err
	}
	if p.User, err = UserDir("XDG_CONFIG_HOME", ".config"); err != nil {
		return nil, err
	}
	if p.Given, err = u.givenTrust(); err != nil {
		return nil, err
	}
	p.State, p.Dir = cas.StateDir(os.Getenv), cwd
	return config.Load(p)
}

// Confine is what commands of agents may do beyond what the sandbox lets them.
func (u *Setup) Confine() (sandbox.Grants, error) {
	c, err := u.Config()
	if err != nil {
		return sandbox.Grants{}, err
	}
	read, err := c.Sandbox.Readable()
	return sandbox.Grants{Read: read, Devices: c.Sandbox.Devices, SSHAgent: slices.Contains(c.Sandbox.Sockets, config.SSHAgent),
		Limits: c.Sandbox.Limits}, err
}

// openModels keeps the models that agents opened, so that their connections and places are kept.
type openModels struct {
	mu       sync.Mutex
	byName   map[[2]string]llms.Model // name, directory
	recorder *tape.Recorder           // of --record, or nil
	lent     map[string]llms.Model    // by name, of others
	tapped   bool                     // recorded by what their contexts name
}

// OpenModel opens a model for an agent, once.
func (u *Setup) OpenModel(name, dir string) (llms.Model, error) {
	u.opened.mu.Lock()
	defer u.opened.mu.Unlock()
	if m := u.opened.lent[name]; m != nil {
		return m, nil
	}
	key := [2]string{name, dir}
	if m := u.opened.byName[key]; m != nil {
		return m, nil
	}
	c, err := u.Config()
	if err != nil {
		return nil, err
	}
	m, err := c.Registry().Open(name, dir)
	if err != nil {
		return nil, err
	}
	if u.opened.recorder != nil {
		m = u.opened.recorder.Wrap(name, m)
	}
	if u.opened.tapped {
		m = tape.Tap(name, m)
	}
	if u.opened.byName == nil {
		u.opened.byName = map[[2]string]llms.Model{}
	}
	u.opened.byName[key] = m
	return m, nil
}

// Window is how many tokens a model can read, 0 where no config says. A config that cannot be
// Read fails when the model is opened.
func (u *Setup) Window(name string) int {
	c, err := u.Config()
	if err != nil {
		return 0
	}
	return c.Window(name)
}

// patience is for how long a call waits for the provider of a model; ok is that the user or a config says so.
func (u *Setup) patience(name string) (time.Duration, bool) {
	c, err := u.Config()
	if err != nil {
		return 0, false
	}
	provider, _, _ := strings.Cut(name, "/")
	p := c.Providers[provider].Patience
	if p == nil {
		return 0, false
	}
	return time.Duration(*p), true
}

// Watermark is where the conversation of a role is compacted, in tokens, by the model it begins
// with.
func (u *Setup) Watermark(role *protocol.Role, model string) int64 {
	if c := role.Compaction; c != nil && c.Watermark > 0 {
		return c.Watermark
	}
	if n := u.Window(model); n > 0 {
		return int64(n) * 3 / 4
	}
	return prompt.DefaultWatermark
}

// defaultModels are those of the config or the environment, for agents of sub-workflows: those
// Of the workflow itself were resolved before it began.
func (u *Setup) defaultModels(role string) ([]string, error) {
	c, err := u.Config()
	if err != nil {
		return nil, err
	}
	r, err := c.Resolve(role, nil, nil, os.LookupEnv)
	if err != nil {
		return nil, fmt.Errorf("%w. Fixes: %s", err, protocol.HintOf(err))
	}
	return r.Models, nil
}

// Record has every model call from here on recorded in a file; stop ends that, and closes it.
func (u *Setup) Record(f *os.File) (stop func() error) {
	r := tape.Record(f)
	u.opened.mu.Lock()
	defer u.opened.mu.Unlock()
	u.opened.recorder = r
	return r.Close
}

// Prices is the table in force.
func (u *Setup) Prices() (price.Table, error) {
	c, err := u.Config()
	if err != nil {
		return price.Table{}, err
	}
	return c.Table(), nil
}

// price is what the engine asks; with a config that cannot be read nothing is known.
func (u *Setup) price(call protocol.Usage) *int64 {
	t, err := u.Prices()
	if err != nil {
		return nil
	}
	return t.Cost(call)
}

// SecretsSet refuses a run for which secrets are not set, before it has done anything.
func (u *Setup) SecretsSet(p *lang.Program) error {
	var missing []string
	for _, name := range p.Needs() {
		value, ok := os.LookupEnv(name)
		switch {
		case !ok:
			missing = append(missing, name)
		case len(value) < roles.ShortSecret:
			u.warnf("the secret %s has %s: it is hidden where it is written as it is, but not in Base64, hexadecimal or an address; use one of %d bytes or more",
				name, protocol.Plural(len(value), "byte"), roles.ShortSecret)
		}
	}
	switch len(missing) {
	case 0:
		return nil
	case 1:
		return protocol.ErrModel.With("export it, then run again", "the secret %s is not set in the environment; nothing ran", missing[0])
	}
	return protocol.ErrModel.With("export them, then run again", "the secrets %s are not set in the environment; nothing ran", strings.Join(missing, ", "))
}

// resolve finds the models of every agent of a workflow. Those that neither the flags nor the
// workflow name are added to the flags, so that the run keeps them.
func (u *Setup) ResolveModels(ctx context.Context, p *lang.Program, flags map[string][]string) (map[string][]string, []config.Resolution, error) {
	c, err := u.Config()
	if err != nil {
		return nil, nil, err
	}
	var all []config.Resolution
	var without []string // agents for which no model resolves (WF201), those of sub-workflows too
	var hint string
	for _, role := range p.Workflow.Roles {
		if role.Action != protocol.ActPrompt {
			continue
		}
		flag := flags[role.Name]
		if len(flag) == 0 {
			flag = flags[""]
		}
		r, err := c.Resolve(role.Name, flag, role.Model, os.LookupEnv)
		if err != nil {
			without, hint = append(without, role.Name), protocol.HintOf(err)
			continue
		}
		if r.Source == config.ByConfig || r.Source == config.ByEnvironment {
			if flags == nil {
				flags = map[string][]string{}
			}
			flags[role.Name] = r.Models
		}
		all = append(all, r)
	}
	for x := range parts(p) {
		if x.path == "" || x.Action != protocol.ActPrompt {
			continue
		}
		if _, err := c.Resolve(x.Name, flags[""], x.Model, os.LookupEnv); err != nil {
			without, hint = append(without, x.path+x.Name), protocol.HintOf(err)
		}
	}
	switch len(without) {
	case 0:
		return flags, all, nil
	case 1:
		err = protocol.ErrModel.With(hint, "WF201: the role %s names no model", without[0])
	default:
		err = protocol.ErrModel.With(hint, "WF201: the roles %s name no model", strings.Join(without, ", "))
	}
	return nil, nil, suggest(ctx, err)
}

// ProbeTime is how long a probe of this machine takes at most.
const ProbeTime = 300 * time.Millisecond

// suggest adds what a probe of this machine found to the fixes of an error. Nothing is chosen.
func suggest(ctx context.Context, err error) error {
	for _, f := range config.Probe(ctx, config.Loopback, ProbeTime) {
		if len(f.Models) == 0 {
			continue
		}
		return protocol.Hinted(err, protocol.HintOf(err)+fmt.Sprintf(". A server on this machine answers: OPENAI_BASE_URL=%s and --model openai/%s", f.BaseURL, f.Models[0]))
	}
	return protocol.Hinted(err, protocol.HintOf(err))
}

// Models is where models come from, and, with a program, which ones each of its agents would use. With probe the
// servers on this machine are asked, and those of the configs that want no key.
func (u *Setup) Models(ctx context.Context, p *lang.Program, probe bool) (*api.Models, error) {
	c, err := u.Config()
	if err != nil {
		return nil, err
	}
	out := &api.Models{Schema: "wf.models/v1", Providers: Providers(c), Default: append([]string{}, c.Model...), Roles: []api.RoleModels{},
		Prices: c.Table().Date, Found: []api.FoundModels{}}
	if p != nil {
		_, all, err := u.ResolveModels(ctx, p, nil)
		if err != nil {
			return nil, err
		}
		out.Workflow = p.Workflow.Name
		for _, r := range all {
			out.Roles = append(out.Roles, api.RoleModels{Role: r.Role, Models: r.Models, Source: string(r.Source), Detail: r.Detail, Text: r.String()})
		}
	}
	if probe {
		bases := config.Loopback
		for _, p := range out.Providers {
			keyless := p.From != "" && p.KeyEnv == "" || p.From == "" && p.BaseURL != openai.BaseURL && (!p.KeySet || mcp.Local(protocol.MCPServer{URL: p.BaseURL}))
			if keyless && p.Wire == config.WireOpenAI && p.BaseURL != "" && p.Blocked == "" {
				bases = append([]string{p.BaseURL}, bases...)
			}
		}
		for _, f := range config.Probe(ctx, unique(bases), ProbeTime) {
			out.Found = append(out.Found, api.FoundModels(f))
		}
	}
	return out, nil
}

// Providers are those of this binary, then those of the configs.
func Providers(c *config.Loaded) []api.Provider {
	isSet := func(name string) bool { return name != "" && os.Getenv(name) != "" }
	out := []api.Provider{}
	for _, p := range []api.Provider{
		{Name: "anthropic", Wire: config.WireAnthropic, BaseURL: cmp.Or(os.Getenv("ANTHROPIC_BASE_URL"), anthropic.BaseURL), KeyEnv: "ANTHROPIC_API_KEY"},
		{Name: "openai", Wire: config.WireOpenAI, BaseURL: cmp.Or(os.Getenv("OPENAI_BASE_URL"), openai.BaseURL), KeyEnv: "OPENAI_API_KEY"},
	} {
		if by, replaced := c.Providers[p.Name]; !replaced || by.BuiltIn() {
			p.KeySet = isSet(p.KeyEnv)
			out = append(out, p)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Providers)) {
		p := c.Providers[name]
		if p.BuiltIn() {
			continue
		}
		out = append(out, api.Provider{Name: name, Wire: p.Wire, BaseURL: p.BaseURL, KeyEnv: p.KeyEnv, KeySet: isSet(p.KeyEnv),
			Context: p.Context, Engine: p.Engine, From: p.From, Blocked: c.Blocked(name)})
	}
	return out
}

func unique(list []string) []string {
	var out []string
	for _, s := range list {
		if s = strings.TrimSuffix(s, "/"); !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
