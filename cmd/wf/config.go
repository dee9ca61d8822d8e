package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tmc/langchaingo/llms"

	"wf/agentkit/config"
	"wf/agentkit/price"
	"wf/agentkit/prompt"
	"wf/agentkit/sandbox"
	"wf/agentkit/tape"
	"wf/cas"
	"wf/engine/lang"
	"wf/protocol"
	"wf/roles"
)

// config reads the user's config and the nearest project's, once.
func (a *app) config() (*config.Loaded, error) {
	a.loaded.once.Do(func() { a.loaded.config, a.loaded.err = a.loadConfig() })
	return a.loaded.config, a.loaded.err
}

func (a *app) loadConfig() (*config.Loaded, error) {
	var p config.Places
	cwd, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the config: %w", err)
	}
	if p.Project, err = nearest(cwd); err != nil {
		return nil, err
	}
	if p.User, err = userDir("XDG_CONFIG_HOME", ".config"); err != nil {
		return nil, err
	}
	if p.Given, err = a.givenTrust(); err != nil {
		return nil, err
	}
	p.State, p.Dir = cas.StateDir(os.Getenv), cwd
	return config.Load(p)
}

// providerNames are the first parts of the names of models; none where a config cannot be read.
func (a *app) providerNames() []string {
	c, err := a.config()
	if err != nil {
		return nil
	}
	return slices.Collect(maps.Keys(c.Registry()))
}

// confine is what commands of agents may do beyond what the sandbox lets them.
func (a *app) confine() (sandbox.Grants, error) {
	c, err := a.config()
	if err != nil {
		return sandbox.Grants{}, err
	}
	read, err := c.Sandbox.Readable()
	return sandbox.Grants{Read: read, Devices: c.Sandbox.Devices, SSHAgent: slices.Contains(c.Sandbox.Sockets, config.SSHAgent),
		Limits: sandbox.Limits(c.Sandbox.Limits)}, err
}

// openModels keeps the models that agents opened, so that their connections and places are kept.
type openModels struct {
	mu       sync.Mutex
	byName   map[[2]string]llms.Model // name, directory
	recorder *tape.Recorder           // of --record, or nil
}

// openModel opens a model for an agent, once.
func (a *app) openModel(name, dir string) (llms.Model, error) {
	a.opened.mu.Lock()
	defer a.opened.mu.Unlock()
	key := [2]string{name, dir}
	if m := a.opened.byName[key]; m != nil {
		return m, nil
	}
	c, err := a.config()
	if err != nil {
		return nil, err
	}
	m, err := c.Registry().Open(name, dir)
	if err != nil {
		return nil, err
	}
	if a.opened.recorder != nil {
		m = a.opened.recorder.Wrap(name, m)
	}
	if a.opened.byName == nil {
		a.opened.byName = map[[2]string]llms.Model{}
	}
	a.opened.byName[key] = m
	return m, nil
}

// window is how many tokens a model can read, 0 where no config says. A config that cannot be
// read fails when the model is opened.
func (a *app) window(name string) int {
	c, err := a.config()
	if err != nil {
		return 0
	}
	return c.Window(name)
}

// watermark is where the conversation of a role is compacted, in tokens, by the model it begins
// with.
func (a *app) watermark(role *protocol.Role, model string) int64 {
	if c := role.Compaction; c != nil && c.Watermark > 0 {
		return c.Watermark
	}
	if n := a.window(model); n > 0 {
		return int64(n) * 3 / 4
	}
	return prompt.DefaultWatermark
}

// defaultModels are those of the config or the environment, for agents of sub-workflows: those
// of the workflow itself were resolved before it began.
func (a *app) defaultModels(role string) ([]string, error) {
	c, err := a.config()
	if err != nil {
		return nil, err
	}
	r, err := c.Resolve(role, nil, nil, os.LookupEnv)
	if err != nil {
		return nil, fmt.Errorf("%w. Fixes: %s", err, protocol.HintOf(err))
	}
	return r.Models, nil
}

// record has every model call from here on recorded; stop ends that.
func (a *app) record(path string) (stop func() error, err error) {
	if path == "" {
		return func() error { return nil }, nil
	}
	to, err := a.outFile(path)
	if err != nil {
		return nil, err
	}
	defer to.close()
	f, err := to.open(os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	r := tape.Record(f)
	a.opened.mu.Lock()
	defer a.opened.mu.Unlock()
	a.opened.recorder = r
	return r.Close, nil
}

// prices is the table in force.
func (a *app) prices() (price.Table, error) {
	c, err := a.config()
	if err != nil {
		return price.Table{}, err
	}
	return c.Table(), nil
}

// price is what the engine asks; with a config that cannot be read nothing is known.
func (a *app) price(u protocol.Usage) *int64 {
	t, err := a.prices()
	if err != nil {
		return nil
	}
	return t.Cost(u)
}

// secretsSet refuses a run for which secrets are not set, before it has done anything.
func (a *app) secretsSet(p *lang.Program) error {
	var missing []string
	for _, name := range p.Needs() {
		value, ok := os.LookupEnv(name)
		switch {
		case !ok:
			missing = append(missing, name)
		case len(value) < roles.ShortSecret:
			a.progress("warning: the secret %s has %s: it is hidden where it is written as it is, but not in Base64, hexadecimal or an address; use one of %d bytes or more",
				name, plural(len(value), "byte"), roles.ShortSecret)
		}
	}
	switch len(missing) {
	case 0:
		return nil
	case 1:
		return fail(protocol.ErrModel, "export it, then run again", "the secret %s is not set in the environment; nothing ran", missing[0])
	}
	return fail(protocol.ErrModel, "export them, then run again", "the secrets %s are not set in the environment; nothing ran", strings.Join(missing, ", "))
}

// resolve finds the models of every agent of a workflow. Those that neither the flags nor the
// workflow name are added to the flags, so that the run keeps them.
func (a *app) resolveModels(ctx context.Context, p *lang.Program, flags map[string][]string) (map[string][]string, []config.Resolution, error) {
	c, err := a.config()
	if err != nil {
		return nil, nil, err
	}
	var all []config.Resolution
	var without noModels
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
			without.add(role.Name, err)
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
	without.children(c, p, flags[""])
	if without.err != nil {
		return nil, nil, suggest(ctx, without.err)
	}
	return flags, all, nil
}

// noModels gathers the agents for which no model resolves (WF201), those of sub-workflows too.
type noModels struct {
	roles []string
	err   error
}

func (n *noModels) add(role string, err error) {
	n.roles = append(n.roles, role)
	if len(n.roles) > 1 {
		n.err = fail(protocol.ErrModel, protocol.HintOf(err), "WF201: the roles %s name no model", strings.Join(n.roles, ", "))
	} else {
		n.err = fail(protocol.ErrModel, protocol.HintOf(err), "WF201: the role %s names no model", role)
	}
}

func (n *noModels) children(c *config.Loaded, p *lang.Program, flag []string) {
	for _, role := range p.Workflow.Roles {
		child := p.Children[role.Workflow]
		if child == nil {
			continue
		}
		for _, r := range child.Workflow.Roles {
			if r.Action != protocol.ActPrompt {
				continue
			}
			if _, err := c.Resolve(r.Name, flag, r.Model, os.LookupEnv); err != nil {
				n.add(role.Name+"/"+r.Name, err)
			}
		}
		n.children(c, child, flag)
	}
}

// patience is how long a probe of this machine takes at most.
const patience = 300 * time.Millisecond

// suggest adds what a probe of this machine found to the fixes of an error. Nothing is chosen.
func suggest(ctx context.Context, err error) error {
	for _, f := range config.Probe(ctx, config.Loopback, patience) {
		if len(f.Models) == 0 {
			continue
		}
		return hinted(err, protocol.HintOf(err)+fmt.Sprintf(". A server on this machine answers: OPENAI_BASE_URL=%s and --model openai/%s", f.BaseURL, f.Models[0]))
	}
	return hinted(err, protocol.HintOf(err))
}

// tellModels prints how the models were found, one line for roles that agree.
func (a *app) tellModels(all []config.Resolution) {
	if a.asJSON() {
		return
	}
	var order []string
	roles := map[string][]string{}
	for _, r := range all {
		key := strings.TrimPrefix(r.String(), r.Role+": ")
		if roles[key] == nil {
			order = append(order, key)
		}
		roles[key] = append(roles[key], r.Role)
	}
	p := paint{a.err.color}
	for _, key := range order {
		a.progress("  %s %s: %s", p.dim("model"), strings.Join(roles[key], ", "), key)
	}
}
